//! A value read from files and read again when they change: certificates and secrets are renewed, and
//! addresses replaced, while programs run.

use std::{
    error::Error,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::tls;
use parking_lot::Mutex;

/// A value, the files it depends on, and the function that loads it.
pub struct Reloading<T, E = tls::Error> {
    paths: Vec<PathBuf>,
    load: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Arc<T>,
    /// The versions of the files when they were last loaded, successfully or not.
    attempted_versions: Vec<Option<FileVersion>>,
}

/// Inode, size and time of last change, which differ after a file is written or replaced.
pub type FileVersion = (u64, u64, i64, i64);

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Reloading<T, E> {
    /// Loads the initial value.
    pub fn open(
        paths: Vec<PathBuf>,
        load: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // Taken before reading, so that a change in between causes another load.
        let attempted_versions = versions(&paths);
        let reloading = Self::starting_with(load()?, paths, load);
        reloading.state.lock().attempted_versions = attempted_versions;
        Ok(reloading)
    }

    /// Starts with a value that is used until one of the files exists.
    pub fn starting_with(
        value: T,
        paths: Vec<PathBuf>,
        load: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                value: Arc::new(value),
                attempted_versions: vec![None; paths.len()],
            }),
            paths,
            load: Box::new(load),
        }
    }

    /// The value of the current files; the previous value if they cannot be loaded.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock();
        let versions = versions(&self.paths);
        if versions != state.attempted_versions {
            state.attempted_versions = versions;
            match (self.load)() {
                Ok(value) => {
                    tracing::info!(files = ?self.paths, "files reloaded");
                    state.value = Arc::new(value);
                }
                Err(error) => {
                    let error: Box<dyn Error + Send + Sync> = error.into();
                    tracing::warn!(
                        error = &*error as &dyn Error,
                        files = ?self.paths,
                        "cannot load files; what was loaded before stays in use"
                    );
                }
            }
        }
        Arc::clone(&state.value)
    }
}

fn versions(paths: &[PathBuf]) -> Vec<Option<FileVersion>> {
    paths.iter().map(|path| version(path)).collect()
}

/// The version of a file; `None` if it does not exist.
pub fn version(path: &Path) -> Option<FileVersion> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
}

impl<T, E> std::fmt::Debug for Reloading<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloading")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a file's text, if it is even.
    fn even_length(path: &Path) -> Result<usize, tls::Error> {
        let length = fs::read(path)?.len();
        anyhow::ensure!(length % 2 == 0, "{length} is odd");
        Ok(length)
    }

    #[test]
    fn a_changed_file_is_reloaded_if_it_is_valid() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12").unwrap();
        let loaded_path = path.clone();
        let reloading =
            Reloading::open(vec![path.clone()], move || even_length(&loaded_path)).unwrap();
        assert_eq!(*reloading.current(), 2);

        for (text, expected) in [("123", 2), ("1234", 4), ("123456", 6)] {
            fs::write(&path, text).unwrap();
            assert_eq!(*reloading.current(), expected, "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(*reloading.current(), 6);
    }

    #[test]
    fn opening_fails_without_an_initial_value() {
        let nowhere = PathBuf::from("/nowhere/file");

        assert!(Reloading::open(vec![nowhere.clone()], move || even_length(&nowhere)).is_err());
    }
}
