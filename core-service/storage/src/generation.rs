//! Detects a copy of an `SQLite` file that lacks its write-ahead log, which has the latest commits.
//!
//! The file's `user_version` is its generation. It advances after every checkpoint, in the log, and
//! is then written to a file beside the database (`…-generation`), before further writes are
//! acknowledged. So the database with its log is never behind that file, even if the process is
//! killed; its main file alone is behind, as long as the log has an acknowledged write. An even
//! generation is in use, an odd one closed: a closed database is complete without the other files.
//!
//! Generations are compared as serial numbers, which may wrap around.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use migrations::sqlite_file;
use sea_orm::ConnectionTrait;
use tempfile::NamedTempFile;

use super::{Error, rows};

/// The value of a file that no program of this platform has opened.
const NEW: i32 = 0;

/// The generation of a database, and the file beside it.
#[derive(Clone, Debug)]
pub(super) struct Generation {
    database: PathBuf,
    /// `…-generation`.
    file: PathBuf,
}

/// What a checkpoint leaves in the log's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// The log's frames, which later commits overwrite.
    Passive,
    /// Nothing.
    Truncate,
}

impl Generation {
    /// `None` for a database in memory.
    pub(super) fn of(url: &str) -> Option<Self> {
        sqlite_file(url).map(|database| Self::beside(&database))
    }

    pub(super) fn beside(database: &Path) -> Self {
        let mut file = database.as_os_str().to_owned();
        file.push("-generation");
        Self {
            file: file.into(),
            database: database.to_owned(),
        }
    }

    /// Fails if the database is a copy that lacks changes.
    pub(super) async fn reject_incomplete_copy(
        &self,
        connection: &impl ConnectionTrait,
    ) -> Result<(), Error> {
        // The file first: the database may be in use, and is never behind the file.
        let expected = self.read()?;
        let found = version(connection).await?;
        let reason = match expected {
            Some(expected) if is_before(found, expected) => {
                "lacks changes that were acknowledged: it was copied or replaced without its write-ahead log"
            }
            None if found != NEW && !is_closed(found) => {
                "may lack changes that were acknowledged: it was copied while it was in use, or its -generation file was removed"
            }
            _ => return Ok(()),
        };
        let database = self.database.display();
        let name = self.database.file_name().unwrap_or_default().display();
        Err(Error::Misconfigured(format!(
            "{database} {reason}; restore a backup (delivery restore), or copy all files {name}* of the stopped platform. To start without what is missing, run: echo {found} > {}",
            self.file.display()
        )))
    }

    /// Writes the generation of a closed database into the file.
    pub(super) async fn write_file(&self, connection: &impl ConnectionTrait) -> Result<(), Error> {
        self.write(version(connection).await?).await
    }

    /// Marks the database as in use, in its main file too.
    pub(super) async fn begin(&self, connection: &impl ConnectionTrait) -> Result<(), Error> {
        if self.read()?.is_none() {
            // Before the database is in use, which requires the file.
            self.write(version(connection).await?).await?;
        }
        advance(connection, next).await?;
        match self.checkpoint(connection, Checkpoint::Truncate).await {
            // Another program reads the file, such as a backup. The log remains long meanwhile.
            Err(Error::LogNotTruncated) => Ok(()),
            result => result,
        }
    }

    /// Moves the log's commits into the main file and advances the generation. The generation also
    /// advances if the log cannot be truncated.
    pub(super) async fn checkpoint(
        &self,
        connection: &impl ConnectionTrait,
        checkpoint: Checkpoint,
    ) -> Result<(), Error> {
        let result = run_checkpoint(connection, checkpoint).await;
        if !matches!(result, Ok(()) | Err(Error::LogNotTruncated)) {
            return result;
        }
        let version = advance(connection, next).await?;
        self.write(version).await?;
        result
    }

    /// Marks the database as closed.
    pub(super) async fn end(connection: &impl ConnectionTrait) -> Result<(), Error> {
        advance(connection, |version| version | 1).await?;
        Ok(())
    }

