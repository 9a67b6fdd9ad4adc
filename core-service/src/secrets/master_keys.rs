//! The file with the master keys of a platform: one key a line, in Base64. The first is the current
//! one, which encrypts; all decrypt. Changes replace the file atomically and keep its owner and
//! mode.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    str::FromStr,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Subcommand;
use process::secret_file;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

pub(crate) const KEY_LENGTH: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the master key {path} does not exist: create it with `core-service bootstrap`, or restore it from your backup"
    )]
    Missing { path: PathBuf },
    #[error("cannot use the master key")]
    File(#[from] secret_file::Error),
    #[error("cannot write the master key {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "the master key {path} is not 32 bytes of Base64 on each line; restore it from your backup, because secrets encrypted with it cannot be decrypted without it"
    )]
    Malformed { path: PathBuf },
    #[error("{path} does not contain the master key {id}")]
    NotFound { path: PathBuf, id: KeyId },
    #[error("the master key {id} is the current one: make another key current first")]
    Current { id: KeyId },
}

/// Identifies a master key: the first bytes of its SHA-256, which every ciphertext begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(pub(crate) [u8; KeyId::LENGTH]);

impl KeyId {
    pub(crate) const LENGTH: usize = 4;

    /// Whether a ciphertext was encrypted with this key.
    pub(crate) fn encrypted(self, ciphertext: &[u8]) -> bool {
        ciphertext.starts_with(&self.0)
    }

    /// The id that a ciphertext begins with.
    pub(crate) fn of_ciphertext(ciphertext: &[u8]) -> Option<Self> {
        ciphertext.first_chunk().copied().map(Self)
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl FromStr for KeyId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_id = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u32::from_str_radix(text, 16) {
            Ok(number) if is_id => Ok(Self(number.to_be_bytes())),
            _ => Err("not the id of a master key: 8 hexadecimal digits"),
        }
    }
}

/// Lists or changes the keys of a file.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum MasterKeyCommand {
    /// List the ids of the keys
    List,
    /// Add a new key, which only decrypts until `use` makes it current
    ///
    /// With several cores, copy the file to all of them before `use`.
    Add {
        /// Make it current at once, for a platform with one core
        #[arg(long)]
        current: bool,
    },
    /// Make a key the current one, which encrypts
    Use {
        /// Id of the key
        id: KeyId,
    },
    /// Move a key that is no longer used to <FILE>.removed
    ///
    /// A key is no longer used once `delivery keys rotate-master` lists it under `unused keys`, and
    /// the price quotes issued before `use` have expired (15 minutes, or the longest `quote_expiry`
    /// of the price lists). Older backups of the database still need it: it stays in <FILE>.removed.
    Remove {
        /// Id of the key
        id: KeyId,
    },
}

impl MasterKeyCommand {
    /// Executes the command on a file. Returns the ids of its keys, the current one first.
    pub fn run(self, path: &Path) -> Result<Vec<KeyId>, Error> {
        let keys = match self {
            Self::List => MasterKeys::read(path)?,
            Self::Add { current } => change(path, |keys, _| {
                keys.add(current);
                Ok(())
            })?,
            Self::Use { id } => change(path, |keys, path| {
                let at = keys.position(path, id)?;
                keys.0[..=at].rotate_right(1);
                Ok(())
            })?,
            Self::Remove { id } => change(path, |keys, path| keys.remove(path, id))?,
        };
        Ok(keys.ids().collect())
    }
}

/// The keys of a file, the current one first. There is at least one.
pub(crate) struct MasterKeys(Vec<MasterKey>);

pub(crate) struct MasterKey(Zeroizing<[u8; KEY_LENGTH]>);

impl MasterKey {
    pub(crate) fn id(&self) -> KeyId {
        let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(*self.0));
        KeyId([a, b, c, d])
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LENGTH] {
        &self.0
    }

    fn new() -> Self {
        Self(Zeroizing::new(process::random::bytes()))
    }

    fn parse(line: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64_STANDARD.decode(line).ok()?);
        let key = <[u8; KEY_LENGTH]>::try_from(bytes.as_slice()).ok()?;
        Some(Self(Zeroizing::new(key)))
    }
}

