//! Deletes the files of erased images, and of uploads that were interrupted before their rows were committed. A file that
//! cannot be deleted is no obstacle to the deletion of others.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use domain::id::ImageId;
use storage::{Storage, images};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{error::Error, images::ImageFolder};

/// How often to look for erased images, which other cores may have queued.
const INTERVAL: Duration = Duration::from_mins(1);

/// How often to look for files without rows and for those of interrupted writes. One that was found the last time, too, is
/// deleted: an upload takes far less.
const SWEEP_INTERVAL: Duration = Duration::from_hours(6);

/// How many files are deleted, or looked up, at a time.
const BATCH: u32 = 200;

/// Every core deletes files, which is safe to repeat.
pub(crate) struct ImageCleanup {
    storage: Arc<Storage>,
    folder: Arc<ImageFolder>,
    /// The files without rows of the last sweep.
    orphans: HashSet<ImageId>,
    /// The files of interrupted writes of the last sweep.
    interrupted: HashSet<PathBuf>,
}

impl ImageCleanup {
    pub(crate) fn new(storage: Arc<Storage>, folder: Arc<ImageFolder>) -> Self {
        Self {
            storage,
            folder,
            orphans: HashSet::new(),
            interrupted: HashSet::new(),
        }
    }

    /// Deletes files until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut next_sweep = Instant::now();
        loop {
            if let Err(error) = self.delete_erased().await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot delete the files of erased images");
            }
            if Instant::now() >= next_sweep {
                next_sweep = Instant::now() + SWEEP_INTERVAL;
                let swept = shutdown.run_until_cancelled(self.sweep()).await;
                if let Some(Err(error)) = swept {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "cannot delete the files of interrupted uploads");
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(INTERVAL) => {}
                () = self.folder.erased.notified() => {}
            }
        }
    }

    /// Deletes the files of erased images, each before it leaves the queue.
    async fn delete_erased(&self) -> Result<(), Error> {
        let mut last = ImageId(Uuid::nil());
        loop {
            let queued = images::list_deletions(self.storage.reader(), last, BATCH).await?;
            let is_last = queued.len() < BATCH as usize;
            last = queued.last().copied().unwrap_or(last);
            let deleted = self.delete(queued).await;
            if !deleted.is_empty() {
                let ended = self.storage.write(move |transaction| async move {
                    for id in deleted {
                        images::end_deletion(&transaction, id).await?;
                    }
                    Ok::<_, storage::Error>(())
                });
                ended.await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Deletes files, and returns those that are deleted.
    async fn delete(&self, ids: Vec<ImageId>) -> Vec<ImageId> {
        let mut deleted = Vec::new();
        for id in ids {
            match self.folder.delete(id).await {
                Ok(()) => deleted.push(id),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, image.id = %id, "cannot delete the file of an image");
                }
            }
        }
        deleted
    }

    /// Deletes the files that have no row, and had none the last time, and those of writes that had not ended then. Fails
    /// if another database has the folder.
    async fn sweep(&mut self) -> Result<(), Error> {
        self.folder.check_id().await?;
        let (mut orphans, mut interrupted) = (HashSet::new(), HashSet::new());
        for number in 0..=u8::MAX {
            let directory = match self.folder.list(number).await {
                Ok(directory) => directory,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, number, "cannot list a directory of images");
                    continue;
                }
            };
            for ids in directory.images.chunks(BATCH as usize) {
                let existing = images::find_existing(self.storage.reader(), ids).await?;
                orphans.extend(ids.iter().copied().filter(|id| !existing.contains(id)));
            }
            interrupted.extend(directory.interrupted);
        }
        let again = orphans.intersection(&self.orphans).copied();
        self.delete(again.collect()).await;
        for path in interrupted.intersection(&self.interrupted) {
            if let Err(error) = self.folder.delete_interrupted(path.clone()).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, path = %path.display(), "cannot delete the file of a write");
            }
        }
        (self.orphans, self.interrupted) = (orphans, interrupted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bytes::Bytes;
    use domain::delivery::Delivery;
    use jiff::Timestamp;
    use storage::{fixture, personal_data};
    use tempfile::TempDir;

    use super::*;
    use crate::images::tests::{delivery, files, insert};

    async fn cleanup(storage: Arc<Storage>, directory: &TempDir) -> ImageCleanup {
        let folder = ImageFolder::open(directory.path(), &storage, true).await;
        ImageCleanup::new(storage, Arc::new(folder.ok().unwrap()))
    }

    async fn queued(storage: &Storage) -> Vec<ImageId> {
        let first = ImageId(Uuid::nil());
        images::list_deletions(storage.reader(), first, 9)
            .await
            .unwrap()
    }

    async fn erase(storage: &Storage, delivery: Delivery) {
        let erase = storage.write(move |transaction| async move {
            let now = Timestamp::UNIX_EPOCH;
            personal_data::erase(&transaction, delivery.store_id, delivery.id, now).await
        });
        erase.await.unwrap();
    }

    /// Puts a directory in the place of a file, which cannot be deleted as one.
    fn obstruct(directory: &TempDir, id: ImageId) -> PathBuf {
        let [.., number] = *id.0.as_bytes();
        let path = directory.path().join(format!("{number:02x}/{id}"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        path
    }

    #[tokio::test]
    async fn the_files_of_erased_images_are_deleted_after_the_commit() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let directory = TempDir::new().unwrap();
            let cleanup = cleanup(Arc::clone(&storage), &directory).await;
            let [erased, kept] = [delivery(&storage).await, delivery(&storage).await];
            let id = insert(&storage, &cleanup.folder, erased.clone()).await;
            let kept = insert(&storage, &cleanup.folder, kept).await;
            erase(&storage, erased).await;
            assert_eq!(queued(&storage).await, [id]);
            let found = images::find_of_any_store(storage.reader(), id).await;
            assert_eq!(found.unwrap(), None);
            assert_eq!(files(&cleanup.folder).await.len(), 2);

            cleanup.delete_erased().await.unwrap();

            assert_eq!(files(&cleanup.folder).await, [kept]);
            assert_eq!(queued(&storage).await, []);
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_deleted_stays_queued_and_the_others_are_deleted() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let directory = TempDir::new().unwrap();
            let cleanup = cleanup(Arc::clone(&storage), &directory).await;
            let mut ids = Vec::new();
            for _ in 0..2 {
                let delivery = delivery(&storage).await;
                ids.push(insert(&storage, &cleanup.folder, delivery.clone()).await);
                erase(&storage, delivery).await;
            }
            let path = obstruct(&directory, ids[0]);

            cleanup.delete_erased().await.unwrap();

            assert_eq!(queued(&storage).await, [ids[0]]);
            assert_eq!(files(&cleanup.folder).await, [ids[0]]);
            fs::remove_dir(path).unwrap();
            cleanup.delete_erased().await.unwrap();
            assert_eq!(queued(&storage).await, []);
        }
    }

    #[tokio::test]
    async fn a_file_without_a_row_is_deleted_by_the_second_sweep() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let directory = TempDir::new().unwrap();
            let mut cleanup = cleanup(Arc::clone(&storage), &directory).await;
            let delivery = delivery(&storage).await;
            let kept = insert(&storage, &cleanup.folder, delivery).await;
            let orphan = ImageId::new();
            let content = Bytes::from_static(b"png");
            cleanup.folder.put(orphan, content).await.unwrap();

            cleanup.sweep().await.unwrap();
            assert_eq!(files(&cleanup.folder).await.len(), 2);
            cleanup.sweep().await.unwrap();

            assert_eq!(files(&cleanup.folder).await, [kept]);
        }
    }

    #[tokio::test]
    async fn the_file_of_a_write_that_did_not_end_is_deleted_by_the_second_sweep() {
        let (_directory, storage) = fixture::sqlite().await;
        let directory = TempDir::new().unwrap();
        let mut cleanup = cleanup(storage, &directory).await;
        let orphan = ImageId::new();
        let content = Bytes::from_static(b"png");
        cleanup.folder.put(orphan, content).await.unwrap();
        let obstructed = obstruct(&directory, orphan);
        let interrupted = directory.path().join(format!("00/{}#1", ImageId::new()));
        let other = directory.path().join("00/note#1");
        fs::create_dir_all(directory.path().join("00")).unwrap();
        for file in [&interrupted, &other] {
            fs::write(file, "png").unwrap();
        }

        cleanup.sweep().await.unwrap();
        assert!(interrupted.exists());
        cleanup.sweep().await.unwrap();

        assert!(!interrupted.exists());
        assert!(other.exists());
        assert!(obstructed.exists());
    }

    #[tokio::test]
    async fn the_folder_of_another_database_is_not_swept() {
        let (_directory, storage) = fixture::sqlite().await;
        let directory = TempDir::new().unwrap();
        let mut cleanup = cleanup(storage, &directory).await;
        let content = Bytes::from_static(b"png");
        cleanup.folder.put(ImageId::new(), content).await.unwrap();
        cleanup.sweep().await.unwrap();
        let id = Uuid::now_v7().to_string();
        fs::write(directory.path().join("folder-id"), id).unwrap();

        let refused = cleanup.sweep().await.unwrap_err();

        assert!(matches!(refused, Error::Images(_)), "{refused}");
        assert_eq!(files(&cleanup.folder).await.len(), 1);
    }
}
