//! Addresses on disk: imported from the files in which countries publish them, searched as
//! people write them.
//!
//! The index is one file, made beside the one in force and renamed over it. Whoever searches
//! sees that there is another, and opens it: several cores may share one, and a file made
//! elsewhere is put in force by renaming it there.

mod dictionary;
mod house;
pub mod import;
mod index;
mod place;
mod point;
mod schema;
mod search;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{Answer, Error, Geocoder, Query};
pub use import::{Import, ImportError, Tally};
use index::Index;
pub use index::OpenError;

/// Well-known addresses of Paris, to try the platform with: an extract of the French address
/// base.
const PARIS: &[u8] = include_bytes!("../paris.csv");

/// The addresses of a file, whichever is there now.
pub struct Gazetteer {
    path: PathBuf,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// What was at the path when it was last looked at; none if nothing was.
    seen: Option<Identity>,
    /// The last that could be opened.
    index: Option<Arc<Index>>,
}

/// What tells a file from the one that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    bytes: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("there are no addresses in {}: import some", .0.display())]
    Nothing(PathBuf),
    #[error("the index of addresses cannot be read")]
    Read(#[from] rusqlite::Error),
}

impl Gazetteer {
    /// The addresses in a file, which may come later.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            current: Mutex::default(),
        }
    }

    /// Where the addresses are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Imports the demo's addresses, if there are none.
    pub fn ensure_demo(&self) -> Result<(), ImportError> {
        if self.path.exists() {
            return Ok(());
        }
        let mut import = match Import::begin(&self.path) {
            // Another process is faster.
            Err(ImportError::UnderWay) => return Ok(()),
            begun => begun?,
        };
        import.read("the demo's addresses", "FR", PARIS)?;
        import.finish().map(|_| ())
    }

    /// Looks an address up. Reads files: not for an async task.
    pub fn search(&self, query: &Query) -> Result<Answer, SearchError> {
        let index = self
            .index()
            .ok_or_else(|| SearchError::Nothing(self.path.clone()))?;
        let mut best = Answer::NotFound;
        for country in &index.countries {
            let is_asked = query
                .country
                .as_ref()
                .is_none_or(|asked| asked.eq_ignore_ascii_case(country));
            if is_asked {
                let answer = search::search(&index, query, country)?;
                if is_better(&answer, &best) {
                    best = answer;
                }
            }
        }
        Ok(best)
    }

    /// The index in force. One that can't be read leaves the one before in force.
    fn index(&self) -> Option<Arc<Index>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let there = fs::metadata(&self.path)
            .ok()
            .map(|file| Identity::of(&file));
        if there.is_some() && there != current.seen {
            match self.open() {
                Ok((identity, index)) => {
                    *current = Current {
                        seen: Some(identity),
                        index: Some(Arc::new(index)),
                    };
                }
                Err(error) => {
                    let error = &error as &(dyn std::error::Error + 'static);
                    tracing::error!(error, path = %self.path.display(), "an index of addresses cannot be opened");
                    current.seen = there;
                }
            }
        }
        current.index.clone()
    }

    /// Opens what is at the path, the whole of it from one file.
    fn open(&self) -> Result<(Identity, Index), OpenError> {
        const ATTEMPTS: usize = 5;
        for _ in 0..ATTEMPTS {
            let before = Identity::of(&fs::metadata(&self.path)?);
            let index = Index::open(&self.path);
            if Identity::of(&fs::metadata(&self.path)?) == before {
                return Ok((before, index?));
            }
        }
        Err(io::Error::other("the file is replaced all the time").into())
    }
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            changed: (file.mtime(), file.mtime_nsec()),
            bytes: file.len(),
        }
    }
}

/// The surer of two answers; one that is found is better than one that is unclear.
fn is_better(answer: &Answer, than: &Answer) -> bool {
    let rank = |answer: &Answer| match answer {
        Answer::Found(found) => (2, found.confidence),
        Answer::Unclear(unclear) => (
            1,
            unclear
                .candidates
                .first()
                .map_or(0.0, |found| found.confidence),
        ),
        Answer::NotFound => (0, 0.0),
    };
    rank(answer) > rank(than)
}

/// Answers beside the tasks: a search reads a file.
pub struct GazetteerGeocoder(pub Arc<Gazetteer>);

impl Geocoder for GazetteerGeocoder {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
        let gazetteer = Arc::clone(&self.0);
        let query = query.clone();
        async move {
            let searched = tokio::task::spawn_blocking(move || gazetteer.search(&query)).await;
            match searched {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(error)) => Err(Error::Unavailable(Box::new(error))),
                Err(error) => Err(Error::Unavailable(Box::new(error))),
            }
        }
        .boxed()
    }
}
