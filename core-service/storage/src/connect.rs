//! Opens a database: its connections and pragmas, and the check of its settings.

use std::{io, str::FromStr as _, time::Duration};

use futures_util::future::BoxFuture;
use migrations::without_prepared_statements;
use sea_orm::{
    DbBackend,
    sqlx::{
        self, AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _,
        postgres::{PgConnectOptions, PgConnection},
        sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous},
    },
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Error,
    error::{has_driver_code, is_sqlite_code},
    metrics::Metrics,
    session::{Connection, Driver, Session, connect_error, query_error},
};

/// The capacity of a connection's cache of prepared statements: more than the program uses.
const STATEMENT_CACHE: usize = 256;

/// How many rows the thread of an `SQLite` connection may read ahead: more than the longest page of a
/// list has, so that it need not wait until they are taken.
const ROW_BUFFER: usize = 512;

/// How long an operation waits for a connection before it fails as unavailable.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// `SQLSTATE` of `too_many_connections`.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// `SQLSTATE` of `cannot_connect_now`: the server starts, stops or recovers.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// The pause before a connection is tried again that the server has refused.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How many connections read an `SQLite` file.
pub(super) const SQLITE_READERS: u32 = 4;

/// A database: how connections to it are opened, and the metrics of all of them.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) backend: DbBackend,
    options: Options,
    /// Whether a connection keeps its prepared statements after the transaction.
    pub(super) keeps_statements: bool,
    pub(super) metrics: Metrics,
}

#[derive(Clone, Debug)]
enum Options {
    Postgres(Box<PgConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

impl Target {
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(url).map_err(unavailable)?;
            Ok(Self::sqlite(configured(options)))
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let keeps_statements = !without_prepared_statements(url);
            let options = PgConnectOptions::from_str(url).map_err(unavailable)?;
            let cached = if keeps_statements {
                options.statement_cache_capacity(STATEMENT_CACHE)
            } else {
                options
            };
            Ok(Self {
                backend: DbBackend::Postgres,
                options: Options::Postgres(Box::new(cached.disable_statement_logging())),
                keeps_statements,
                metrics: Metrics::new(DbBackend::Postgres),
            })
        } else {
            Err(Error::Misconfigured(
                "the database URL must begin with `sqlite:` or `postgres:`".to_owned(),
            ))
        }
    }

    pub(super) fn sqlite(options: SqliteConnectOptions) -> Self {
        Self {
            backend: DbBackend::Sqlite,
            options: Options::Sqlite(Box::new(options.disable_statement_logging())),
            keeps_statements: true,
            metrics: Metrics::new(DbBackend::Sqlite),
        }
    }

    /// Opens a connection. Boxed: the drivers' futures are larger than all that uses a connection.
    pub(super) fn connect(&self) -> BoxFuture<'_, Result<Connection, sqlx::Error>> {
        Box::pin(async {
            let driver = match &self.options {
                Options::Postgres(options) => {
                    Driver::Postgres(PgConnection::connect_with(options).await?)
                }
                Options::Sqlite(options) => {
                    Driver::Sqlite(SqliteConnection::connect_with(options).await?)
                }
            };
            let metrics = self.metrics.clone();
            Ok(Connection::new(driver, self.keeps_statements, metrics))
        })
    }

    /// A connection for transactions that run one after the other.
    pub(super) async fn session(&self) -> Result<Session, Error> {
        let deadline = Instant::now() + ACQUIRE_TIMEOUT;
        loop {
            let connected = timeout_at(deadline, self.connect()).await;
            match connected.unwrap_or_else(|_| Err(timed_out())) {
                // PostgreSQL counts a closed connection for a moment; over SQLite, another process may
                // create the file or remove its log.
                Err(error)
                    if (is_refusal(&error) || is_starting(&error) || is_locked(&error))
                        && Instant::now() < deadline =>
                {
                    sleep(RETRY_AFTER).await;
                }
                result => return result.map(Session::new).map_err(unavailable),
            }
        }
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
        // The writer runs the checkpoints, after it has acknowledged the commit.
        .pragma("wal_autocheckpoint", "0")
        .statement_cache_capacity(STATEMENT_CACHE)
        .row_buffer_size(ROW_BUFFER)
}

