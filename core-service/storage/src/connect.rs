//! Opens a database: its pools and pragmas, and the check of its settings.

use std::{sync::Arc, time::Duration};

use migrations::{Pool, without_prepared_statements};
use sea_orm::{
    ConnectOptions, Database, DatabaseConnection, DbErr, RuntimeErr,
    sqlx::{
        self, Connection as _,
        Error::{BeginFailed, PoolTimedOut},
        postgres::PgConnection,
        sqlite::{SqliteJournalMode, SqliteSynchronous},
    },
};

use super::{Error, connections::ACQUIRE_TIMEOUT, rows};

/// The capacity of a connection's cache of prepared statements: more than the program uses.
const STATEMENT_CACHE: usize = 256;

/// How many connections read an `SQLite` file.
pub(super) const SQLITE_READERS: u32 = 4;

/// Opens a pool for reads and one for writes. With `PostgreSQL`, they are the same pool, with the
/// limit `connections`.
pub(super) async fn open(url: &str, connections: u32) -> Result<(Pool, Pool), Error> {
    if url.starts_with("sqlite:") {
        open_sqlite(url).await
    } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        open_postgres(url, connections).await
    } else {
        Err(Error::Misconfigured(
            "the database URL must begin with `sqlite:` or `postgres:`".to_owned(),
        ))
    }
}

async fn open_sqlite(url: &str) -> Result<(Pool, Pool), Error> {
    migrations::create_sqlite_file(url);
    // The writer first: it creates the file.
    let writer = open_sqlite_writer(url).await?;
    let reader = Database::connect(sqlite_options(url, SQLITE_READERS)).await?;
    Ok((reader.into(), writer.into()))
}

/// The one connection that writes.
pub(super) async fn open_sqlite_writer(url: &str) -> Result<DatabaseConnection, Error> {
    Ok(Database::connect(sqlite_options(url, 1)).await?)
}

fn sqlite_options(url: &str, connections: u32) -> ConnectOptions {
    let mut options = pool_options(url, connections);
    options.map_sqlx_sqlite_opts(|sqlite| {
        sqlite
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
    });
    options
}

async fn open_postgres(url: &str, connections: u32) -> Result<(Pool, Pool), Error> {
    // A pool would retry until its timeout, and hide the cause.
    tokio::time::timeout(ACQUIRE_TIMEOUT, probe(url))
        .await
        .unwrap_or_else(|_| {
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(unavailable(error.into()))
        })?;
    let pool = Pool::connect(postgres_options(url, connections)).await?;
    for (setting, wanted) in [("fsync", "on"), ("synchronous_commit", "on")] {
        require_setting(&pool, setting, wanted).await?;
    }
    Ok((pool.clone(), pool))
}

/// Connects once. Behind a pooler that gives the pool the session of this connection, the pool's
/// first statement has the name of this one and fails: at the start and not under load.
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

fn postgres_options(url: &str, connections: u32) -> ConnectOptions {
    let mut options = pool_options(url, connections);
    // `Connections` tries again until its own timeout, and finds out whether the server refuses.
    options.acquire_timeout(ACQUIRE_TIMEOUT / 2);
    if !without_prepared_statements(url) {
        options
            .map_sqlx_postgres_opts(|postgres| postgres.statement_cache_capacity(STATEMENT_CACHE));
    }
    options.map_sqlx_postgres_pool_opts(|pool| {
        // A cancelled caller may release a connection whose query has no response yet, for example
        // if the server's host is lost. Without this check, the pool would keep the connection
        // until the network times out after 15 minutes. The caller may also have been cancelled
        // during BEGIN, which the driver does not roll back: what is acknowledged on that connection
        // afterwards would never be committed. The driver knows, but only says so when it begins a
        // transaction: an empty statement begins none.
        pool.after_release(|connection, _| {
            Box::pin(async move {
                let begun = tokio::time::timeout(ACQUIRE_TIMEOUT, connection.begin_with(""));
                match begun.await.unwrap_or(Err(PoolTimedOut)) {
                    Err(BeginFailed) => Ok(true),
                    Ok(_open) => Ok(false),
                    Err(error) => Err(error),
                }
            })
        })
    });
    options
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

fn pool_options(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_timeout(ACQUIRE_TIMEOUT)
        // A connection in constant use needs no ping before each use.
        .test_before_acquire_if_idle_for(Duration::from_secs(10))
        .sqlx_logging(false);
    options
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::Storage;

    /// Otherwise the insertion would be acknowledged, and lost with its connection.
    #[tokio::test]
    async fn a_connection_whose_begin_was_cancelled_is_not_used_again() {
        let Some(url) = crate::fixture::postgres_url() else {
            return;
        };
        let (pool, _) = open(&url, 1).await.unwrap();
        let other = Database::connect(&url).await.unwrap();
        let create = "CREATE TABLE inserted (number BIGINT)";
        other.execute_unprepared(create).await.unwrap();
        let count = async |sql| {
            let statement = Statement::from_string(DbBackend::Postgres, sql);
            let row = other.query_one_raw(statement).await.unwrap().unwrap();
            row.try_get_by_index::<i64>(0).unwrap()
        };
        {
            let mut begin = Box::pin(pool.begin());
            // A transaction that has begun at once is rolled back.
            while futures_util::poll!(&mut begin).is_ready() {
                begin = Box::pin(pool.begin());
            }
            let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state = 'idle in transaction'";
            while count(open).await == 0 {}
        }

        let insert = "INSERT INTO inserted VALUES (1)";
        pool.execute_unprepared(insert).await.unwrap();

        assert_eq!(count("SELECT count(*) FROM inserted").await, 1);
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
}
