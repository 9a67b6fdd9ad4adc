//! The connections to a database, with a queue in front of them: operations wait for a permit,
//! first come, first served, at most 5 s, and take an idle connection or open one.
//!
//! A query has a timeout: a database that does not respond (a stopped server, a network that drops
//! all packets, a frozen disk) must not block callers forever. A write has that of `Storage::write`.

mod checkout;
mod pool;
mod refusals;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use process::metrics::{Registry, Sample, Sampled};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement,
    prelude::async_trait, sqlx,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    connect::{ACQUIRE_TIMEOUT, Target, is_refusal, is_starting},
    error::{is_serialization_failure, with_retries},
    metrics::{Metrics, POOL},
    session::{Session, connect_error},
};
use checkout::Checkout;
use pool::Pool;

/// Longer than any read takes while the database responds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest pause between two attempts to connect to a server that is starting.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Clones share the connections.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Pool>);

impl Connections {
    /// Opens no connection yet.
    pub(super) fn new(target: Target, max: u32) -> Self {
        Self(Arc::new(Pool::new(target, max)))
    }

    /// Begins a transaction. A session that is dropped closes its connection, which rolls back.
    pub(super) async fn begin(&self) -> Result<(Session, Checkout), DbErr> {
        let mut checkout = self.acquire().await?;
        let session = Session::new(checkout.take()?);
        session.begin().await?;
        Ok((session, checkout))
    }

    /// Waits for the operations in progress, up to the timeout of a read, and closes the
    /// connections. All later operations fail.
    pub(super) async fn close(self) {
        self.0.close(READ_TIMEOUT).await;
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.target.metrics
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        self.0.target.metrics.register(registry);
        let (name, max) = (self.0.target.metrics.pool, self.0.max);
        let pool = Arc::clone(&self.0);
        registry.register(
            "db_client_connection_count",
            "Open database connections by state",
            Sampled::new(move || pool.count()),
        );
        registry.register(
            "db_client_connection_max",
            "Limit of open database connections",
            Sampled::new(move || vec![Sample::count(&[(POOL, name)], max)]),
        );
        let pool = Arc::clone(&self.0);
        registry.register(
            "db_client_connection_pending_requests",
            "Operations that wait for a database connection",
            Sampled::new(move || vec![Sample::count(&[(POOL, name)], pool.pending())]),
        );
    }

    async fn acquire(&self) -> Result<Checkout, DbErr> {
        let pool = &self.0;
        let asked_at = Instant::now();
        let deadline = asked_at + ACQUIRE_TIMEOUT;
        let mut failure = None;
        let checkout = timeout_at(deadline, self.check_out(&mut failure)).await;
        let metrics = &pool.target.metrics;
        metrics.waited(asked_at.elapsed());
        checkout.unwrap_or_else(|_| {
            metrics.timeouts.inc(metrics.pool);
            let reason = failure.or_else(|| pool.refusals.reason());
            Err(reason.map_or(
                DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
                connect_error,
            ))
        })
    }

    /// Waits until there is a connection. Stores the error in `starting` while the server starts or
    /// does not listen.
    async fn check_out(&self, starting: &mut Option<Arc<sqlx::Error>>) -> Result<Checkout, DbErr> {
        let pool = &self.0;
        let mut pause = Duration::from_millis(10);
        loop {
            let permit = pool.permit().await?;
            if let Some(connection) = pool.take_idle().await {
                return Ok(Checkout::new(connection, pool, permit));
            }
            if !pool.refusals.may_connect() {
                pool.refusals.withhold(permit);
                continue;
            }
            match pool.target.connect().await {
                Ok(connection) => {
                    pool.refusals.opened();
                    return Ok(Checkout::new(connection, pool, permit));
                }
                Err(error) if is_refusal(&error) => {
                    pool.target.metrics.refused.inc();
                    pool.refusals.refused(error);
                    pool.refusals.withhold(permit);
                }
                Err(error) if is_starting(&error) => {
                    *starting = Some(Arc::new(error));
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_RECONNECT_PAUSE);
                }
                Err(error) => {
                    pool.refusals.failed();
                    return Err(connect_error(error));
                }
            }
        }
    }

    /// Runs a read. Repeats it after serialization failures, until the timeout: at the isolation
    /// level serializable, even a read may conflict with a write.
    async fn read<T, F>(&self, read: impl Fn() -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        let result = with_retries(READ_TIMEOUT, read, is_serialization_failure).await;
        result.unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
    }
}

/// Runs one statement on a connection, in a transaction of its own where sessions keep no prepared
/// statements.
macro_rules! run {
    ($connections:expr, $execute:ident, $statement:expr) => {
        async {
            if !$connections.0.target.keeps_statements {
                let (session, checkout) = $connections.begin().await?;
                let result = session.$execute($statement).await;
                checkout.end(session, result.is_ok()).await?;
                return result;
            }
            let mut checkout = $connections.acquire().await?;
            let result = checkout.connection()?.$execute($statement).await;
            checkout.finish(result)
        }
    };
}

/// The methods that return rows are reads, with a timeout and retries. Those that execute have neither:
/// [`Storage`](super::Storage) repeats and limits its writes.
#[async_trait::async_trait]
impl ConnectionTrait for Connections {
    fn get_database_backend(&self) -> DbBackend {
        self.0.target.backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        run!(self, execute_raw, statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let mut checkout = self.acquire().await?;
        let executed = checkout.connection()?.execute_unprepared(sql).await;
        checkout.finish(executed)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.read(|| run!(self, query_one_raw, statement.clone()))
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.read(|| run!(self, query_all_raw, statement.clone()))
            .await
    }
}
