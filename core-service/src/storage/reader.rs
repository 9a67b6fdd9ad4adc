//! Reads, each within a time limit: a database that does not answer (a server that stands still,
//! a network that loses everything, a frozen disk) must not keep callers and loops for ever.

use std::time::Duration;

use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult,
    Statement, prelude::async_trait,
};

/// Far beyond what any read takes.
const READ: Duration = Duration::from_secs(10);

/// A pool that gives up what is not answered.
#[derive(Debug)]
pub(crate) struct Reader(DatabaseConnection);

impl Reader {
    pub(super) fn new(connection: DatabaseConnection) -> Self {
        Self(connection)
    }

    pub(super) async fn close(self) -> Result<(), DbErr> {
        self.0.close().await
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Reader {
    fn get_database_backend(&self) -> DbBackend {
        self.0.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        in_time(self.0.execute_raw(statement)).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        in_time(self.0.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        in_time(self.0.query_one_raw(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        in_time(self.0.query_all_raw(statement)).await
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
    tokio::time::timeout(READ, answer)
        .await
        .unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
}
