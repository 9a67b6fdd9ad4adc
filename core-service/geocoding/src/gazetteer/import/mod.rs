//! Builds an index from files of public address data.

#[cfg(fuzzing)]
pub mod fuzz;
mod reader;
mod writer;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use tempfile::TempPath;

use writer::Writer;

/// A new index, written beside the current one. Dropping it unfinished removes the file.
pub struct Import {
    target: PathBuf,
    writer: Writer,
    temporary: TempPath,
    stats: ImportStats,
    /// Locked until the import ends, so that there is one at a time.
    _lock: File,
}

impl Import {
    /// Starts an import that replaces the index at a path.
    pub fn begin(target: &Path) -> Result<Self, ImportError> {
        let lock_path = target.with_added_extension("lock");
        let write_error = |path: &Path| {
            let path = path.to_owned();
            |source| ImportError::Write { path, source }
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(write_error(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ImportError::InProgress),
            Err(TryLockError::Error(source)) => return Err(write_error(&lock_path)(source)),
        }
        let path = target.with_added_extension("new");
        // An import that was killed leaves its file.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(write_error(&path)(error));
            }
            _ => {}
        }
        let temporary = TempPath::try_from_path(&path).map_err(write_error(&path))?;
        Ok(Self {
            target: target.to_owned(),
            writer: Writer::create(&temporary)?,
            temporary,
            stats: ImportStats::default(),
            _lock: lock,
        })
    }

    /// Imports a file in the format of the French BAN or of `OpenAddresses`, plain or gzip; the
    /// format is detected. `country` (ISO 3166-1 alpha-2) is ignored if the format implies one.
    pub fn read(&mut self, name: &str, country: &str, file: impl Read) -> Result<(), ImportError> {
        reader::read(name, file, country, &mut self.stats, |address| {
            self.writer.add(&address)
        })
    }

    /// Replaces the current index, atomically and durably.
    pub fn finish(self) -> Result<ImportStats, ImportError> {
        if self.stats.imported == 0 {
            return Err(ImportError::NoAddressImported(self.stats));
        }
        self.writer.finish()?;
        let write_error = |source| ImportError::Write {
            path: self.target.clone(),
            source,
        };
        replace_index(self.temporary, &self.target).map_err(write_error)?;
        Ok(self.stats)
    }
}

fn replace_index(temporary: TempPath, target: &Path) -> io::Result<()> {
    File::open(&temporary)?.sync_all()?;
    temporary.persist(target)?;
    let directory = match target.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// Why an import failed.
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

/// The counts of imported addresses and of skipped lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStats {
    pub imported: u64,
    pub skipped: BTreeMap<SkipReason, Skipped>,
}

/// Lines skipped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub lines: u64,
    /// The file and line of the first.
    pub first: (String, u64),
}

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum SkipReason {
    /// Not valid for the format.
    #[error("invalid")]
    Invalid,
    /// A feature without properties.
    #[error("no address")]
    NoAddress,
    #[error("no street")]
    NoStreet,
    #[error("no house number")]
    NoNumber,
    #[error("no town or postcode")]
    NoTownOrPostcode,
    #[error("no point")]
    NoPoint,
    /// Latitude or longitude is out of range.
    #[error("point out of range")]
    PointOutOfRange,
    /// The address was imported before.
    #[error("duplicate")]
    Duplicate,
}

impl ImportStats {
    fn skip(&mut self, reason: SkipReason, file: &str, line: u64) {
        self.skipped
            .entry(reason)
            .or_insert_with(|| Skipped {
                lines: 0,
                first: (file.to_owned(), line),
            })
            .lines += 1;
    }
}

impl std::fmt::Display for ImportStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} imported", self.imported)?;
        for (reason, skipped) in &self.skipped {
            let (file, line) = &skipped.first;
            write!(
                f,
                ", {} skipped: {reason} (first in {file}, line {line})",
                skipped.lines
            )?;
        }
        Ok(())
    }
}
