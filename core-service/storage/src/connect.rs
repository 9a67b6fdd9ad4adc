//! Opens a database: its connections and pragmas, and the check of its settings.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use migrations::{Pool, without_prepared_statements};
use sea_orm::{
    ConnectOptions, DatabaseConnection, DbBackend, DbErr, RuntimeErr,
    sqlx::{
        self, ConnectOptions as _, Connection as _,
        postgres::{PgConnectOptions, PgConnection},
        sqlite::{
            SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
            SqliteSynchronous,
        },
    },
};

use super::{
    Error,
    connections::ACQUIRE_TIMEOUT,
    metrics::Metrics,
    rows,
    session::{Connection, Driver, Session},
};

/// The capacity of a connection's cache of prepared statements: more than the program uses.
const STATEMENT_CACHE: usize = 256;

/// How many rows the thread of an `SQLite` connection may read ahead: more than the longest page of a
/// list has, so that it need not wait until they are taken.
const ROW_BUFFER: usize = 512;

/// How many connections read an `SQLite` file.
pub(super) const SQLITE_READERS: u32 = 4;

/// A database, and how connections to it are opened.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Postgres {
        options: Box<PgConnectOptions>,
        without_prepared_statements: bool,
    },
    Sqlite(Box<SqliteConnectOptions>),
}

impl Target {
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(url).map_err(unavailable)?;
            Ok(Self::sqlite(configured(options)))
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let without_prepared_statements = without_prepared_statements(url);
            let mut options = PgConnectOptions::from_str(url).map_err(unavailable)?;
            if !without_prepared_statements {
                options = options.statement_cache_capacity(STATEMENT_CACHE);
            }
            Ok(Self::Postgres {
                options: Box::new(options.disable_statement_logging()),
                without_prepared_statements,
            })
        } else {
            Err(Error::Misconfigured(
                "the database URL must begin with `sqlite:` or `postgres:`".to_owned(),
            ))
        }
    }

    pub(super) fn sqlite(options: SqliteConnectOptions) -> Self {
        Self::Sqlite(Box::new(options.disable_statement_logging()))
    }

    pub(super) fn backend(&self) -> DbBackend {
        match self {
            Self::Postgres { .. } => DbBackend::Postgres,
            Self::Sqlite(_) => DbBackend::Sqlite,
        }
    }

    /// Whether a statement is prepared for its transaction only.
    pub(super) fn is_without_prepared_statements(&self) -> bool {
        match self {
            Self::Postgres {
                without_prepared_statements,
                ..
            } => *without_prepared_statements,
            Self::Sqlite(_) => false,
        }
    }

    /// Opens a connection. Boxed: the drivers' futures are larger than all that uses a connection.
    pub(super) fn connect<'a>(
        &'a self,
        metrics: &'a Metrics,
    ) -> BoxFuture<'a, Result<Connection, sqlx::Error>> {
        Box::pin(async {
            let driver = match self {
                Self::Postgres { options, .. } => {
                    Driver::Postgres(PgConnection::connect_with(options).await?)
                }
                Self::Sqlite(options) => {
                    Driver::Sqlite(SqliteConnection::connect_with(options).await?)
                }
            };
            Ok(Connection::new(driver, metrics.clone()))
        })
    }

    /// A connection for writes to an `SQLite` file.
    pub(super) async fn session(&self, metrics: &Metrics) -> Result<Session, Error> {
        let connection = self.connect(metrics).await.map_err(unavailable)?;
        Ok(Session::new(connection))
    }
}

fn configured(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .journal_mode(SqliteJournalMode::Wal)
        // A commit is on disk before it returns: it survives a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5))
        .foreign_keys(true)
        .pragma("cache_size", "-16000")
        // Erased personal data must not stay in free pages.
        .pragma("secure_delete", "ON")
        // The writer runs the checkpoints: see `generation`.
        .pragma("wal_autocheckpoint", "0")
        .statement_cache_capacity(STATEMENT_CACHE)
        .row_buffer_size(ROW_BUFFER)
}

/// Opens a database with one connection, for its migrations. Creates the file of an `SQLite` URL.
pub(super) async fn open(url: &str) -> Result<(Target, Pool), Error> {
    let target = Target::of(url)?;
    let pool = match &target {
        Target::Postgres { .. } => open_postgres(url).await?,
        Target::Sqlite(options) => {
            migrations::create_sqlite_file(url);
            let pool = SqlitePoolOptions::new().max_connections(1);
            let pool = pool.connect_with((**options).clone()).await;
            DatabaseConnection::from(pool.map_err(unavailable)?).into()
        }
    };
    Ok((target, pool))
}

async fn open_postgres(url: &str) -> Result<Pool, Error> {
    // A pool would retry until its timeout, and hide the cause.
    tokio::time::timeout(ACQUIRE_TIMEOUT, probe(url))
        .await
        .unwrap_or_else(|_| {
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(unavailable(error.into()))
        })?;
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_timeout(ACQUIRE_TIMEOUT)
        .sqlx_logging(false);
    let pool = Pool::connect(options).await?;
    for (setting, wanted) in [("fsync", "on"), ("synchronous_commit", "on")] {
        require_setting(&pool, setting, wanted).await?;
    }
    Ok(pool)
}

