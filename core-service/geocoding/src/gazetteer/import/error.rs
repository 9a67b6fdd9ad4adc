//! Errors of an import.

use std::{io, path::PathBuf};

use super::import_stats::ImportStats;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("another import is in progress")]
    InProgress,
    #[error("the upload is incomplete")]
    Incomplete,
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the address index")]
    Index(#[from] rusqlite::Error),
    #[error("cannot write the dictionary of the address index")]
    Dictionary(#[from] fst::Error),
    #[error("{name}, line {line}: cannot read")]
    Read {
        name: String,
        line: u64,
        source: io::Error,
    },
    /// The format of a file is not supported.
    #[error("{0}")]
    Format(String),
    #[error("no address imported: {0}")]
    NoAddressImported(ImportStats),
}
