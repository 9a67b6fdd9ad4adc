//! Looks at a database, beside the cores that use it: creates and changes nothing.

use std::path::{Path, PathBuf};

use sea_orm::{ConnectionTrait as _, DbBackend, sqlx::sqlite::SqliteConnectOptions};

use super::{
    Error, HealthCheck, Session, backup::open_file, connect::Target, connections::Connections,
    rows, storage,
};

const CONNECTIONS: u32 = 2;

/// An open database.
#[derive(Debug)]
pub struct Inspection {
    reader: Connections,
    /// With `SQLite`.
    file: Option<PathBuf>,
}

/// What a `PostgreSQL` server says about itself and this connection.
#[derive(Clone, Debug)]
pub struct Server {
    /// 170002 for version 17.2.
    pub version: i32,
    pub isolation: String,
    /// Connections that this role may open to this database, those of other programs included.
    pub connections: i32,
    /// Whether the connection leaves this machine without TLS.
    pub is_exposed: bool,
}

impl Inspection {
    /// `None` if an `SQLite` file does not exist. Fails where a core would: at a server that is not
    /// reachable, loses commits or accepts no writes.
    pub async fn open(url: &str) -> Result<Option<Self>, Error> {
        let file = migrations::sqlite_file(url);
        let target = match &file {
            Some(file) if matches!(file.try_exists(), Ok(false)) => return Ok(None),
            Some(file) => {
                open_read_only(file).await?.close().await?;
                Target::sqlite(read_only(file))
            }
            None => storage::open(url).await?,
        };
        let reader = Connections::new(target, CONNECTIONS);
        if reader.get_database_backend() == DbBackend::Postgres {
            migrations::check_writable(&reader).await?;
        }
        Ok(Some(Self { reader, file }))
    }

    pub fn reader(&self) -> &Connections {
        &self.reader
    }

    /// For [`HealthCheck::clock_difference`]: it has no connection for writes.
    pub fn health_check(&self) -> HealthCheck {
        HealthCheck::new(self.reader.clone(), None)
    }

    /// The engine and its version: `PostgreSQL 17.2`.
    pub async fn version(&self) -> Result<String, Error> {
        let select = match self.reader.get_database_backend() {
            DbBackend::Postgres => "SELECT 'PostgreSQL ' || current_setting('server_version')",
            _ => "SELECT 'SQLite ' || sqlite_version()",
        };
        rows::value(&self.reader, select).await
    }

    /// `None` with `SQLite`.
    pub async fn server(&self) -> Result<Option<Server>, Error> {
        if self.reader.get_database_backend() != DbBackend::Postgres {
            return Ok(None);
        }
        let select = "SELECT current_setting('server_version_num')::int,
            current_setting('default_transaction_isolation'),
            least(
                current_setting('max_connections')::int
                    - current_setting('superuser_reserved_connections')::int,
                (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
                (SELECT nullif(datconnlimit, -1) FROM pg_database
                    WHERE datname = current_database())
            ),
            NOT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
                AND coalesce(NOT inet_server_addr() <<= ANY ('{127.0.0.0/8,::1/128}'::inet[]), false)";
        let rows = rows::query(&self.reader, select, []).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(Server {
            version: row.try_get_by_index(0)?,
            isolation: row.try_get_by_index(1)?,
            connections: row.try_get_by_index(2)?,
            is_exposed: row.try_get_by_index(3)?,
        }))
    }

    /// The migrations that have not been applied; `None` if the database has no schema yet. Fails if its
    /// schema is newer than this program.
    pub async fn pending_migrations(&self) -> Result<Option<Vec<&'static str>>, Error> {
        if migrations::is_empty(&self.reader).await? {
            return Ok(None);
        }
        Ok(Some(migrations::pending(&self.reader).await?))
    }

    /// The file of `SQLite`; fails if its pages or indexes are inconsistent. Reads the whole file, a table
    /// at a time: a long read would keep a running platform from truncating its log.
    pub async fn check_file(&self) -> Result<Option<&Path>, Error> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        // Another process may open the file meanwhile, and change what is read: then it is read again.
        if check_file(file).await.is_err() {
            check_file(file).await?;
        }
        Ok(Some(file))
    }
}

async fn check_file(file: &Path) -> Result<(), Error> {
    // On a connection of its own: the other checks need not wait.
    let connection = open_read_only(file).await?;
    // Virtual tables have no pages.
    let select = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0
        UNION ALL SELECT 'sqlite_schema'";
    for row in rows::query(&connection, select, []).await? {
        let table: String = row.try_get_by_index(0)?;
        let quick_check = format!("PRAGMA quick_check('{}')", table.replace('\'', "''"));
        let found: String = rows::value(&connection, &quick_check).await?;
        if found != "ok" {
            return Err(Error::Misconfigured(format!(
                "the database {} is damaged ({found}): restore a backup (delivery restore)",
                file.display()
            )));
        }
    }
    Ok(())
}

/// Whether no process uses a database file: it has no log.
fn is_unused(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    !Path::new(&log).exists()
}

async fn open_read_only(file: &Path) -> Result<Session, Error> {
    open_file(read_only(file)).await
}

fn read_only(file: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(file);
    // SQLite would create a log even to read.
    options.read_only(true).immutable(is_unused(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn a_database_shows_its_engine_and_version() {
        let (directory, _storage) = fixture::sqlite().await;
        let mut urls = vec![(fixture::url(&directory), "SQLite 3.")];
        urls.extend(fixture::postgres_url().map(|url| (url, "PostgreSQL 1")));
        for (url, expected) in urls {
            let database = Inspection::open(&url).await.unwrap().unwrap();

            let version = database.version().await.unwrap();

            assert!(version.starts_with(expected), "{version}");
        }
    }

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
