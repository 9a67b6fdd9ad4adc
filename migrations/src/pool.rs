//! The connections to a database. On request they keep no prepared statement after its transaction:
//! `PgBouncer` in transaction mode gives a server session to another client after each transaction,
//! and before version 1.21 it does not know which statements a client has prepared.

use std::str::FromStr as _;

use sea_orm_migration::{
    SchemaManager, async_trait,
    sea_orm::{
        ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction,
        DbBackend, DbErr, ExecResult, QueryResult, Statement, TransactionTrait as _,
    },
};

use crate::{Migrator, MigratorTrait as _, driver_error};

/// The driver's URL parameter for the number of prepared statements that a connection keeps.
const STATEMENT_CACHE_CAPACITY: &str = "statement-cache-capacity";

/// The driver numbers the names of prepared statements, in each connection from 1.
const STATEMENT_NAME: &str = "sqlx_s_";

/// Whether the sessions of a `PostgreSQL` URL keep no prepared statements:
/// `statement-cache-capacity=0`.
pub fn without_prepared_statements(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    // The driver, too, uses the last one.
    let capacity = query.split('&').rev().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name == STATEMENT_CACHE_CAPACITY).then_some(value)
    });
    url.starts_with("postgres") && capacity.map(usize::from_str) == Some(Ok(0))
}

/// The message for an error that a pooler causes by giving the sessions of prepared statements to
/// other clients; `None` for any other error.
pub fn explain_pooler(error: &DbErr) -> Option<String> {
    let error = driver_error(error)?.as_database_error()?;
    // A prepared statement that exists already, that does not exist, or with the parameters of
    // another client's statement.
    let is_of_session = matches!(error.code()?.as_ref(), "42P05" | "26000" | "08P01");
    let message = error.message();
    (is_of_session && message.contains(STATEMENT_NAME)).then(|| {
        format!(
            "a pooler gives several clients the same session of PostgreSQL ({message}): append {STATEMENT_CACHE_CAPACITY}=0 to the database's URL; or use PgBouncer in session mode, or from 1.21 on with max_prepared_statements"
        )
    })
}

/// Connections to a database. Clones share them.
#[derive(Clone, Debug)]
pub struct Pool {
    driver: DatabaseConnection,
    /// Whether a statement is prepared for its transaction only.
    without_prepared_statements: bool,
}

impl From<DatabaseConnection> for Pool {
    fn from(driver: DatabaseConnection) -> Self {
        Self {
            driver,
            without_prepared_statements: false,
        }
    }
}

impl Pool {
    pub async fn connect(options: ConnectOptions) -> Result<Self, DbErr> {
        Ok(Self {
            without_prepared_statements: without_prepared_statements(options.get_url()),
            driver: Database::connect(options).await?,
        })
    }

    /// The driver, to close it.
    pub fn into_driver(self) -> DatabaseConnection {
        self.driver
    }

    /// Begins a transaction.
    pub async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let transaction = self.driver.begin().await?;
        if self.without_prepared_statements {
            // The driver names a statement even if it does not keep it. The session may have one of
            // that name, by another client or an earlier transaction.
            transaction.execute_unprepared("DEALLOCATE ALL").await?;
        }
        Ok(transaction)
    }

    /// Applies the pending migrations, each in a transaction.
    pub async fn migrate(&self) -> Result<(), DbErr> {
        if !self.without_prepared_statements {
            return Migrator::up(&self.driver, None).await;
        }
        let pending = Migrator::get_pending_migrations(self).await?;
        for _ in pending {
            let transaction = self.begin().await?;
            let applied = Migrator::up(&transaction, Some(1)).await;
            end(transaction, applied).await?;
        }
        Ok(())
    }

    pub(crate) async fn has_table(&self, name: &str) -> Result<bool, DbErr> {
        if !self.without_prepared_statements {
            return SchemaManager::new(&self.driver).has_table(name).await;
        }
        let transaction = self.begin().await?;
        let found = SchemaManager::new(&transaction).has_table(name).await;
        end(transaction, found).await
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Pool {
    fn get_database_backend(&self) -> DbBackend {
        self.driver.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        if !self.without_prepared_statements {
            return self.driver.execute_raw(statement).await;
        }
        let transaction = self.begin().await?;
        let executed = transaction.execute_raw(statement).await;
        end(transaction, executed).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.driver.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        if !self.without_prepared_statements {
            return self.driver.query_one_raw(statement).await;
        }
        let transaction = self.begin().await?;
        let row = transaction.query_one_raw(statement).await;
        end(transaction, row).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if !self.without_prepared_statements {
            return self.driver.query_all_raw(statement).await;
        }
        let transaction = self.begin().await?;
        let rows = transaction.query_all_raw(statement).await;
        end(transaction, rows).await
    }
}

/// Commits a transaction, or rolls it back after an error.
async fn end<T>(transaction: DatabaseTransaction, result: Result<T, DbErr>) -> Result<T, DbErr> {
    match result {
        Ok(value) => transaction.commit().await.map(|()| value),
        Err(error) => {
            // Even if the rollback fails, nothing is committed.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}
