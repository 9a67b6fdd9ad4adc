//! Making an index from the files in which countries publish their addresses.

mod lines;
mod tally;
mod writer;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use lines::FormatError;
pub use tally::{Skipped, Tally, Why};

use writer::Writer;

/// An index in the making, beside the one in force. Dropped before it is finished it leaves
/// nothing.
pub struct Import {
    target: PathBuf,
    /// None once it is finished.
    making: Option<PathBuf>,
    writer: Option<Writer>,
    tally: Tally,
    /// Held until the new index is in force: there is one import at a time.
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("another import is under way")]
    UnderWay,
    #[error("the files broke off")]
    Incomplete,
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the index of addresses")]
    Index(#[from] rusqlite::Error),
    #[error("cannot write the index's words")]
    Dictionary(#[from] fst::Error),
    #[error("{name}, line {line}: cannot be read")]
    Read {
        name: String,
        line: u64,
        source: io::Error,
    },
    #[error("{name}: {source}")]
    Format { name: String, source: FormatError },
    #[error("no address could be taken: {0}")]
    Empty(Tally),
}

impl Import {
    /// Begins an index that will replace the one in a file.
    pub fn begin(target: &Path) -> Result<Self, ImportError> {
        let lock_path = beside(target, "lock");
        let write = |path: &Path| {
            let path = path.to_owned();
            |source| ImportError::Write { path, source }
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(write(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ImportError::UnderWay),
            Err(TryLockError::Error(source)) => return Err(write(&lock_path)(source)),
        }
        let making = beside(target, "new");
        // What an import that was killed has left.
        match fs::remove_file(&making) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(write(&making)(error));
            }
            _ => {}
        }
        Ok(Self {
            target: target.to_owned(),
            writer: Some(Writer::create(&making)?),
            making: Some(making),
            tally: Tally::default(),
            _lock: lock,
        })
    }

    /// Takes the addresses of a file: French BAN or `OpenAddresses`, as its first bytes tell,
    /// plain or gzip. `country` (ISO 3166-1 alpha-2) is where they are, unless the format says.
    pub fn read(&mut self, name: &str, country: &str, file: impl Read) -> Result<(), ImportError> {
        let writer = self.writer.as_mut().expect("there until it is finished");
        lines::read(name, file, country, &mut self.tally, |address| {
            writer.add(&address)
        })
    }

    /// Puts the new index in force, at once and for good.
    pub fn finish(mut self) -> Result<Tally, ImportError> {
        if self.tally.taken == 0 {
            return Err(ImportError::Empty(std::mem::take(&mut self.tally)));
        }
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        let Some(making) = self.making.take() else {
            return Ok(std::mem::take(&mut self.tally));
        };
        put_in_force(&making, &self.target).map_err(|source| {
            // Not in force, so not to be left either.
            let _ = fs::remove_file(&making);
            ImportError::Write {
                path: self.target.clone(),
                source,
            }
        })?;
        Ok(std::mem::take(&mut self.tally))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        self.writer = None;
        if let Some(making) = &self.making {
            let _ = fs::remove_file(making);
        }
    }
}

fn put_in_force(making: &Path, target: &Path) -> io::Result<()> {
    File::open(making)?.sync_all()?;
    fs::rename(making, target)?;
    let directory = match target.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// `addresses.sqlite.new` beside `addresses.sqlite`.
fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}
