//! The data directory: created if missing, and locked by one process at a time.

use std::{
    fs::{DirBuilder, File, TryLockError},
    io::ErrorKind,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};

/// The file of the database in a data directory.
pub const DATABASE: &str = "delivery.sqlite";

/// The file of the master key in a data directory.
pub const MASTER_KEY: &str = "master.key";

const LOCK: &str = "lock";

/// A locked data directory. Unlocked when this value is dropped or the process ends.
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Like [`DataDir::lock`]; fails if there is anything in the directory.
    pub fn lock_empty(path: &Path) -> anyhow::Result<Self> {
        let display = path.display();
        let entries = match path.read_dir() {
            Ok(entries) => entries.collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        for entry in entries.with_context(|| format!("cannot list {display}"))? {
            let name = entry.file_name();
            // `lost+found` is in the root directory of every ext4 file system.
            ensure!(
                name == LOCK || name == "lost+found",
                "the data directory {display} is not empty: it contains {}; name a new one with --data-dir",
                name.display()
            );
        }
        Self::lock(path)
    }

    /// Creates the directory if missing, and locks it. Fails if another process holds the lock, or if
    /// the restore of a backup to it was interrupted.
    pub(crate) fn lock(path: &Path) -> anyhow::Result<Self> {
        let display = path.display();
        let restoring = core_service::restoring_path(&path.join(DATABASE));
        ensure!(
            !restoring.exists(),
            "a backup was being restored to {display}: remove the directory, and restore the backup again"
        );
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot create the data directory {display}"))?;

        let lock = File::create(path.join(LOCK))
            .with_context(|| format!("cannot write to the data directory {display}"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => bail!(
                "another `delivery` is running on the data directory {display}: stop it, or choose another directory with --data-dir"
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock the data directory {display}"))
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_locked_by_one_process_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new");

        let first = DataDir::lock(&path).unwrap();
        let Err(error) = DataDir::lock(&path) else {
            panic!("locked twice");
        };
        assert!(error.to_string().contains("--data-dir"), "{error}");

        drop(first);
        DataDir::lock(&path).unwrap();
    }
}
