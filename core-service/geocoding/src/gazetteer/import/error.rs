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
    #[error("{name} {source}")]
    Format { name: String, source: FormatError },
    #[error("no address imported: {0}")]
    NoAddressImported(ImportStats),
}

/// Why the format of a file is not supported.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("is empty")]
    Empty,
    #[error(
        "is neither GeoJSON lines nor CSV with the columns of the French BAN (numero, rep, nom_voie, code_postal, nom_commune, lon, lat) or of OpenAddresses (LON, LAT, NUMBER, STREET, CITY, POSTCODE): the column {0} is missing"
    )]
    MissingColumn(&'static str),
}