    /// The number in the file; `None` if there is none.
    fn read(&self) -> Result<Option<i32>, Error> {
        let path = self.file.display();
        match fs::read_to_string(&self.file) {
            Ok(text) => text.trim().parse().map(Some).map_err(|_| {
                Error::Misconfigured(format!(
                    "{path} does not contain a number: restore a backup"
                ))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Misconfigured(format!("cannot read {path}: {error}"))),
        }
    }

    async fn write(&self, version: i32) -> Result<(), Error> {
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || replace(&file, version)).await;
        written
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| {
                let path = self.file.display();
                Error::Misconfigured(format!("cannot write {path}: {error}"))
            })
    }
}

/// Fails with [`Error::LogNotTruncated`] while a connection reads what the log contains.
pub(super) async fn run_checkpoint(
    connection: &impl ConnectionTrait,
    checkpoint: Checkpoint,
) -> Result<(), Error> {
    let statement = match checkpoint {
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let is_busy = rows::value::<i32>(connection, statement).await? != 0;
    if is_busy && checkpoint == Checkpoint::Truncate {
        return Err(Error::LogNotTruncated);
    }
    Ok(())
}

async fn version(connection: &impl ConnectionTrait) -> Result<i32, Error> {
    rows::value(connection, "PRAGMA user_version").await
}

/// Replaces `user_version` by what `to` makes of it, in a transaction: another process, such as a second
/// bootstrap, must not set it back. Returns the new one.
async fn advance(connection: &impl ConnectionTrait, to: impl Fn(i32) -> i32) -> Result<i32, Error> {
    connection.execute_unprepared("BEGIN IMMEDIATE").await?;
    let advanced = async {
        let version = to(version(connection).await?);
        let set = format!("PRAGMA user_version = {version}");
        connection.execute_unprepared(&set).await?;
        connection.execute_unprepared("COMMIT").await?;
        Ok(version)
    };
    let advanced = advanced.await;
    if advanced.is_err() {
        let _ = connection.execute_unprepared("ROLLBACK").await;
    }
    advanced
}

/// The next generation in use.
const fn next(version: i32) -> i32 {
    let next = (version | 1).wrapping_add(1);
    if next == NEW { next + 2 } else { next }
}

const fn is_closed(version: i32) -> bool {
    version & 1 == 1
}

const fn is_before(version: i32, other: i32) -> bool {
    version.wrapping_sub(other) < 0
}

/// Replaces the file atomically, and flushes it: a power loss must not leave an empty one.
fn replace(path: &Path, version: i32) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Created with mode 0600.
    let mut file = NamedTempFile::new_in(directory)?;
    writeln!(file, "{version}")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::{Storage, fixture};

    const FILE: &str = "delivery.sqlite";
    const SIDECAR: &str = "delivery.sqlite-generation";

    fn copy(from: &Path, to: &Path, names: &[&str]) {
        for name in names {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }

    async fn connect(directory: &Path) -> Result<Storage, Error> {
        let file = directory.join(FILE);
        Storage::connect(&format!("sqlite://{}?mode=rwc", file.display()), 4).await
    }

    async fn add_store(storage: &Storage, name: &str) {
        let store = fixture::store(name);
        let write = storage.write(move |transaction| async move {
            crate::stores::insert(&transaction, &store).await
        });
        write.await.unwrap();
    }

    async fn refusal(directory: &Path) -> String {
        connect(directory).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_file_that_is_opened_and_closed_at_the_same_time_stays_usable() {
        let directory = TempDir::new().unwrap();
        let open_and_close = async || {
            let storage = connect(directory.path()).await.unwrap();
            storage.close().await.unwrap();
        };
        open_and_close().await;
        for _ in 0..20 {
            tokio::join!(open_and_close(), open_and_close());
        }
    }

    #[tokio::test]
    async fn a_copy_without_the_log_is_refused_and_accepted_once_its_generation_is_written() {
        let (original, storage) = fixture::sqlite().await;
        add_store(&storage, "in the log").await;
        for names in [&[FILE][..], &[FILE, SIDECAR]] {
            let copied = TempDir::new().unwrap();
            copy(original.path(), copied.path(), names);

            let error = refusal(copied.path()).await;

            assert!(error.contains("changes that were acknowledged"), "{error}");
            let (_, command) = error.split_once("run: ").unwrap();
            let status = std::process::Command::new("sh")
                .args(["-c", command])
                .status();
            assert!(status.unwrap().success());
            let accepted = connect(copied.path()).await.unwrap();
            accepted.close().await.unwrap();
        }
    }

    /// Also after each checkpoint, which moves everything before it into the main file.
    #[tokio::test]
    async fn a_copy_without_the_log_is_refused_after_any_number_of_writes() {
        let (original, storage) = fixture::sqlite().await;
        for number in 0..200 {
            add_store(&storage, "acknowledged").await;
            if number % 20 != 0 {
                continue;
            }
            let copied = TempDir::new().unwrap();
            copy(original.path(), copied.path(), &[FILE, SIDECAR]);
            let error = refusal(copied.path()).await;
            assert!(error.contains("lacks changes"), "{number}: {error}");
        }
        storage.truncate_write_ahead_log().await.unwrap();
        add_store(&storage, "after the log was truncated").await;
        let copied = TempDir::new().unwrap();
        copy(original.path(), copied.path(), &[FILE, SIDECAR]);
        assert!(refusal(copied.path()).await.contains("lacks changes"));
    }

    #[tokio::test]
    async fn a_copy_of_all_files_of_a_closed_database_or_of_a_killed_process_is_accepted() {
        let (original, storage) = fixture::sqlite().await;
        add_store(&storage, "in the log").await;
        let killed = TempDir::new().unwrap();
        let log = "delivery.sqlite-wal";
        copy(original.path(), killed.path(), &[FILE, SIDECAR, log]);
        let killed = connect(killed.path()).await.unwrap();
        killed.close().await.unwrap();

        let storage = std::sync::Arc::into_inner(storage).unwrap();
        storage.close().await.unwrap();
        for names in [&[FILE][..], &[FILE, SIDECAR]] {
            let copied = TempDir::new().unwrap();
            copy(original.path(), copied.path(), names);
            let copied = connect(copied.path()).await.unwrap();
            copied.close().await.unwrap();
        }
    }

    /// As `sqlite3` does when it is the last to close the file of a killed process.
    #[tokio::test]
    async fn a_database_whose_log_another_program_has_merged_is_accepted() {
        let (original, storage) = fixture::sqlite().await;
        add_store(&storage, "in the log").await;
        run_checkpoint(storage.reader(), Checkpoint::Truncate)
            .await
            .unwrap();
        let copied = TempDir::new().unwrap();
        copy(original.path(), copied.path(), &[FILE, SIDECAR]);

        let accepted = connect(copied.path()).await.unwrap();

        accepted.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_older_than_the_one_it_replaces_is_refused() {
        let (original, storage) = fixture::sqlite().await;
        let storage = std::sync::Arc::into_inner(storage).unwrap();
        storage.close().await.unwrap();
        let older = TempDir::new().unwrap();
        copy(original.path(), older.path(), &[FILE]);
        let later = fixture::open(&original).await;
        later.close().await.unwrap();

        copy(older.path(), original.path(), &[FILE]);

        assert!(refusal(original.path()).await.contains("lacks changes"));
    }

    #[test]
    fn generations_wrap_around_and_skip_that_of_a_new_file() {
        assert_eq!((next(0), next(1), next(2)), (2, 2, 4));
        assert_eq!((next(i32::MAX - 1), next(-2), next(-1)), (i32::MIN, 2, 2));
        assert!(is_before(i32::MAX - 1, i32::MIN) && !is_before(i32::MIN, i32::MAX - 1));
        assert!(is_before(41, 42) && !is_before(42, 42));
    }
}