/// Connects once, and prepares a statement. The driver numbers the statements of each connection from
/// 1: if a pooler then gives the same session to the first connection of [`Pool`], the name of its first
/// statement exists already, and the start fails instead of a request under load.
async fn probe(url: &str) -> Result<(), Error> {
    let mut connection = PgConnection::connect(url).await.map_err(unavailable)?;
    if !without_prepared_statements(url) {
        let prepared = sqlx::query("SELECT 1").execute(&mut connection).await;
        prepared.map_err(|error| DbErr::Query(RuntimeErr::SqlxError(Arc::new(error))))?;
    }
    Ok(())
}

fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))
}

/// Fails unless a setting has the required value: with another one, the server acknowledges a
/// commit before it is on disk.
async fn require_setting(pool: &Pool, setting: &str, wanted: &str) -> Result<(), Error> {
    let select = format!("SELECT current_setting('{setting}')");
    let found: String = rows::value(pool, &select).await?;
    if found == wanted || (setting == "synchronous_commit" && found.starts_with("remote_")) {
        return Ok(());
    }
    Err(Error::Misconfigured(format!(
        "PostgreSQL runs with {setting} = {found}: acknowledged deliveries could be lost; set {setting} = {wanted}"
    )))
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, Statement};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::Storage;

    #[tokio::test]
    async fn an_unusable_sqlite_file_is_explained() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let directory = path.display();
        std::fs::write(path.join("notes"), "not a database, but long enough").unwrap();

        for (url, expected) in [
            (
                format!("sqlite://{directory}/missing/x?mode=rwc"),
                format!(
                    "the SQLite file {directory}/missing/x cannot be opened: its directory must exist and be writable by this user; append `?mode=rwc` to the URL to create the file"
                ),
            ),
            (
                format!("sqlite://{directory}/x"),
                format!(
                    "the SQLite file {directory}/x cannot be opened: its directory must exist and be writable by this user; append `?mode=rwc` to the URL to create the file"
                ),
            ),
            (
                format!("sqlite://{directory}/notes"),
                format!(
                    "the file {directory}/notes is not an SQLite database: name another file, or move this one away"
                ),
            ),
        ] {
            let error = Storage::connect(&url, 1).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn an_unreachable_postgres_is_named_without_its_password() {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = unused.local_addr().unwrap();
        drop(unused);

        let url = format!("postgres://delivery:secret@{addr}/delivery");
        let error = Storage::connect(&url, 1).await.unwrap_err();

        assert_eq!(
            error.to_string(),
            format!(
                "cannot connect to PostgreSQL at {addr} (Connection refused (os error 111)): start it, or correct the database's URL"
            )
        );
    }

    #[tokio::test]
    async fn a_proxy_without_a_primary_is_explained() {
        for sslmode in ["require", "disable"] {
            let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = proxy.local_addr().unwrap();
            let closing = tokio::spawn(async move {
                let (mut connection, _) = proxy.accept().await.unwrap();
                connection.read_exact(&mut [0; 8]).await.unwrap();
                connection.shutdown().await.unwrap();
                // Closing a socket with unread bytes would reset the connection.
                connection.read_to_end(&mut Vec::new()).await.unwrap();
            });

            let url = format!("postgres://delivery:secret@{addr}/delivery?sslmode={sslmode}");
            let error = Storage::connect(&url, 1).await.unwrap_err();

            closing.await.unwrap();
            assert_eq!(
                error.to_string(),
                format!(
                    "what answers at {addr} closes the connection at once: it is not PostgreSQL, or a proxy without a primary; check the proxy's servers, or correct the database's URL"
                )
            );
        }
    }

    #[tokio::test]
    async fn sqlite_is_compiled_with_the_flags_of_this_repository() {
        let (_directory, storage) = crate::fixture::sqlite().await;
        let rows = storage.reader().query_all_raw(Statement::from_string(
            DbBackend::Sqlite,
            "PRAGMA compile_options",
        ));
        let rows = rows.await.unwrap().into_iter();
        let options: Vec<String> = rows.map(|row| row.try_get_by_index(0).unwrap()).collect();

        let has = |option: &str| options.iter().any(|found| found == option);
        assert!(
            has("ENABLE_QPSG") && has("DEFAULT_MEMSTATUS=0"),
            "{options:?}"
        );
        assert!(!has("ENABLE_MEMORY_MANAGEMENT"), "{options:?}");
    }

    #[test]
    fn prepared_statements_are_kept_unless_the_url_has_none() {
        for (query, without, capacity) in [
            ("", false, STATEMENT_CACHE),
            ("?statement-cache-capacity=0", true, 0),
        ] {
            let target = Target::of(&format!("postgres://localhost/delivery{query}")).unwrap();

            assert_eq!(target.is_without_prepared_statements(), without, "{query}");
            let shown = format!("{target:?}");
            let expected = format!("statement_cache_capacity: {capacity},");
            assert!(shown.contains(&expected), "{shown}");
        }
    }
}
