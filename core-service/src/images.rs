//! The folder of images: one file per image, and the id by which the database knows the folder.

use std::{
    error::Error as StdError,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use domain::id::ImageId;
use futures_util::stream::BoxStream;
use object_store::{
    Error as FileError, ObjectStoreExt as _, local::LocalFileSystem, path::Path as FilePath,
};
use storage::{Storage, images};
use tokio::{sync::Notify, task::spawn_blocking};
use uuid::Uuid;

use crate::{error::Error, startup::StartError};

/// The file with the id of the folder.
const FOLDER_ID: &str = "folder-id";

pub(crate) struct ImageFolder {
    files: LocalFileSystem,
    path: PathBuf,
    /// By which the database knows the folder.
    id: Uuid,
    /// Notified when images were erased, whose files are to be deleted.
    pub(crate) erased: Notify,
}

impl ImageFolder {
    /// Opens the folder, and creates it if it is missing. `is_own`: whether it belongs to a database that only this
    /// process uses. Fails if the database has its images in another folder, or the folder the images of another database.
    pub(crate) async fn open(
        path: &Path,
        storage: &Storage,
        is_own: bool,
    ) -> Result<Self, StartError> {
        let unusable = |error: &dyn StdError| {
            let path = path.display();
            StartError::Misconfigured(format!(
                "cannot use {path} as the folder of images: {error}; name one that core may write to with --images"
            ))
        };
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(path);
        created.map_err(|error| unusable(&error))?;
        let files = LocalFileSystem::new_with_prefix(path).map_err(|error| unusable(&error))?;
        let folder = Self {
            files: files.with_fsync(true),
            path: path.to_owned(),
            id: Uuid::nil(),
            erased: Notify::new(),
        };
        let id = folder.identify(storage, is_own).await;
        if let Some(id) = id.map_err(StartError::Images)? {
            return Ok(Self { id, ..folder });
        }
        let path = path.display();
        let known = images::folder_id(storage.reader()).await?;
        Err(StartError::Misconfigured(match known {
            Some(id) => format!(
                "{path} is not the folder with the images of this database: name the right one with --images, or restore it from a backup; if its images are lost, write {id} into its file {FOLDER_ID}"
            ),
            None => format!(
                "{path} has the images of another database: name an empty folder with --images"
            ),
        }))
    }

    /// The id that the folder and the database have; none if they belong to others. They get one if they have no images.
    async fn identify(&self, storage: &Storage, is_own: bool) -> Result<Option<Uuid>, Error> {
        let known = images::folder_id(storage.reader()).await?;
        let id = match (known, self.id().await?) {
            (Some(known), Some(found)) => return Ok((known.to_string() == found).then_some(known)),
            // Such as the folder of a restored backup, which needs none.
            (Some(known), None) if is_own && !images::exist(storage.reader()).await? => known,
            (Some(_), None) => return Ok(None),
            (None, Some(_)) if self.has_images().await? => return Ok(None),
            // Not the id that is found, which another database without images may know: each would delete the images of
            // the other.
            (None, _) => Uuid::now_v7(),
        };
        // The file first: a folder without images that the database does not know is no obstacle to the next start.
        self.put_id(id).await?;
        let insert = storage.write(move |transaction| async move {
            images::insert_folder_id(&transaction, id).await
        });
        insert.await?;
        let known = images::folder_id(storage.reader()).await?;
        // Another core of this database may have been faster.
        if let Some(known) = known.filter(|known| *known != id) {
            self.put_id(known).await?;
        }
        Ok(known)
    }

    async fn has_images(&self) -> Result<bool, FileError> {
        for number in 0..=u8::MAX {
            if !self.list(number).await?.images.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn put_id(&self, id: Uuid) -> Result<(), FileError> {
        let content = Bytes::from(id.to_string()).into();
        self.files.put(&FilePath::from(FOLDER_ID), content).await?;
        Ok(())
    }

    /// Fails if another database has taken the folder, as it may while the folder has no images.
    pub(crate) async fn check_id(&self) -> Result<(), FileError> {
        if self.id().await? == Some(self.id.to_string()) {
            return Ok(());
        }
        Err(failed(format!("its file {FOLDER_ID} has another id")))
    }

    /// The id that the folder says it has.
    async fn id(&self) -> Result<Option<String>, FileError> {
        let file = match self.files.get(&FilePath::from(FOLDER_ID)).await {
            Err(FileError::NotFound { .. }) => return Ok(None),
            file => file?,
        };
        let content = file.bytes().await?;
        Ok(Some(String::from_utf8_lossy(&content).trim().to_owned()))
    }

    /// Writes the file of an image; it is on disk when this returns. Fails if another database has taken the folder, and
    /// would delete the file.
    pub(crate) async fn put(&self, id: ImageId, content: Bytes) -> Result<(), FileError> {
        self.check_id().await?;
        self.files.put(&file_of(id), content.into()).await?;
        Ok(())
    }

    /// Reads the file of an image.
    pub(crate) async fn get(
        &self,
        id: ImageId,
    ) -> Result<BoxStream<'static, Result<Bytes, FileError>>, FileError> {
        Ok(self.files.get(&file_of(id)).await?.into_stream())
    }

    /// Deletes the file of an image, if there is one.
    pub(crate) async fn delete(&self, id: ImageId) -> Result<(), FileError> {
        match self.files.delete(&file_of(id)).await {
            Err(FileError::NotFound { .. }) => Ok(()),
            deleted => deleted,
        }
    }

    /// The files in one of the directories.
    pub(crate) async fn list(&self, number: u8) -> Result<Directory, FileError> {
        let path = self.path.join(format!("{number:02x}"));
        blocking(move || Directory::read(&path)).await
    }

    /// Deletes the file of an interrupted write.
    pub(crate) async fn delete_interrupted(&self, path: PathBuf) -> Result<(), FileError> {
        blocking(move || fs::remove_file(path)).await
    }
}

/// One of the 256 directories with files, named after the last byte of an image's id.
#[derive(Default)]
pub(crate) struct Directory {
    /// The images that have a file.
    pub(crate) images: Vec<ImageId>,
    /// What writes have left that did not end, or have not yet. `object_store` writes a file under its name with `#` and
    /// a number, renames it, and lists no such files.
    pub(crate) interrupted: Vec<PathBuf>,
}

impl Directory {
    fn read(path: &Path) -> io::Result<Self> {
        let mut directory = Self::default();
        let files = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(directory),
            files => files?,
        };
        for file in files {
            let file = file?;
            let name = file.file_name();
            let name = name.to_str().unwrap_or_default();
            let Some((id, number)) = name.split_once('#') else {
                directory.images.extend(name.parse().map(ImageId));
                continue;
            };
            if id.parse::<Uuid>().is_ok() && number.bytes().all(|byte| byte.is_ascii_digit()) {
                directory.interrupted.push(file.path());
            }
        }
        Ok(directory)
    }
}

fn file_of(id: ImageId) -> FilePath {
    let [.., number] = *id.0.as_bytes();
    FilePath::from(format!("{number:02x}/{id}"))
}

async fn blocking<T: Send + 'static>(
    access: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let accessed = spawn_blocking(access).await;
    accessed
        .unwrap_or_else(|error| Err(error.into()))
        .map_err(failed)
}

