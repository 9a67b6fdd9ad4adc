//! Opening a database: its pools and pragmas, and what it must promise.

use std::{sync::Arc, time::Duration};

use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, DbErr, RuntimeErr,
    Statement,
    sqlx::{
        Connection as _,
        Error::PoolTimedOut,
        postgres::PgConnection,
        sqlite::{SqliteJournalMode, SqliteSynchronous},
    },
};

use super::Error;

/// How long a request waits for a free connection before it is told to come back.
const ACQUIRE: Duration = Duration::from_secs(5);

/// How many statements a connection keeps prepared: more than there are.
const STATEMENTS: usize = 256;

/// Opens a pool for reads and one for writes.
pub(super) async fn open(url: &str) -> Result<(DatabaseConnection, DatabaseConnection), Error> {
    if url.starts_with("sqlite:") {
        open_sqlite(url).await
    } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        open_postgres(url).await
    } else {
        Err(Error::Unsuitable(
            "the database URL must begin with `sqlite:` or `postgres:`".to_owned(),
        ))
    }
}

async fn open_sqlite(url: &str) -> Result<(DatabaseConnection, DatabaseConnection), Error> {
    // The writer first: it creates the file.
    let writer = open_sqlite_writer(url).await?;
    let reader = Database::connect(sqlite_options(url, 4)).await?;
    Ok((reader, writer))
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
            // A commit is on disk before it is answered, also across a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .foreign_keys(true)
            .pragma("cache_size", "-16000")
            .statement_cache_capacity(STATEMENTS)
    });
    options
}

async fn open_postgres(url: &str) -> Result<(DatabaseConnection, DatabaseConnection), Error> {
    // A pool would try until its time is out, and not say why.
    let probe = tokio::time::timeout(ACQUIRE, PgConnection::connect(url))
        .await
        .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
    if let Err(error) = probe {
        return Err(Error::Unavailable(DbErr::Conn(RuntimeErr::SqlxError(
            Arc::new(error),
        ))));
    }
    let pool = Database::connect(postgres_options(url)).await?;
    for (setting, wanted) in [("fsync", "on"), ("synchronous_commit", "on")] {
        require_setting(&pool, setting, wanted).await?;
    }
    Ok((pool.clone(), pool))
}

fn postgres_options(url: &str) -> ConnectOptions {
    let mut options = pool_options(url, 20);
    options.map_sqlx_postgres_opts(|postgres| postgres.statement_cache_capacity(STATEMENTS));
    options.map_sqlx_postgres_pool_opts(|pool| {
        // A caller that gave up may have left a question that is never answered, as when the
        // server's machine is lost: such a connection must not keep its place in the pool until
        // the network gives up too, which takes a quarter of an hour.
        pool.after_release(|connection, _| {
            Box::pin(async move {
                let answer = tokio::time::timeout(ACQUIRE, connection.ping());
                answer.await.unwrap_or(Err(PoolTimedOut)).map(|()| true)
            })
        })
    });
    options
}

/// A server that answers before it has flushed would break the one promise we make.
async fn require_setting(
    connection: &DatabaseConnection,
    setting: &str,
    wanted: &str,
) -> Result<(), Error> {
    let row = connection
        .query_one_raw(Statement::from_sql_and_values(
            DbBackend::Postgres,
            "SELECT current_setting($1)",
            [setting.into()],
        ))
        .await?;
    let found: String = match row {
        Some(row) => row.try_get_by_index(0)?,
        None => String::new(),
    };
    if found == wanted || (setting == "synchronous_commit" && found.starts_with("remote_")) {
        return Ok(());
    }
    Err(Error::Unsuitable(format!(
        "PostgreSQL runs with {setting} = {found}: acknowledged deliveries could be lost; set {setting} = {wanted}"
    )))
}

fn pool_options(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(ACQUIRE)
        .connect_timeout(ACQUIRE)
        // A connection in use all the time needs no ping before each use.
        .test_before_acquire_if_idle_for(Duration::from_secs(10))
        .sqlx_logging(false);
    options
}
