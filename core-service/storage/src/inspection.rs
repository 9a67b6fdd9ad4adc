//! Looks at a database, beside the cores that use it: creates and changes nothing.

use std::path::Path;

use jiff::SignedDuration;
use process::clock::Clock;
use rustix::fs::{Access, access};
use sea_orm::{ConnectionTrait as _, DbBackend, sqlx::sqlite::SqliteConnectOptions};

use super::{
    Error, HealthCheck, backup::open_file, connect::Target, connections::Connections, storage,
};

const CONNECTIONS: u32 = 2;

/// An open database.
#[derive(Debug)]
pub struct Inspection(Connections);

impl Inspection {
    /// `None` if an `SQLite` file does not exist. Fails where a core would: at a database that cannot
    /// be reached, loses commits or accepts no writes.
    pub async fn open(url: &str) -> Result<Option<Self>, Error> {
        let target = match migrations::sqlite_file(url) {
            Some(file) if matches!(file.try_exists(), Ok(false)) => return Ok(None),
            Some(file) => {
                check_writable(&file)?;
                let options = SqliteConnectOptions::new()
                    .filename(&file)
                    .read_only(true)
                    // SQLite would create a log even to read.
                    .immutable(is_unused(&file));
                open_file(options.clone()).await?.close().await?;
                Target::sqlite(options)
            }
            None => storage::open(url).await?,
        };
        let reader = Connections::new(target, CONNECTIONS);
        if reader.get_database_backend() == DbBackend::Postgres {
            migrations::check_writable(&reader).await?;
        }
        Ok(Some(Self(reader)))
    }

    pub fn reader(&self) -> &Connections {
        &self.0
    }

    /// As [`HealthCheck::clock_difference`]; `None` with `SQLite`.
    pub async fn clock_difference(&self, clock: &Clock) -> Result<Option<SignedDuration>, Error> {
        if self.0.get_database_backend() != DbBackend::Postgres {
            return Ok(None);
        }
        let health_check = HealthCheck::new(self.0.clone(), None);
        health_check.clock_difference(clock).await.map(Some)
    }

    /// The migrations that have not been applied; `None` if the database has no schema yet. Fails if its
    /// schema is newer than this program.
    pub async fn pending_migrations(&self) -> Result<Option<Vec<&'static str>>, Error> {
        if migrations::is_empty(&self.0).await? {
            return Ok(None);
        }
        Ok(Some(migrations::pending(&self.0).await?))
    }
}

/// Fails if this user may not write to a file, or not create `SQLite`'s files beside it.
fn check_writable(file: &Path) -> Result<(), Error> {
    let directory = file
        .parent()
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    access(file, Access::READ_OK | Access::WRITE_OK)
        .and_then(|()| access(directory, Access::WRITE_OK | Access::EXEC_OK))
        .map_err(|error| {
            Error::Misconfigured(format!(
                "this user cannot write to {} ({error}): let the user of the platform own the file and its directory, and mount them for writes",
                file.display()
            ))
        })
}

/// Whether no process uses a database file: it has no log.
fn is_unused(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    !Path::new(&log).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_cannot_be_examined_is_not_taken_for_a_missing_one() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&link, &link).unwrap();

        let missing = Inspection::open(&format!("sqlite://{}x", link.display())).await;
        let unusable = Inspection::open(&format!("sqlite://{}", link.display()))
            .await
            .err();

        assert!(missing.unwrap().is_none());
        assert!(
            matches!(unusable, Some(Error::Misconfigured(_))),
            "{unusable:?}"
        );
    }
}
