//! The connections to a database, with a queue in front of them: operations wait for a permit,
//! first come, first served, at most 5 s, and take an idle connection or open one.
//!
//! A query has a timeout: a database that does not respond (a stopped server, a network that drops
//! all packets, a frozen disk) must not block callers forever. A write has that of `Storage::write`.

mod checkout;
mod refusals;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use process::metrics::{Registry, Sample, Sampled};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement,
    prelude::async_trait, sqlx,
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    connect::{ACQUIRE_TIMEOUT, Target, is_refusal, is_starting},
    error::{is_serialization_failure, with_retries},
    metrics::{Metrics, POOL},
    session::{Connection, Session, connect_error},
};
use checkout::Checkout;
use refusals::Refusals;

/// Longer than any read takes while the database responds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle before it is tested when it is taken. One in constant use
/// needs no test.
const TEST_AFTER: Duration = Duration::from_secs(10);

/// How long a test may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections that were idle for longer are closed, one for each operation.
const MAX_IDLE: Duration = Duration::from_mins(10);

/// Connections that were opened earlier are closed after their operation: new ones are distributed
/// again where servers or poolers share a name.
const MAX_LIFETIME: Duration = Duration::from_mins(30);

/// The longest pause between two attempts to connect to a server that is starting.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Clones share the connections.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    target: Target,
    max: usize,
    permits: Arc<Semaphore>,
    /// The one that was used last is at the back.
    idle: Mutex<VecDeque<Idle>>,
    /// Has a clone for each operation that waits for a permit.
    pending: Arc<()>,
    refusals: Refusals,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Connections {
    /// Opens no connection yet.
    pub(super) fn new(target: Target, max: u32) -> Self {
        let max = usize::try_from(max).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            target,
            max,
            permits: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
            pending: Arc::default(),
            refusals: Refusals::new(max),
        }))
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
        let all = u32::try_from(self.0.max).unwrap_or(u32::MAX);
        // Held until the semaphore is closed: otherwise waiting operations would get the permits.
        let _permits = timeout(READ_TIMEOUT, self.0.permits.acquire_many(all)).await;
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.0.idle());
        for Idle { connection, .. } in idle {
            // Fails for a connection that is lost.
            let _ = timeout(TEST_TIMEOUT, connection.close()).await;
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.target.metrics
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        self.0.target.metrics.register(registry);
        let (pool, max) = (self.0.target.metrics.pool, self.0.max);
        let shared = Arc::clone(&self.0);
        registry.register(
            "db_client_connection_count",
            "Open database connections by state",
            Sampled::new(move || shared.count()),
        );
        registry.register(
            "db_client_connection_max",
            "Limit of open database connections",
            Sampled::new(move || vec![Sample::count(&[(POOL, pool)], max)]),
        );
        let shared = Arc::clone(&self.0);
        registry.register(
            "db_client_connection_pending_requests",
            "Operations that wait for a database connection",
            Sampled::new(move || {
                let pending = Arc::strong_count(&shared.pending) - 1;
                vec![Sample::count(&[(POOL, pool)], pending)]
            }),
        );
    }

    async fn acquire(&self) -> Result<Checkout, DbErr> {
        let shared = &self.0;
        let asked_at = Instant::now();
        let deadline = asked_at + ACQUIRE_TIMEOUT;
        let mut failure = None;
        let checkout = timeout_at(deadline, shared.check_out(&mut failure)).await;
        let metrics = &shared.target.metrics;
        metrics.waited(asked_at.elapsed());
        checkout.unwrap_or_else(|_| {
            metrics.timeouts.inc(metrics.pool);
            let reason = failure.or_else(|| shared.refusals.reason());
            Err(reason.map_or(
                DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
                connect_error,
            ))
        })
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

impl Shared {
    /// Waits until there is a connection. Stores the error in `starting` while the server starts or
    /// does not listen.
    async fn check_out(
        self: &Arc<Self>,
        starting: &mut Option<Arc<sqlx::Error>>,
    ) -> Result<Checkout, DbErr> {
        let mut pause = Duration::from_millis(10);
        loop {
            let permit = self.permit().await?;
            if let Some(connection) = self.take_idle().await {
                return Ok(Checkout::new(connection, self, permit));
            }
            if !self.refusals.may_connect() {
                self.refusals.withhold(permit);
                continue;
            }
            match self.target.connect().await {
                Ok(connection) => {
                    self.refusals.opened();
                    return Ok(Checkout::new(connection, self, permit));
                }
                Err(error) if is_refusal(&error) => {
                    self.target.metrics.refused.inc();
                    self.refusals.refused(error);
                    self.refusals.withhold(permit);
                }
                Err(error) if is_starting(&error) => {
                    *starting = Some(Arc::new(error));
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_RECONNECT_PAUSE);
                }
                Err(error) => {
                    self.refusals.failed();
                    return Err(connect_error(error));
                }
            }
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, DbErr> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _pending = Arc::clone(&self.pending);
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed))
    }

    /// The idle connection that was used last. Tests it if that was some time ago, and drops those
    /// that were idle for longer if it fails: they are probably lost too, and each test takes time.
    async fn take_idle(&self) -> Option<Connection> {
        let idle = self.idle().pop_back()?;
        let (mut connection, since) = (idle.connection, idle.since);
        if since.elapsed() < TEST_AFTER || Box::pin(is_usable(&mut connection)).await {
            return Some(connection);
        }
        self.idle().retain(|idle| idle.since > since);
        None
    }

    /// Makes a connection idle, and closes the one that has been idle longest, if that is too long; or
    /// closes the connection itself, if it was opened too long ago or all are being closed. Releases the
    /// permit once the connection is idle or closed.
    fn keep(&self, connection: Connection, permit: Option<OwnedSemaphorePermit>) {
        let is_current = !self.permits.is_closed() && connection.opened_at.elapsed() < MAX_LIFETIME;
        let (closing, permit) = if is_current {
            let mut idle = self.idle();
            let longest = idle.pop_front_if(|idle| idle.since.elapsed() >= MAX_IDLE);
            let since = Instant::now();
            idle.push_back(Idle { connection, since });
            (longest.map(|longest| longest.connection), None)
        } else {
            (Some(connection), permit)
        };
        if let (Some(connection), Ok(runtime)) = (closing, Handle::try_current()) {
            runtime.spawn(async move {
                // Fails for a connection that is lost.
                let _ = timeout(TEST_TIMEOUT, connection.close()).await;
                drop(permit);
            });
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> Vec<Sample> {
        let idle = self.idle().len();
        let unused = self.permits.available_permits() + self.refusals.withheld();
        let used = self.max.saturating_sub(unused);
        [("used", used), ("idle", idle)]
            .map(|(state, count)| {
                let labels = [
                    (POOL, self.target.metrics.pool),
                    ("db_client_connection_state", state),
                ];
                Sample::count(&labels, count)
            })
            .into()
    }
}

async fn is_usable(connection: &mut Connection) -> bool {
    matches!(timeout(TEST_TIMEOUT, connection.ping()).await, Ok(Ok(())))
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
