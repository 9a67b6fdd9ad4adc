//! The embedded geocoder: searches an index of addresses imported from public data.
//!
//! The index is a single file. An import writes a new file beside it and renames it over the old
//! one; the next search opens the replacement. So several cores may share an index, and a
//! file built elsewhere is deployed by renaming it into place.

mod dictionary;
mod house_number;
pub mod import;
mod index;
mod point;
mod schema;
mod search;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use moka::sync::Cache;
use process::reloading::{self, Reloading};
use sha2::{Digest, Sha256};

use super::{Error, GeocodeResult, Geocoder, Query};
pub use import::{Import, ImportError, ImportStats};
use index::Index;
pub use index::OpenError;

/// Demo data: well-known addresses of Paris, an extract of the French address database (BAN).
const PARIS: &[u8] = include_bytes!("../paris.csv");

/// How many times to open a file that is replaced each time while it is opened.
const MAX_OPENS: usize = 5;

/// The maximum number of cached addresses: a few megabytes.
const MAX_CACHED: u64 = 10_000;

/// The addresses of the current index file.
pub struct Gazetteer {
    path: PathBuf,
    /// The last index that could be opened.
    index: Reloading<Option<Index>, OpenError>,
    /// The addresses found by searches, by a hash of the query and the file: a text is personal
    /// data.
    found: Cache<[u8; 32], GeocodeResult>,
}

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
        let path = path.into();
        let file = path.clone();
        let open = move || open(&file).map(Some);
        Self {
            index: Reloading::starting_with(None, vec![path.clone()], open),
            path,
            found: Cache::new(MAX_CACHED),
        }
    }

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
        match &*self.index.current() {
            Some(_) => Ok(()),
            None => Err(SearchError::NoIndex(self.path.clone())),
        }
    }

    /// Searches for an address, and caches it if it is found. Blocks on file reads: do not call
    /// from async code.
    pub fn search(&self, query: &Query) -> Result<GeocodeResult, SearchError> {
        let key = self.cache_key(query);
        let index = self.index.current();
        let index = index.as_ref().as_ref();
        let index = index.ok_or_else(|| SearchError::NoIndex(self.path.clone()))?;
        let result = search_index(index, query)?;
        // Partial matches are large, and clients can cause any number of them.
        if let (Some(key), GeocodeResult::Found(_)) = (key, &result) {
            self.found.insert(key, result.clone());
        }
        Ok(result)
    }

    /// The address that an earlier search of the current file found. Does not block.
    fn cached_result(&self, query: &Query) -> Option<GeocodeResult> {
        self.found.get(&self.cache_key(query)?)
    }

    /// A hash of all that a result depends on; `None` without a file.
    fn cache_key(&self, query: &Query) -> Option<[u8; 32]> {
        let Query {
            text,
            country,
            near,
            required,
            store_id: _,
        } = query;
        let file = reloading::version(&self.path)?;
        Some(Sha256::digest(format!("{:?}", (file, text, country, near, required))).into())
    }
}

/// Opens the file at a path, again if it was replaced: all connections read the same file.
fn open(path: &Path) -> Result<Index, OpenError> {
    for _ in 0..MAX_OPENS {
        let version = reloading::version(path);
        let index = Index::open(path);
        if reloading::version(path) == version {
            return index;
        }
    }
    Err(io::Error::other("the file is being written").into())
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

/// Runs searches on blocking threads, except those for addresses that are cached: shops send the same
/// texts again and again.
impl Geocoder for Arc<Gazetteer> {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
        async move {
            if let Some(result) = self.cached_result(query) {
                return Ok(result);
            }
            let (gazetteer, query) = (Arc::clone(self), query.clone());
            let searched = tokio::task::spawn_blocking(move || gazetteer.search(&query)).await;
            searched
                .map_err(|error| Error::Unavailable(Box::new(error)))?
                .map_err(|error| Error::Unavailable(Box::new(error)))
        }
        .boxed()
    }
}

impl Error {
    /// The error of a gazetteer that has no usable index.
    pub fn missing_index(&self) -> Option<&SearchError> {
        let Self::Unavailable(cause) = self;
        cause
            .downcast_ref()
            .filter(|error| matches!(error, SearchError::NoIndex(_)))
    }
}