impl MasterKeys {
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = secret_file::read(path).map_err(|error| match error {
            secret_file::Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Error::Missing {
                    path: path.to_owned(),
                }
            }
            error => error.into(),
        })?;
        let malformed = || Error::Malformed {
            path: path.to_owned(),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let parsed: Option<Vec<_>> = lines.map(MasterKey::parse).collect();
        let keys = Self(parsed.ok_or_else(malformed)?);
        let mut ids: Vec<_> = keys.ids().collect();
        ids.sort();
        ids.dedup();
        if ids.is_empty() || ids.len() < keys.0.len() {
            return Err(malformed());
        }
        Ok(keys)
    }

    /// Like [`MasterKeys::read`]; creates the file with a new key, readable only by its owner, if it
    /// does not exist.
    pub(crate) fn read_or_create(path: &Path) -> Result<Self, Error> {
        let exists = path
            .try_exists()
            .map_err(|source| write_error(path, source))?;
        if !exists {
            let new = Self(vec![MasterKey::new()]);
            new.create(path)
                .map_err(|source| write_error(path, source))?;
        }
        Self::read(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MasterKey> {
        self.0.iter()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(MasterKey::id)
    }

    fn position(&self, path: &Path, id: KeyId) -> Result<usize, Error> {
        let position = self.ids().position(|other| other == id);
        position.ok_or_else(|| Error::NotFound {
            path: path.to_owned(),
            id,
        })
    }

    fn add(&mut self, is_current: bool) {
        let at = if is_current { 0 } else { self.0.len() };
        self.0.insert(at, MasterKey::new());
    }

    /// Removes a key, after adding it to the removed ones.
    fn remove(&mut self, path: &Path, id: KeyId) -> Result<(), Error> {
        let at = self.position(path, id)?;
        if at == 0 {
            return Err(Error::Current { id });
        }
        let key = self.0.remove(at);
        let removed_path = path.with_added_extension("removed");
        let mut removed = match Self::read(&removed_path) {
            Err(Error::Missing { .. }) => Self(Vec::new()),
            read => read?,
        };
        if removed.ids().all(|other| other != id) {
            removed.0.push(key);
        }
        removed
            .replace(&removed_path)
            .map_err(|source| write_error(&removed_path, source))
    }

    /// Writes a new file and links it to `path` unless that exists, so that a crash leaves no
    /// partial key.
    fn create(&self, path: &Path) -> io::Result<()> {
        let directory = directory_of(path);
        match self.write_temporary(directory)?.persist_noclobber(path) {
            Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
            _ => File::open(directory)?.sync_all(),
        }
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        let directory = directory_of(path);
        let file = self.write_temporary(directory)?;
        if let Ok(replaced) = fs::metadata(path) {
            let new = file.as_file().metadata()?;
            if (new.uid(), new.gid()) != (replaced.uid(), replaced.gid()) {
                chown(file.path(), Some(replaced.uid()), Some(replaced.gid()))?;
            }
            file.as_file().set_permissions(replaced.permissions())?;
        }
        file.persist(path)?;
        File::open(directory)?.sync_all()
    }

    /// A flushed file with mode 0600 and a random name, which no other user can have guessed.
    fn write_temporary(&self, directory: &Path) -> io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new_in(directory)?;
        for key in self.iter() {
            let text = Zeroizing::new(BASE64_STANDARD.encode(key.bytes()));
            writeln!(file, "{}", *text)?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// Flushes a file and its directory: a key must not be lost after a secret was encrypted with it,
/// even if another program wrote the file.
pub(crate) fn flush(path: &Path) -> Result<(), Error> {
    let file_flushed = File::open(path).and_then(|file| file.sync_all());
    let flushed = file_flushed.and_then(|()| match File::open(directory_of(path)) {
        Ok(directory) => directory.sync_all(),
        // A directory of another user, such as `/etc/delivery`, which belongs to root.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    });
    flushed.or_else(|error| match error.kind() {
        // The file system cannot flush, or is read-only.
        io::ErrorKind::InvalidInput
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(write_error(path, error)),
    })
}

/// Changes a file while no other process does.
fn change(
    path: &Path,
    change: impl FnOnce(&mut MasterKeys, &Path) -> Result<(), Error>,
) -> Result<MasterKeys, Error> {
    let write_error = |source| write_error(path, source);
    // Replaces the target of a symbolic link, not the link.
    let file = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        file => file.map_err(write_error)?,
    };
    // The file itself cannot be locked: it is replaced.
    let lock = File::open(directory_of(&file)).map_err(write_error)?;
    lock.lock().map_err(write_error)?;
    let mut keys = MasterKeys::read(&file)?;
    change(&mut keys, &file)?;
    keys.replace(&file).map_err(write_error)?;
    Ok(keys)
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