fn failed(source: impl Into<Box<dyn StdError + Send + Sync>>) -> FileError {
    FileError::Generic {
        store: "images",
        source: source.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use domain::{delivery::Delivery, image::Image, task::TaskKind};
    use futures_util::TryStreamExt as _;
    use jiff::Timestamp;
    use storage::fixture;
    use tempfile::TempDir;

    use super::*;

    /// Whether a database opens a folder, and what it says if it does not.
    async fn opened(storage: &Storage, folder: &TempDir, is_own: bool) -> Result<(), String> {
        let opened = ImageFolder::open(folder.path(), storage, is_own).await;
        opened.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Stores an image with its file.
    pub(crate) async fn insert(
        storage: &Storage,
        folder: &ImageFolder,
        delivery: Delivery,
    ) -> ImageId {
        let image = Image {
            id: ImageId::new(),
            store_id: delivery.store_id,
            task_id: delivery.pickup.id,
            content_type: "image/png".parse().unwrap(),
            size: 3,
            hash: [7; 32],
            created_at: Timestamp::UNIX_EPOCH,
        };
        let id = image.id;
        folder.put(id, Bytes::from_static(b"png")).await.unwrap();
        let inserted = storage.write(move |transaction| async move {
            let mut delivery = delivery;
            let now = image.created_at;
            delivery.add_image(TaskKind::Pickup, image.id, now).unwrap();
            images::insert(&transaction, &delivery, TaskKind::Pickup, &image).await
        });
        inserted.await.unwrap();
        id
    }

    /// The images that have a file.
    pub(crate) async fn files(folder: &ImageFolder) -> Vec<ImageId> {
        let mut images = Vec::new();
        for number in 0..=u8::MAX {
            images.extend(folder.list(number).await.unwrap().images);
        }
        images
    }

    pub(crate) async fn delivery(storage: &Storage) -> Delivery {
        let delivery = fixture::delivery(domain::id::StoreId::new(), Timestamp::UNIX_EPOCH);
        let new = fixture::new_delivery(delivery.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
        delivery
    }

    #[tokio::test]
    async fn a_database_opens_the_folder_that_has_its_images_and_no_other() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let [own, other, of_other] = [(); 3].map(|()| TempDir::new().unwrap());
            let (_other_directory, other_storage) = fixture::sqlite().await;
            assert_eq!(opened(&other_storage, &of_other, false).await, Ok(()));
            let of_other_folder = ImageFolder::open(of_other.path(), &other_storage, false).await;
            let of_other_folder = of_other_folder.ok().unwrap();
            let other_delivery = delivery(&other_storage).await;
            insert(&other_storage, &of_other_folder, other_delivery).await;

            let refused = opened(&storage, &of_other, false).await.unwrap_err();
            assert!(
                refused.contains("has the images of another database"),
                "{refused}"
            );
            for _ in 0..2 {
                assert_eq!(opened(&storage, &own, false).await, Ok(()));
            }
            for is_own in [true, false] {
                let refused = opened(&storage, &of_other, is_own).await.unwrap_err();
                assert!(
                    refused.contains("is not the folder with the images"),
                    "{refused}"
                );
            }
            let refused = opened(&storage, &other, false).await.unwrap_err();
            assert!(refused.contains("restore it from a backup"), "{refused}");
            // That of an all-in-one without images is made again.
            assert_eq!(opened(&storage, &other, true).await, Ok(()));
            let folder = ImageFolder::open(own.path(), &storage, true).await;
            let delivery = delivery(&storage).await;
            insert(&storage, &folder.ok().unwrap(), delivery).await;
            let lost = TempDir::new().unwrap();
            let refused = opened(&storage, &lost, true).await.unwrap_err();
            let (_, id) = refused.split_once("write ").unwrap();
            let (id, _) = id.split_once(' ').unwrap();
            std::fs::write(lost.path().join(FOLDER_ID), format!("{id}\n")).unwrap();
            assert_eq!(opened(&storage, &lost, true).await, Ok(()));
        }
    }

    #[tokio::test]
    async fn a_folder_without_images_that_another_database_takes_is_no_longer_written_to() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let directory = TempDir::new().unwrap();
            let (_other_directory, other_storage) = fixture::sqlite().await;
            let former = ImageFolder::open(directory.path(), &other_storage, true).await;
            let former = former.ok().unwrap();

            let folder = ImageFolder::open(directory.path(), &storage, false).await;

            let folder = folder.ok().unwrap();
            assert_ne!(folder.id, former.id);
            let content = Bytes::from_static(b"png");
            let refused = former.put(ImageId::new(), content).await.unwrap_err();
            assert!(refused.to_string().contains("another id"), "{refused}");
            let delivery = delivery(&storage).await;
            let id = insert(&storage, &folder, delivery).await;
            assert_eq!(files(&folder).await, [id]);
            let refused = opened(&other_storage, &directory, true).await.unwrap_err();
            assert!(refused.contains("is not the folder"), "{refused}");
        }
    }

    #[tokio::test]
    async fn cores_of_a_database_that_start_at_once_have_the_same_folder() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let directory = TempDir::new().unwrap();
            let open = || ImageFolder::open(directory.path(), &storage, false);

            let (first, second) = tokio::join!(open(), open());

            let [first, second] = [first, second].map(|folder| folder.ok().unwrap());
            assert_eq!(first.id, second.id);
            first.check_id().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_is_read_listed_and_deleted_by_the_id_of_its_image() {
        let (_directory, storage) = fixture::sqlite().await;
        let directory = TempDir::new().unwrap();
        let folder = ImageFolder::open(directory.path(), &storage, true).await;
        let (folder, id) = (folder.ok().unwrap(), ImageId::new());
        folder.put(id, Bytes::from_static(b"png")).await.unwrap();

        let chunks: Vec<_> = folder.get(id).await.unwrap().try_collect().await.unwrap();

        assert_eq!(chunks.concat(), b"png");
        assert_eq!(files(&folder).await, [id]);
        for _ in 0..2 {
            folder.delete(id).await.unwrap();
        }
        let read = folder.get(id).await.map(|_| ());
        assert!(matches!(read, Err(FileError::NotFound { .. })), "{read:?}");
    }
}
