//! The embedded geocoder: searches an index of addresses imported from public data.
//!
//! The index is a single file. An import writes a new file beside it and renames it over the old
//! one; the next search opens the replacement. So several cores may share an index, and a
//! file built elsewhere is deployed by renaming it into place.

mod dictionary;
mod house_number;
pub mod import;
mod index;
mod place_token;
mod point;
mod schema;
mod search;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;

use super::{Error, GeocodeResult, Geocoder, Query};
pub use import::{Import, ImportError, ImportStats};
use index::Index;
pub use index::OpenError;

/// Demo data: well-known addresses of Paris, an extract of the French address database (BAN).
const PARIS: &[u8] = include_bytes!("../paris.csv");

/// The addresses of the current index file.
pub struct Gazetteer {
    path: PathBuf,
    current: Mutex<CurrentIndex>,
}

#[derive(Default)]
struct CurrentIndex {
    /// The file at the path at the last check.
    last_seen: Option<FileIdentity>,
    /// The last index that could be opened.
    index: Option<Arc<Index>>,
}

/// Distinguishes a file from its replacement: device, inode, time of the last change in seconds and
/// nanoseconds, size.
type FileIdentity = (u64, u64, i64, i64, u64);

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("there is no usable address index at {}", .0.display())]
    NoIndex(PathBuf),
    #[error("cannot read the address index")]
    Read(#[from] rusqlite::Error),
}

impl Gazetteer {
    /// The index at a path; the file may not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            current: Mutex::default(),
        }
    }

    /// The path of the index file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Imports the demo data if there is no index.
    pub fn ensure_demo(&self) -> Result<(), ImportError> {
        if self.path.exists() {
            return Ok(());
        }
        let mut import = match Import::begin(&self.path) {
            // Another process imports addresses.
            Err(ImportError::InProgress) => return Ok(()),
            started => started?,
        };
        import.read("demo data", "FR", PARIS)?;
        import.finish().map(|_| ())
    }

    /// Fails if there is no usable index. Blocks on file reads.
    pub fn check(&self) -> Result<(), SearchError> {
        self.usable_index().map(|_| ())
    }

    fn usable_index(&self) -> Result<Arc<Index>, SearchError> {
        self.index()
            .ok_or_else(|| SearchError::NoIndex(self.path.clone()))
    }

    /// Searches for an address, and caches it if it is found. Blocks on file reads: do not call
    /// from async code.
    pub fn search(&self, query: &Query) -> Result<GeocodeResult, SearchError> {
        let index = self.usable_index()?;
        let result = search_index(&index, query)?;
        index.cache_result(query, &result);
        Ok(result)
    }

    /// The address that an earlier search of the current index found. Does not block: `None` also
    /// while an index is opened.
    fn cached_result(&self, query: &Query) -> Option<GeocodeResult> {
        let file = identity(&self.path).ok();
        let index = {
            let current = self.current.try_lock()?;
            let is_current = file.is_some() && current.last_seen == file;
            current.index.clone().filter(|_| is_current)
        };
        index?.cached_result(query)
    }

    /// The current index. If a new file can't be opened, the previous index stays in use.
    fn index(&self) -> Option<Arc<Index>> {
        let mut current = self.current.lock();
        let found = identity(&self.path).ok();
        if found.is_some() && found != current.last_seen {
            match self.open() {
                Ok((identity, index)) => {
                    *current = CurrentIndex {
                        last_seen: Some(identity),
                        index: Some(Arc::new(index)),
                    };
                }
                Err(error) => {
                    let error = &error as &(dyn std::error::Error + 'static);
                    tracing::error!(error, path = %self.path.display(), "cannot open the address index");
                    current.last_seen = found;
                }
            }
        }
        current.index.clone()
    }

    /// Opens the file at the path. Retries if it is replaced meanwhile.
    fn open(&self) -> Result<(FileIdentity, Index), OpenError> {
        const ATTEMPTS: usize = 5;
        for _ in 0..ATTEMPTS {
            let before = identity(&self.path)?;
            let index = Index::open(&self.path);
            if identity(&self.path)? == before {
                return Ok((before, index?));
            }
        }
        Err(io::Error::other("the file was replaced during every attempt").into())
    }
}

fn identity(path: &Path) -> io::Result<FileIdentity> {
    let file = fs::metadata(path)?;
    let (seconds, nanoseconds) = (file.mtime(), file.mtime_nsec());
    Ok((file.dev(), file.ino(), seconds, nanoseconds, file.size()))
}

fn search_index(index: &Index, query: &Query) -> Result<GeocodeResult, SearchError> {
    let mut best = GeocodeResult::NotFound;
    let only = query.country.as_ref();
    let is_included =
        |country: &&String| only.is_none_or(|code| code.eq_ignore_ascii_case(country));
    for country in index.countries.iter().filter(is_included) {
        let result = search::search(index, query, country)?;
        if rank(&result) > rank(&best) {
            best = result;
        }
    }
    Ok(best)
}

/// The sort key of a result: found before partial, then by confidence.
fn rank(result: &GeocodeResult) -> (u8, f64) {
    match result {
        GeocodeResult::Found(found) => (2, found.confidence),
        GeocodeResult::Partial(partial) => {
            let best = partial.candidates.first();
            (1, best.map_or(0.0, |found| found.confidence))
        }
        GeocodeResult::NotFound => (0, 0.0),
    }
}

/// Runs the searches on blocking threads. Caches the addresses found in the current index, because
/// shops send the same texts again and again.
impl Geocoder for Arc<Gazetteer> {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
        async move {
            if let Some(result) = self.cached_result(query) {
                return Ok(result);
            }
            let (gazetteer, query) = (Self::clone(self), query.clone());
            let searched = tokio::task::spawn_blocking(move || gazetteer.search(&query)).await;
            searched
                .map_err(|error| Error::Unavailable(Box::new(error)))?
                .map_err(|error| Error::Unavailable(Box::new(error)))
        }
        .boxed()
    }
}
