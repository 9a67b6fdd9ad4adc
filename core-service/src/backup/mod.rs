//! Backups of a platform over `SQLite`: taken while it serves, verified, restored elsewhere.
//!
//! A backup is one file: an `SQLite` database with a description of itself, and a checksum. It
//! contains everything but the master key, which is included on request, and the gazetteer, whose
//! addresses can be imported again.

mod checksum;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use process::secret_file;
use storage::backup::{Contents, Description};
use tempfile::TempPath;
use zeroize::Zeroizing;

use crate::secrets::{
    master_keys::{KeyId, directory_of},
    secret_box::SecretBox,
};

/// A backup, as reported to the operator.
#[derive(Debug)]
pub struct Backup {
    pub file: PathBuf,
    pub bytes: u64,
    pub taken_at: String,
    /// The version of the program that took it.
    pub program: String,
    /// The last migration of its schema.
    pub schema: String,
    /// The identifier of the master key that it requires.
    pub master_key: Option<String>,
    pub includes_master_key: bool,
    /// The number of rows in the tables of the most important resources, by resource.
    pub counts: BTreeMap<&'static str, i64>,
}

/// Where a backup comes from.
#[derive(Clone, Debug)]
pub struct BackupSource {
    pub database: PathBuf,
    /// The master key's file, if the key is to be included.
    pub master_key_file: Option<PathBuf>,
    pub taken_at: Timestamp,
    /// The version of this program.
    pub program: String,
}

/// The path under which a backup is written until it is complete.
pub fn partial_path(backup: &Path) -> PathBuf {
    backup.with_added_extension("partial")
}

/// Takes a backup. The file appears once it is complete and on disk.
pub async fn back_up(source: &BackupSource, file: &Path, replace: bool) -> anyhow::Result<Backup> {
    let (database, shown) = (&source.database, file.display());
    match fs::metadata(database) {
        Ok(found) if found.is_file() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(database, error));
        }
        _ => bail!(
            "{} does not exist: name the data directory of an all-in-one over SQLite (--data-dir), or the file (--database-file); PostgreSQL is backed up by its own tools, see docs/backup.md",
            database.display()
        ),
    }
    if let Ok(found) = fs::symlink_metadata(file) {
        ensure!(
            found.is_file(),
            "{shown} is a directory, a device, a symbolic link or another special file, which a backup does not replace: name another file, or the file that the link points to"
        );
        ensure!(
            replace,
            "{shown} exists: name another file, or replace it with --force"
        );
    }
    let directory = directory_of(file);
    let canonical = |path: &Path| path.canonicalize().map_err(|error| failed(path, error));
    if canonical(directory)? == canonical(directory_of(database))? {
        bail!(
            "{shown} is in the directory of the database: name a file in another directory, better on another disk"
        );
    }
    let master_key = match &source.master_key_file {
        Some(path) => {
            SecretBox::open(path)?;
            Some(read_master_key(path)?)
        }
        None => None,
    };

    let partial_path = partial_path(file);
    let mut copy = create_locked(&partial_path)?;
    let partial = removed_on_error(&partial_path)?;
    let description = Description {
        taken_at: source.taken_at,
        program: source.program.clone(),
        master_key: master_key.map(|key| key.trim().to_owned()),
    };
    storage::backup::copy(database, &partial, &description)
        .await
        .with_context(|| format!("{} cannot be backed up", database.display()))?;
    checksum::append(&mut copy)
        .and_then(|()| Ok(partial.persist(file)?))
        .and_then(|()| File::open(directory)?.sync_all())
        .map_err(|error| failed(file, error))?;
    inspect(file, file).await.map(|(backup, _)| backup)
}

/// Verifies a backup: its checksum, its consistency and its schema.
pub async fn verify(file: &Path) -> anyhow::Result<Backup> {
    copy_verified(file, &mut io::sink())?;
    inspect(file, file).await.map(|(backup, _)| backup)
}