/// Opens a database. Creates the file of an `SQLite` URL; fails at a `PostgreSQL` server that is not
/// reachable or loses commits.
pub(super) async fn open(url: &str) -> Result<Target, Error> {
    let target = Target::of(url)?;
    match &target.options {
        Options::Postgres(_) => {
            let probe = tokio::time::timeout(ACQUIRE_TIMEOUT, probe(url, target.keeps_statements));
            probe
                .await
                .unwrap_or_else(|_| Err(unavailable(timed_out())))?;
        }
        Options::Sqlite(_) => migrations::create_sqlite_file(url),
    }
    Ok(target)
}

/// Connects once, and prepares a statement. The driver numbers the statements of each connection from
/// 1: if a pooler then gives the same session to the next connection, the name of its first statement
/// exists already, and the start fails instead of a request under load.
///
/// Fails if the server acknowledges a commit before it is on disk.
async fn probe(url: &str, keeps_statements: bool) -> Result<(), Error> {
    let mut connection = PgConnection::connect(url).await.map_err(unavailable)?;
    if keeps_statements {
        let prepared = sqlx::query("SELECT 1").execute(&mut connection).await;
        prepared.map_err(query_error)?;
    }
    for setting in ["fsync", "synchronous_commit"] {
        let show = sqlx::raw_sql(AssertSqlSafe(format!("SHOW {setting}")));
        let row = show.fetch_one(&mut connection).await.map_err(query_error)?;
        let found: String = row.try_get(0).map_err(query_error)?;
        if found != "on" && !found.starts_with("remote_") {
            return Err(Error::Misconfigured(format!(
                "PostgreSQL runs with {setting} = {found}: acknowledged deliveries could be lost; set {setting} = on"
            )));
        }
    }
    // It would count against the server's limits. An error is that of the next connection, too.
    let _ = connection.close().await;
    Ok(())
}

pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    has_driver_code(error, |code| code == TOO_MANY_CONNECTIONS)
}

/// Whether the server may accept connections in a moment.
pub(super) fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        error => has_driver_code(error, |code| code == CANNOT_CONNECT_NOW),
    }
}

/// `SQLITE_BUSY`: SQLite does not wait while the log of a file is created or removed.
fn is_locked(error: &sqlx::Error) -> bool {
    has_driver_code(error, |code| is_sqlite_code(code, &[5]))
}

fn timed_out() -> sqlx::Error {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(connect_error(error))
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, Statement};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::Storage;

    /// An error that a server reports when a connection is opened.
    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct WithCode(&'static str);

    impl sqlx::error::DatabaseError for WithCode {
        fn message(&self) -> &'static str {
            "refused"
        }

        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }

    #[test]
    fn a_refusal_and_a_start_are_told_from_other_errors() {
        let io = |kind: io::ErrorKind| sqlx::Error::Io(kind.into());
        let database = |code| sqlx::Error::Database(Box::new(WithCode(code)));
        for (error, refusal, starting) in [
            (io(io::ErrorKind::ConnectionRefused), false, true),
            (io(io::ErrorKind::ConnectionReset), false, false),
            // The server starts; there are too many connections; the password is wrong.
            (database("57P03"), false, true),
            (database("53300"), true, false),
            (database("28P01"), false, false),
            (sqlx::Error::PoolTimedOut, false, false),
        ] {
            assert_eq!(is_refusal(&error), refusal, "{error:?}");
            assert_eq!(is_starting(&error), starting, "{error:?}");
        }
    }

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
    async fn a_file_that_is_opened_and_closed_at_the_same_time_stays_usable() {
        let directory = tempfile::tempdir().unwrap();
        let open_and_close = async || {
            let storage = crate::fixture::open(&directory).await;
            storage.close().await.unwrap();
        };
        open_and_close().await;
        for _ in 0..20 {
            tokio::join!(open_and_close(), open_and_close());
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
        for (query, keeps, capacity) in [
            ("", true, STATEMENT_CACHE),
            ("?statement-cache-capacity=0", false, 0),
        ] {
            let target = Target::of(&format!("postgres://localhost/delivery{query}")).unwrap();

            assert_eq!(target.keeps_statements, keeps, "{query}");
            let shown = format!("{target:?}");
            let expected = format!("statement_cache_capacity: {capacity},");
            assert!(shown.contains(&expected), "{shown}");
        }
    }
}
