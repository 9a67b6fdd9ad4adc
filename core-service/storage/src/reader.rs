//! Reads, each within a time limit: a database that does not answer (a server that stands still,
//! a network that loses everything, a frozen disk) must not keep callers and loops for ever.

use std::time::Duration;

use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult,
    Statement, prelude::async_trait,
};

use super::{Pulse, error::is_lost_race, jitter};

/// Far beyond what any read takes.
const READ: Duration = Duration::from_secs(10);

/// A pool that gives up what is not answered.
#[derive(Debug)]
pub struct Reader(DatabaseConnection);

impl Reader {
    pub(super) fn new(connection: DatabaseConnection) -> Self {
        Self(connection)
    }

    pub(super) fn pulse(&self) -> Pulse {
        Pulse::new(self.0.clone())
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
        in_time(|| self.0.execute_raw(statement.clone())).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        in_time(|| self.0.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        in_time(|| self.0.query_one_raw(statement.clone())).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        in_time(|| self.0.query_all_raw(statement.clone())).await
    }
}

/// Tries until there is an answer or the time is over: where everything is serializable, even a
/// read may lose against a write.
async fn in_time<T, F>(read: impl Fn() -> F) -> Result<T, DbErr>
where
    F: Future<Output = Result<T, DbErr>>,
{
    let answer = async {
        let mut tries = 1;
        loop {
            match read().await {
                Err(lost) if is_lost_race(&lost) => {
                    tokio::time::sleep(jitter(tries)).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    };
    tokio::time::timeout(READ, answer)
        .await
        .unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
}
