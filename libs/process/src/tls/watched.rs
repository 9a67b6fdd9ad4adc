//! Something made of files, made anew when they change: certificates are renewed while
//! programs run.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use super::Error;

/// A value, the files it was made of, and how.
pub struct Watched<T> {
    paths: Vec<PathBuf>,
    make: Box<dyn Fn() -> Result<T, Error> + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Arc<T>,
    /// The files it was last tried with, whether that succeeded or not.
    tried: Vec<Option<Version>>,
}

/// What differs when a file was written or replaced: inode, size and time of its last change.
type Version = (u64, u64, i64, i64);

impl<T> Watched<T> {
    /// Makes the value for the first time.
    pub fn open(
        paths: Vec<PathBuf>,
        make: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        // Before they are read: what changes in between is noticed later.
        let tried = versions(&paths);
        let value = Arc::new(make()?);
        Ok(Self {
            paths,
            make: Box::new(make),
            state: Mutex::new(State { value, tried }),
        })
    }

    /// The value of the files as they are now; if they are of no use, the last that was.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = versions(&self.paths);
        if found != state.tried {
            state.tried = found;
            match (self.make)() {
                Ok(value) => {
                    tracing::info!(files = ?self.paths, "TLS files have changed and are in use");
                    state.value = Arc::new(value);
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "TLS files have changed, but are of no use: the ones before stay in use"
                ),
            }
        }
        Arc::clone(&state.value)
    }
}

/// None for a file that is not there.
fn versions(paths: &[PathBuf]) -> Vec<Option<Version>> {
    let version = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
    };
    paths.iter().map(version).collect()
}

impl<T> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The length of a file's text, if it is even.
    fn even_length(path: &Path) -> Result<usize, Error> {
        let wrong = || Error::NotPem {
            path: path.to_owned(),
            what: "an even length",
        };
        let length = fs::read(path).map_err(|_| wrong())?.len();
        (length % 2 == 0).then_some(length).ok_or_else(wrong)
    }

    #[test]
    fn a_changed_file_is_used_unless_it_is_of_no_use() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12").unwrap();
        let made_of = path.clone();
        let watched = Watched::open(vec![path.clone()], move || even_length(&made_of)).unwrap();
        assert_eq!(*watched.current(), 2);

        for (text, expected) in [("123", 2), ("1234", 4), ("123456", 6)] {
            fs::write(&path, text).unwrap();
            assert_eq!(*watched.current(), expected, "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(*watched.current(), 6);
    }

    #[test]
    fn without_a_first_value_there_is_none() {
        let nowhere = PathBuf::from("/nowhere/file");

        assert!(Watched::open(vec![nowhere.clone()], move || even_length(&nowhere)).is_err());
    }
}
