//! The data directory: created if missing, and locked by one process at a time.

use std::{
    fs::{DirBuilder, File, TryLockError},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// A locked data directory. Unlocked when this value is dropped or the process ends.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if missing, and locks it. Fails if another process holds the lock.
    pub(crate) fn lock(path: &Path) -> anyhow::Result<Self> {
        let display = path.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot create the data directory {display}"))?;

        let lock = File::create(path.join("lock"))
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in the directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
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