/// Restores a backup as `database` and `master_key`, in a directory without either. The database
/// appears last: what is left of an interrupted restore cannot be started.
pub async fn restore(
    file: &Path,
    master_key_file: Option<&Path>,
    database: &Path,
    master_key: &Path,
) -> anyhow::Result<Backup> {
    let copy_path = restoring_path(database);
    let mut target = create_new(&copy_path)?;
    let copy = removed_on_error(&copy_path)?;
    copy_verified(file, &mut target)?;
    target.sync_all().map_err(|error| failed(&copy, error))?;
    let (backup, contents) = inspect(&copy, file).await?;
    let key = match (master_key_file, contents.description.master_key) {
        (Some(path), _) => read_master_key(path)?,
        (None, Some(key)) => Zeroizing::new(key),
        (None, None) => bail!(
            "this backup does not include the master key: name its file with --master-key-file"
        ),
    };
    let mut key_file = create_new(master_key)?;
    let mut key_path = removed_on_error(master_key)?;
    writeln!(key_file, "{}", key.trim())
        .and_then(|()| key_file.sync_all())
        .map_err(|error| failed(master_key, error))?;
    let secret_box = SecretBox::open(master_key)?;
    if let Some(encrypted) = &contents.encrypted_private_key
        && !KeyId::of_ciphertext(encrypted).is_some_and(|id| secret_box.key_ids().contains(&id))
    {
        bail!(
            "{} is another master key than that of the platform, {}",
            master_key_file.unwrap_or(file).display(),
            backup.master_key.unwrap_or_default()
        );
    }
    storage::backup::remove_description(&copy)
        .await
        .with_context(|| unusable(file))?;
    target
        .sync_all()
        .and_then(|()| Ok(copy.persist(database)?))
        .and_then(|()| File::open(directory_of(database))?.sync_all())
        .map_err(|error| failed(database, error))?;
    key_path.disable_cleanup(true);
    Ok(backup)
}

/// The path under which a database is restored until it is complete.
pub fn restoring_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-restoring");
    path.into()
}

/// Inspects a backup at `path` that is reported as `file`.
async fn inspect(path: &Path, file: &Path) -> anyhow::Result<(Backup, Contents)> {
    let contents = storage::backup::inspect(path)
        .await
        .with_context(|| unusable(file))?;
    let metadata = fs::metadata(file).map_err(|error| failed(file, error))?;
    let description = &contents.description;
    let backup = Backup {
        file: file.to_owned(),
        bytes: metadata.len(),
        taken_at: description.taken_at.to_string(),
        program: description.program.clone(),
        schema: contents.schema.clone(),
        master_key: contents
            .encrypted_private_key
            .as_deref()
            .and_then(KeyId::of_ciphertext)
            .map(|id| id.to_string()),
        includes_master_key: description.master_key.is_some(),
        counts: contents.counts.iter().copied().collect(),
    };
    Ok((backup, contents))
}

fn copy_verified(file: &Path, target: &mut impl io::Write) -> anyhow::Result<()> {
    let copied = File::open(file).and_then(|mut open| checksum::copy_verified(&mut open, target));
    ensure!(
        copied.map_err(|error| failed(file, error))?,
        "{} is not a complete backup: its checksum is missing or wrong; use another copy of it, or an earlier backup",
        file.display()
    );
    Ok(())
}

/// An empty file that no other backup is written to.
fn create_locked(path: &Path) -> anyhow::Result<File> {
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed(path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another backup is being written to {}", path.display())
        }
        Err(fs::TryLockError::Error(error)) => return Err(failed(path, error)),
    }
    file.set_len(0).map_err(|error| failed(path, error))?;
    Ok(file)
}

/// The path of a file that is removed when this is dropped.
fn removed_on_error(path: &Path) -> anyhow::Result<TempPath> {
    TempPath::try_from_path(path).map_err(|error| failed(path, error))
}

fn create_new(path: &Path) -> anyhow::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed(path, error))
}

fn read_master_key(path: &Path) -> anyhow::Result<Zeroizing<String>> {
    secret_file::read(path).context("cannot read the master key to be included")
}

fn failed(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("{} cannot be used", path.display()))
}

fn unusable(backup: &Path) -> String {
    format!("{} cannot be restored", backup.display())
}
