//! Reads, each with a timeout: a database that does not respond (a stopped server, a network that
//! drops all packets, a frozen disk) must not block callers forever.

use std::time::Duration;

use process::metrics::Registry;
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement,
    prelude::async_trait,
};

use super::{
    HealthCheck,
    connections::Connections,
    error::{is_serialization_failure, jitter},
    group_commit::WriteCheck,
};

/// Longer than any read takes while the database responds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of connections that applies a timeout to each read.
#[derive(Debug)]
pub struct Reader(Connections);

impl Reader {
    pub(super) fn new(connections: Connections) -> Self {
        Self(connections)
    }

    pub(super) fn health_check(&self, writes: Option<WriteCheck>) -> HealthCheck {
        HealthCheck::new(self.0.clone(), writes)
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        self.0.register_metrics(registry);
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
        read_with_retries(|| self.0.execute_raw(statement.clone())).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        read_with_retries(|| self.0.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        read_with_retries(|| self.0.query_one_raw(statement.clone())).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        read_with_retries(|| self.0.query_all_raw(statement.clone())).await
    }
}

/// Retries after serialization failures, until the timeout: at the isolation level serializable,
/// even a read may conflict with a write.
async fn read_with_retries<T, F>(read: impl Fn() -> F) -> Result<T, DbErr>
where
    F: Future<Output = Result<T, DbErr>>,
{
    let result = async {
        let mut tries = 1;
        loop {
            match read().await {
                Err(error) if is_serialization_failure(&error) => {
                    tokio::time::sleep(jitter(tries)).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    };
    tokio::time::timeout(READ_TIMEOUT, result)
        .await
        .unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
}
