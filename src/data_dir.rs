//! The data directory: made if need be, and held by one process at a time.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// A directory that is ours as long as this lives: the lock goes with the process, however
/// that ends.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if it is not there, and takes it. Fails if another process has it.
    pub(crate) fn claim(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot make the data directory {shown}"))?;

        let lock = File::create(path.join("lock"))
            .with_context(|| format!("cannot write to the data directory {shown}"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => bail!(
                "another `delivery` is running on the data directory {shown}: stop it, or choose another with --data-dir"
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock the data directory {shown}"))
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it that its owner alone may read, made empty if it is not there.
    pub(crate) fn private_file(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.file(name);
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_held_by_one_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new");

        let first = DataDir::claim(&path).unwrap();
        let Err(refusal) = DataDir::claim(&path) else {
            panic!("taken twice");
        };
        assert!(refusal.to_string().contains("--data-dir"), "{refusal}");

        drop(first);
        DataDir::claim(&path).unwrap();
    }
}
