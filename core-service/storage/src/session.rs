//! One connection to a database, which executes sea-orm's statements. sea-orm's own connections
//! belong to a pool of the driver, which tests each connection that it gets back: one or two round
//! trips more for each statement.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    Statement,
    prelude::async_trait,
    sqlx::{
        self, AssertSqlSafe, Connection as _, Executor as _, IntoArguments, SqlStr,
        database::HasStatementCache,
        migrate::{MigrateError, Migrator},
        postgres::PgConnection,
        query::Query,
        sqlite::SqliteConnection,
    },
};
use sea_query_sqlx::SqlxValues;
use tokio::sync::Mutex;

use super::metrics::Metrics;

/// A connection of the driver, whose statements are measured.
#[derive(Debug)]
pub(super) struct Connection {
    driver: Driver,
    keeps_statements: bool,
    metrics: Metrics,
}

#[derive(Debug)]
pub(super) enum Driver {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// Runs the same on both drivers.
macro_rules! on {
    ($driver:expr, $connection:ident => $run:expr) => {
        match $driver {
            Driver::Postgres($connection) => $run,
            Driver::Sqlite($connection) => $run,
        }
    };
}

impl Connection {
    pub(super) fn new(driver: Driver, keeps_statements: bool, metrics: Metrics) -> Self {
        Self {
            driver,
            keeps_statements,
            metrics,
        }
    }

    fn backend(&self) -> DbBackend {
        match self.driver {
            Driver::Postgres(_) => DbBackend::Postgres,
            Driver::Sqlite(_) => DbBackend::Sqlite,
        }
    }

    pub(super) async fn execute_raw(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
        let measured = Metrics::measure(&statement.sql);
        let executed = on!(&mut self.driver, connection => {
            let executed = query(statement, self.keeps_statements).execute(connection).await;
            executed.map(ExecResult::from)
        });
        self.metrics.executed(&measured, &executed);
        executed.map_err(exec_error)
    }

    pub(super) async fn execute_unprepared(&mut self, sql: &str) -> Result<ExecResult, DbErr> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let executed = on!(&mut self.driver, connection => {
            query.execute(connection).await.map(ExecResult::from)
        });
        executed.map_err(exec_error)
    }

    pub(super) async fn query_one_raw(
        &mut self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, DbErr> {
        let rows = self.query_all_raw(statement).await?;
        Ok(rows.into_iter().next())
    }

    pub(super) async fn query_all_raw(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<QueryResult>, DbErr> {
        let measured = Metrics::measure(&statement.sql);
        let rows = on!(&mut self.driver, connection => {
            let rows = query(statement, self.keeps_statements).fetch_all(connection).await;
            rows.map(|rows| rows.into_iter().map(QueryResult::from).collect())
        });
        self.metrics.executed(&measured, &rows);
        rows.map_err(query_error)
    }

    /// Reads what earlier statements have left unread, and fails unless `PostgreSQL` responds, or
    /// the thread of an `SQLite` connection.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        on!(&mut self.driver, connection => connection.ping().await)
    }

    pub(super) async fn close(self) -> Result<(), DbErr> {
        let closed = on!(self.driver, connection => connection.close().await);
        closed.map_err(connect_error)
    }
}

/// A statement that is not kept has no name: in a pooler's session, another client or an earlier transaction
/// may have prepared one with the name that the driver would give it.
fn query<DB: sqlx::Database + HasStatementCache>(
    statement: Statement,
    keeps_statements: bool,
) -> Query<'static, DB, SqlxValues>
where
    SqlxValues: IntoArguments<DB>,
{
    let values = statement
        .values
        .unwrap_or_else(|| sea_orm::Values(Vec::new()));
    sqlx::query_with(AssertSqlSafe(statement.sql), SqlxValues(values)).persistent(keeps_statements)
}

/// The error of a connection that is closed, or has been taken.
pub(super) const CLOSED: DbErr = DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);

pub(super) fn connect_error(error: impl Into<Arc<sqlx::Error>>) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(error.into()))
}

pub(super) fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}

fn exec_error(error: sqlx::Error) -> DbErr {
    DbErr::Exec(RuntimeErr::SqlxError(Arc::new(error)))
}

