//! Builds an index from files of public address data.

mod error;
#[cfg(fuzzing)]
pub mod fuzz;
mod import_stats;
mod reader;
mod writer;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use tempfile::TempPath;

pub use error::ImportError;
pub use import_stats::ImportStats;

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
        let temporary = target.with_added_extension("new");
        // An import that was killed leaves its file.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(write_error(&temporary)(error));
            }
            _ => {}
        }
        let temporary = TempPath::try_from_path(&temporary).map_err(write_error(&temporary))?;
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
