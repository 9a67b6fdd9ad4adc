//! The connections to a database, with a queue in front of them: operations wait for a permit,
//! first come, first served, at most 5 s. The pool alone would open more connections than
//! `PostgreSQL` permits, and each operation would wait for the one that it opens while others are
//! idle.
//!
//! A query has a timeout: a database that does not respond (a stopped server, a network that drops
//! all packets, a frozen disk) must not block callers forever. What executes a statement limits it.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::poll;
use migrations::Pool;
use process::metrics::{Registry, Sample, Sampled};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult,
    QueryResult, Statement, prelude::async_trait,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};

use super::{
    error::{is_serialization_failure, jitter},
    metrics::{Metrics, POOL},
    refusals::Refusals,
};

/// How long an operation waits for a connection before it fails as unavailable.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer than any read takes while the database responds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of connections. Clones share it.
#[derive(Clone, Debug)]
pub struct Connections {
    pool: Pool,
    max: usize,
    permits: Arc<Semaphore>,
    pending: Arc<AtomicUsize>,
    metrics: Metrics,
    /// With `PostgreSQL`, which limits connections by role, database and server.
    refusals: Option<Arc<Refusals>>,
}

/// The permit to use one connection, and the deadline for getting the connection.
struct ConnectionPermit {
    permit: OwnedSemaphorePermit,
    asked_at: Instant,
    deadline: Instant,
}

impl Connections {
    pub(super) fn new(mut pool: Pool, max: u32, metrics: Metrics) -> Self {
        metrics.measure(pool.driver_mut());
        let refusals = match pool.get_database_backend() {
            DbBackend::Postgres => {
                let pool = pool.driver().get_postgres_connection_pool().clone();
                Some(Arc::new(Refusals::new(pool, max, metrics.refused.clone())))
            }
            _ => None,
        };
        let max = usize::try_from(max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool,
            max,
            permits: Arc::new(Semaphore::new(max)),
            pending: Arc::default(),
            metrics,
            refusals,
        }
    }

    /// Begins a transaction. The permit must be dropped after the transaction.
    pub(super) async fn begin(&self) -> Result<(DatabaseTransaction, impl Drop + Send), DbErr> {
        let permit = self.acquire().await?;
        let transaction = self.run_with(&permit, || self.pool.begin()).await?;
        Ok((transaction, permit.permit))
    }

    pub(super) async fn close(self) -> Result<(), DbErr> {
        self.pool.into_driver().close().await
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        let connections = self.clone();
        registry.register(
            "db_client_connection_count",
            "Open database connections by state",
            Sampled::new(move || connections.count()),
        );
        let (pool, max) = (self.metrics.pool, self.max);
        registry.register(
            "db_client_connection_max",
            "Limit of open database connections",
            Sampled::new(move || vec![Sample::count(&[(POOL, pool)], max)]),
        );
        let pending = Arc::clone(&self.pending);
        registry.register(
            "db_client_connection_pending_requests",
            "Operations that wait for a database connection",
            Sampled::new(move || {
                let pending = pending.load(Ordering::Relaxed);
                vec![Sample::count(&[(POOL, pool)], pending)]
            }),
        );
    }

    fn count(&self) -> Vec<Sample> {
        let (open, idle) = if self.pool.get_database_backend() == DbBackend::Sqlite {
            let pool = self.pool.driver().get_sqlite_connection_pool();
            (pool.size(), pool.num_idle())
        } else {
            let pool = self.pool.driver().get_postgres_connection_pool();
            (pool.size(), pool.num_idle())
        };
        let used = usize::try_from(open).unwrap_or(usize::MAX);
        let used = used.saturating_sub(idle);
        let pool = self.metrics.pool;
        [("used", used), ("idle", idle)]
            .map(|(state, count)| {
                Sample::count(
                    &[(POOL, pool), ("db_client_connection_state", state)],
                    count,
                )
            })
            .into()
    }

    async fn acquire(&self) -> Result<ConnectionPermit, DbErr> {
        let asked_at = Instant::now();
        let deadline = asked_at + ACQUIRE_TIMEOUT;
        let permits = Arc::clone(&self.permits);
        let permit = if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            permit
        } else {
            let _pending = Pending::new(&self.pending);
            match timeout_at(deadline, permits.acquire_owned()).await {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) | Err(_) => return Err(self.timed_out(asked_at)),
            }
        };
        Ok(ConnectionPermit {
            permit,
            asked_at,
            deadline,
        })
    }

    /// Runs an operation on a connection.
    async fn run<T, F>(&self, operation: impl Fn() -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        let permit = self.acquire().await?;
        self.run_with(&permit, operation).await
    }

    /// Runs a read. Repeats it after serialization failures, until the timeout: at the isolation
    /// level serializable, even a read may conflict with a write.
    async fn read<T, F>(&self, read: impl Fn() -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        let result = async {
            let mut tries = 1;
            loop {
                match self.run(&read).await {
                    Err(error) if is_serialization_failure(&error) => {
                        tokio::time::sleep(jitter(tries)).await;
                        tries += 1;
                    }
                    result => return result,
                }
            }
        };
        timeout(READ_TIMEOUT, result)
            .await
            .unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
    }

    /// Runs an operation. Repeats it while the pool has no connection for it: then it has not
    /// begun.
    async fn run_with<T, F>(
        &self,
        permit: &ConnectionPermit,
        operation: impl Fn() -> F,
    ) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        let Some(refusals) = &self.refusals else {
            self.metrics.waited(permit.asked_at.elapsed());
            return operation().await;
        };
        loop {
            let mut operation = pin!(operation());
            if refusals.are_expected() {
                let guard = {
                    let _pending = Pending::new(&self.pending);
                    refusals.wait_for_connection(permit.deadline).await
                };
                // Takes the idle connection that it waited for.
                let first = poll!(operation.as_mut());
                drop(guard);
                self.metrics.waited(permit.asked_at.elapsed());
                if let Poll::Ready(result) = first {
                    return result;
                }
            } else {
                self.metrics.waited(permit.asked_at.elapsed());
            }
            match operation.await {
                Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)) => {}
                result => return result,
            }
            let refusal = refusals.check().await;
            if Instant::now() >= permit.deadline {
                let timed_out = self.timed_out(permit.asked_at);
                return Err(refusal.unwrap_or(timed_out));
            }
        }
    }

    fn timed_out(&self, asked_at: Instant) -> DbErr {
        self.metrics.waited(asked_at.elapsed());
        self.metrics.timeouts.inc(self.metrics.pool);
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)
    }
}

/// Counts a waiting operation until it is dropped.
struct Pending<'a>(&'a AtomicUsize);

impl<'a> Pending<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What returns rows is a read. [`Storage`](super::Storage) repeats and limits what it executes.
#[async_trait::async_trait]
impl ConnectionTrait for Connections {
    fn get_database_backend(&self) -> DbBackend {
        self.pool.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.run(|| self.pool.execute_raw(statement.clone())).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.run(|| self.pool.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.read(|| self.pool.query_one_raw(statement.clone()))
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.read(|| self.pool.query_all_raw(statement.clone()))
            .await
    }
}