/// A connection on which transactions run one after the other: over `PostgreSQL` one, over `SQLite` those
/// of all writes. Clones share it.
#[derive(Clone, Debug)]
pub struct Session {
    backend: DbBackend,
    connection: Arc<Mutex<Connection>>,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            backend: connection.backend(),
            connection: Arc::new(Mutex::new(connection)),
        }
    }

    /// `None` if there are other clones.
    pub(super) fn into_connection(self) -> Option<Connection> {
        Arc::into_inner(self.connection).map(Mutex::into_inner)
    }

    /// Closes the connection, which must have no other clones.
    pub(super) async fn close(self) -> Result<(), DbErr> {
        match self.into_connection() {
            Some(connection) => connection.close().await,
            None => Err(CLOSED),
        }
    }

    /// Begins a transaction, on `SQLite` one that writes.
    pub(super) async fn begin(&self) -> Result<(), DbErr> {
        let begin = match self.backend {
            DbBackend::Sqlite => "BEGIN IMMEDIATE",
            _ => "BEGIN",
        };
        self.execute_unprepared(begin).await.map(|_| ())
    }

    /// Commits the transaction. Fails, and rolls it back, if its work has kept a clone of the session: later
    /// statements of that would be in no transaction, or in that of another write.
    pub(super) async fn commit(&self) -> Result<(), DbErr> {
        if Arc::strong_count(&self.connection) > 1 {
            self.roll_back().await?;
            return Err(DbErr::Custom(
                "the work of a transaction has kept the session".to_owned(),
            ));
        }
        self.execute_unprepared("COMMIT").await.map(|_| ())
    }

    /// Applies the first migration that has not been applied. Records it, and those before it, which another
    /// table may record.
    pub(super) fn migrate<'a>(
        &'a self,
        migrator: &'a Migrator,
        version: i64,
    ) -> BoxFuture<'a, Result<(), MigrateError>> {
        let mut migrations = migrator.iter();
        let outside = migrations.find(|migration| migration.version == version && migration.no_tx);
        let recorded = version - i64::from(outside.is_none());
        Box::pin(async move {
            let mut connection = self.connection.lock().await;
            let begin = match (self.backend, connection.keeps_statements) {
                (DbBackend::Sqlite, _) => "BEGIN IMMEDIATE",
                // While a statement waits for its lock, as during a dump, all statements about the table
                // wait for it: those of running cores too.
                (_, true) => "BEGIN; SET LOCAL lock_timeout = '2s'",
                // sqlx names the statements of a migrator: those of another one may be in a pooler's session.
                (_, false) => "BEGIN; SET LOCAL lock_timeout = '2s'; DEALLOCATE ALL",
            };
            match (outside, &mut connection.driver) {
                (Some(migration), Driver::Postgres(connection)) => {
                    create_index(connection, &migration.sql).await?;
                }
                (Some(migration), Driver::Sqlite(connection)) => {
                    connection.execute(migration.sql.clone()).await?;
                }
                (None, _) => {}
            }
            on!(&mut connection.driver, connection => {
                let mut transaction = connection.begin_with(begin).await?;
                // `skip` and `run_to`, whose futures are not `Send`.
                migrator.run_direct(Some(recorded), &mut *transaction, true).await?;
                migrator.run_direct(Some(version), &mut *transaction, false).await?;
                transaction.commit().await?;
            });
            Ok(())
        })
    }

    pub(super) async fn roll_back(&self) -> Result<(), DbErr> {
        self.execute_unprepared("ROLLBACK").await.map(|_| ())
    }
}

/// The statements that drop what is left of indexes of a migration that could not be built: `IF NOT EXISTS` would
/// skip them. Not of those that another core is building.
const INVALID_INDEXES: &str = "\
    SELECT format('DROP INDEX CONCURRENTLY IF EXISTS %I', name.relname)
    FROM pg_index JOIN pg_class AS name ON name.oid = indexrelid
    WHERE NOT indisvalid AND relnamespace = CAST(current_schema() AS regnamespace)
        AND strpos($1, relname) > 0
        AND indexrelid NOT IN (
            SELECT index_relid FROM pg_stat_progress_create_index WHERE index_relid IS NOT NULL
        )";

/// Executes a migration that creates an index while cores write, until the index is valid: another core may
/// have failed at it meanwhile.
async fn create_index(connection: &mut PgConnection, sql: &SqlStr) -> Result<(), sqlx::Error> {
    loop {
        connection.execute(sql.clone()).await?;
        let invalid = sqlx::query_scalar::<_, String>(INVALID_INDEXES).bind(sql.as_str());
        let invalid = invalid
            .persistent(false)
            .fetch_all(&mut *connection)
            .await?;
        if invalid.is_empty() {
            return Ok(());
        }
        for drop in invalid {
            connection.execute(AssertSqlSafe(drop)).await?;
        }
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Session {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.connection.lock().await.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let mut connection = self.connection.lock().await;
        connection.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.connection.lock().await.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.connection.lock().await.query_all_raw(statement).await
    }
}

/// The work of a transaction ([`Storage::write`]), over values that each run gets a clone of. It gets
/// a clone of the session, which must not outlive it: otherwise the write fails.
///
/// [`Storage::write`]: crate::Storage::write
pub trait Work<T>:
    FnOnce(Session) -> <Self as Work<T>>::Future + Clone + Send + Sync + 'static
{
    type Future: Future<Output = T> + Send;
}

impl<T, W, F> Work<T> for W
where
    W: FnOnce(Session) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = T> + Send,
{
    type Future = F;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::{Error, fixture, stores};

    #[tokio::test]
    async fn a_write_fails_and_is_rolled_back_if_its_work_keeps_the_session() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let kept = Arc::new(Mutex::new(None));
            for keeps in [true, false] {
                let (to_keep, store) = (Arc::clone(&kept), fixture::store("A"));
                let write = storage.write(move |transaction| async move {
                    stores::insert(&transaction, &store).await?;
                    *to_keep.lock().unwrap() = keeps.then_some(transaction);
                    Ok::<_, Error>(())
                });
                let written = write.await;
                kept.lock().unwrap().take();

                assert_eq!(written.is_err(), keeps);
                let stores = stores::list(storage.reader()).await.unwrap();
                assert_eq!(stores.is_empty(), keeps);
            }
        }
    }
}
