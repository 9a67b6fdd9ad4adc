//! Deletes the files of erased images, and of uploads that were interrupted before their rows were committed.

use std::{collections::HashSet, sync::Arc, time::Duration};

use domain::id::ImageId;
use futures_util::TryStreamExt as _;
use storage::{Storage, images};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{error::Error, images::ImageFolder};

/// How often to look for erased images, which other cores may have queued.
const INTERVAL: Duration = Duration::from_mins(1);

/// How often to look for files without rows. One that had none the last time, either, is deleted: an upload takes far
/// less.
const SWEEP_INTERVAL: Duration = Duration::from_hours(6);

/// How many files are deleted, or looked up, at a time.
const BATCH: u32 = 200;

/// Every core deletes files, which is safe to repeat.
pub(crate) struct ImageCleanup {
    storage: Arc<Storage>,
    folder: Arc<ImageFolder>,
    /// The files without rows of the last sweep.
    orphans: HashSet<ImageId>,
}

impl ImageCleanup {
    pub(crate) fn new(storage: Arc<Storage>, folder: Arc<ImageFolder>) -> Self {
        Self {
            storage,
            folder,
            orphans: HashSet::new(),
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
        loop {
            let queued = images::list_deletions(self.storage.reader(), BATCH).await?;
            if queued.is_empty() {
                return Ok(());
            }
            let is_last = queued.len() < BATCH as usize;
            for id in &queued {
                self.folder.delete(*id).await?;
            }
            let ended = self.storage.write(move |transaction| async move {
                for id in queued {
                    images::end_deletion(&transaction, id).await?;
                }
                Ok::<_, storage::Error>(())
            });
            ended.await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Deletes the files that have no row, and had none the last time.
    async fn sweep(&mut self) -> Result<(), Error> {
        let mut orphans = HashSet::new();
        let mut files = self.folder.list().try_chunks(BATCH as usize);
        while let Some(ids) = files.try_next().await.map_err(|error| error.1)? {
            let existing = images::find_existing(self.storage.reader(), &ids).await?;
            orphans.extend(ids.into_iter().filter(|id| !existing.contains(id)));
        }
        for id in orphans.intersection(&self.orphans) {
            self.folder.delete(*id).await?;
        }
        self.orphans = orphans;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use domain::{delivery::Delivery, id::StoreId};
    use futures_util::TryStreamExt as _;
    use jiff::Timestamp;
    use storage::{fixture, personal_data};
    use tempfile::TempDir;

    use super::*;
    use crate::images::tests::insert;

    async fn files(folder: &ImageFolder) -> Vec<ImageId> {
        folder.list().try_collect().await.unwrap()
    }

    async fn cleanup(storage: Arc<Storage>, directory: &TempDir) -> ImageCleanup {
        let folder = ImageFolder::open(directory.path(), &storage, true).await;
        ImageCleanup::new(storage, Arc::new(folder.ok().unwrap()))
    }

    async fn delivery(storage: &Storage) -> Delivery {
        let delivery = fixture::delivery(StoreId::new(), Timestamp::UNIX_EPOCH);
        let new = fixture::new_delivery(delivery.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
        delivery
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
            let erase = storage.write(move |transaction| async move {
                let now = Timestamp::UNIX_EPOCH;
                personal_data::erase(&transaction, erased.store_id, erased.id, now).await
            });
            erase.await.unwrap();
            let queued = images::list_deletions(storage.reader(), 9).await.unwrap();
            assert_eq!(queued, [id]);
            let found = images::find_of_any_store(storage.reader(), id).await;
            assert_eq!(found.unwrap(), None);
            assert_eq!(files(&cleanup.folder).await.len(), 2);

            cleanup.delete_erased().await.unwrap();

            assert_eq!(files(&cleanup.folder).await, [kept]);
            let queued = images::list_deletions(storage.reader(), 9).await.unwrap();
            assert_eq!(queued, []);
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
}
