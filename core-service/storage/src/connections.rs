//! The pool of connections to a database: operations wait for one, first come, first served, at most 5 s.
//!
//! A query has a timeout: a database that does not respond (a stopped server, a network that drops
//! all packets, a frozen disk) must not block callers forever. A write has that of `Storage::write`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use deadpool::managed::{self, Object, Pool, PoolError, QueueMode, RecycleResult};
use migrations::driver_error;
use parking_lot::Mutex;
use process::{
    metrics::{Registry, Sample, Sampled},
    traces::TraceSpan,
};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement,
    prelude::async_trait, sqlx,
};
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use super::{
    connect::{ACQUIRE_TIMEOUT, RETRY_AFTER, Target, is_refusal, is_starting},
    error::is_serialization_failure,
    metrics::{Metrics, POOL},
    session::{CLOSED, Connection, Session, connect_error},
};

/// Longer than any read takes while the database responds.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that were idle for longer are closed.
const MAX_IDLE: Duration = Duration::from_mins(10);

/// How long a connection may be idle before it is tested when it is taken. One in constant use needs no test.
const TEST_AFTER: Duration = Duration::from_secs(10);

/// How long a test may take, or the closing of a connection.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections that were opened earlier are replaced: new ones are distributed again where servers or
/// poolers share a name.
const MAX_LIFETIME: Duration = Duration::from_mins(30);

/// After this time without a refusal, the next one is logged.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The pause between two looks for connections that can be closed, while the pool is closed.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);

/// Clones share the connections.
#[derive(Clone, Debug)]
pub struct Connections(Pool<Manager>);

impl Connections {
    /// Opens no connection yet.
    pub(super) fn new(target: Target, max: u32) -> Self {
        let state = Mutex::default();
        let pool = Pool::builder(Manager { target, state })
            .max_size(usize::try_from(max).unwrap_or(usize::MAX))
            // Those that are not needed become idle.
            .queue_mode(QueueMode::Lifo)
            .build()
            .expect("a pool without timeouts needs no runtime");
        let weak = pool.weak();
        tokio::spawn(async move {
            let mut interval = interval(MAX_IDLE / 10);
            loop {
                interval.tick().await;
                let Some(pool) = weak.upgrade() else { return };
                pool.retain(|pooled, _| pooled.used_at.elapsed() < MAX_IDLE);
            }
        });
        Self(pool)
    }

    /// Begins a transaction. A session that is dropped closes its connection, which rolls back.
    pub(super) async fn begin(&self) -> Result<(Session, Checkout), DbErr> {
        let mut checkout = self.acquire().await?;
        let session = Session::new(checkout.0.connection.take().ok_or(CLOSED)?);
        session.begin().await?;
        Ok((session, checkout))
    }

    /// Waits for the operations in progress, up to the timeout of a read, and closes the
    /// connections. All later operations fail.
    pub(super) async fn close(self) {
        let ended = async {
            while self.0.status().size > 0 {
                for pooled in self.0.retain(|_, _| false).removed {
                    if let Some(connection) = pooled.connection {
                        // Fails for a connection that is lost.
                        let _ = timeout(TEST_TIMEOUT, connection.close()).await;
                    }
                }
                sleep(CLOSING_PAUSE).await;
            }
        };
        let _ = timeout(READ_TIMEOUT, ended).await;
        self.0.close();
    }

    fn target(&self) -> &Target {
        &self.0.manager().target
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.target().metrics
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics().register(registry);
        let name = self.metrics().pool;
        let pool = self.0.clone();
        registry.register(
            "db_client_connection_count",
            "Open database connections by state",
            Sampled::new(move || {
                let status = pool.status();
                let used = status.size - status.available;
                [("used", used), ("idle", status.available)]
                    .map(|(state, count)| {
                        let labels = [(POOL, name), ("db_client_connection_state", state)];
                        Sample::count(&labels, count)
                    })
                    .into()
            }),
        );
        let pool = self.0.clone();
        registry.register(
            "db_client_connection_max",
            "Limit of open database connections",
            Sampled::new(move || vec![Sample::count(&[(POOL, name)], pool.status().max_size)]),
        );
        let pool = self.0.clone();
        registry.register(
            "db_client_connection_pending_requests",
            "Operations that wait for a database connection",
            Sampled::new(move || vec![Sample::count(&[(POOL, name)], pool.status().waiting)]),
        );
    }

    /// Waits for a connection, also while the server refuses one or starts.
    async fn acquire(&self) -> Result<Checkout, DbErr> {
        let asked_at = Instant::now();
        let mut failure = None;
        let acquired = async {
            loop {
                match self.0.get().await {
                    Ok(pooled) => return Ok(Checkout(pooled)),
                    Err(PoolError::Backend(error)) if is_temporary(&error) => failure = Some(error),
                    Err(PoolError::Backend(error)) => return Err(error),
                    Err(_) => return Err(CLOSED),
                }
            }
        };
        let acquired = timeout_at(asked_at + ACQUIRE_TIMEOUT, acquired).await;
        let metrics = self.metrics();
        metrics.waited(asked_at.elapsed());
        acquired.unwrap_or_else(|_| {
            metrics.timeouts.inc(metrics.pool);
            Err(failure.unwrap_or(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))
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

/// A connection in use. If it is dropped, as after an error or when a caller is cancelled, the connection is
/// tested before it is used again, or closed if a transaction had it.
pub(super) struct Checkout(Object<Manager>);

impl Checkout {
    /// Commits the transaction of a session, or rolls it back. The error is that of the commit: what
    /// is not rolled back is lost with its connection.
    pub(super) async fn end(mut self, session: Session, commits: bool) -> Result<(), DbErr> {
        let ended = if commits {
            let started = Instant::now();
            let committed = session.commit().await;
            let trace = TraceSpan::current();
            let metrics = &self.0.metrics;
            metrics.committed(started.elapsed(), committed.is_err(), trace.as_ref());
            committed
        } else {
            session.roll_back().await
        };
        // After another error, the transaction may still be open.
        if ended.as_ref().err().is_none_or(is_serialization_failure) {
            self.0.connection = session.into_connection();
        } else {
            // Before the pool may open another connection: no more are open than it may have.
            drop(session);
        }
        let ended = self.finish(ended);
        if commits { ended } else { Ok(()) }
    }

    fn connection(&mut self) -> Result<&mut Connection, DbErr> {
        self.0.connection.as_mut().ok_or(CLOSED)
    }

    /// Notes that the connection needs no test if its operation has succeeded.
    fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.0.is_clean = result.is_ok();
        self.0.used_at = Instant::now();
        result
    }
}

/// Runs one statement on a connection, in a transaction of its own where sessions keep no prepared
/// statements.
macro_rules! run {
    ($connections:expr, $execute:ident, $statement:expr) => {
        async {
            if !$connections.target().keeps_statements {
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
        self.target().backend
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

/// Opens the connections, and tests them before they are used again.
#[derive(Debug)]
struct Manager {
    target: Target,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the server last accepted no connection, and its error.
    refusal: Option<(Instant, DbErr)>,
    /// When the last test that failed began: connections that were not used since are probably lost too,
    /// and each test takes time.
    lost_at: Option<Instant>,
}

/// A connection of the pool.
#[derive(Debug)]
struct Pooled {
    /// `None` while a transaction has it, and after one that did not end.
    connection: Option<Connection>,
    used_at: Instant,
    /// Whether its last statement has ended without an error. Otherwise it may be lost, or have a response
    /// to read.
    is_clean: bool,
    opened_at: Instant,
    metrics: Metrics,
}

impl Manager {
    fn refused(&self, error: sqlx::Error) -> DbErr {
        let is_refused = is_refusal(&error);
        let error = connect_error(error);
        if is_temporary(&error) {
            let refusal = Some((Instant::now(), error.clone()));
            let last = std::mem::replace(&mut self.state.lock().refusal, refusal);
            if is_refused && last.is_none_or(|(at, _)| at.elapsed() >= LOG_INTERVAL) {
                tracing::warn!(
                    reason = %error,
                    "PostgreSQL refuses more connections: continuing with the open ones; raise its limit or lower --database-connections"
                );
            }
        }
        if is_refused {
            self.target.metrics.refused.inc();
        }
        error
    }
}

/// Whether the server may accept a connection in a moment.
fn is_temporary(error: &DbErr) -> bool {
    driver_error(error).is_some_and(|error| is_refusal(error) || is_starting(error))
}

impl managed::Manager for Manager {
    type Type = Pooled;
    type Error = DbErr;

    async fn create(&self) -> Result<Pooled, DbErr> {
        let refusal = self.state.lock().refusal.clone();
        let error = match refusal.filter(|(at, _)| at.elapsed() < RETRY_AFTER) {
            // Not tried again at once: a refusal costs `PostgreSQL` a process.
            Some((_, error)) => error,
            None => match self.target.connect().await {
                Ok(connection) => {
                    let now = Instant::now();
                    return Ok(Pooled {
                        connection: Some(connection),
                        used_at: now,
                        is_clean: false,
                        opened_at: now,
                        metrics: self.target.metrics.clone(),
                    });
                }
                Err(error) => self.refused(error),
            },
        };
        if is_temporary(&error) {
            // With the pool's permit: other operations wait for an open connection.
            sleep(RETRY_AFTER).await;
        }
        Err(error)
    }

    async fn recycle(&self, pooled: &mut Pooled, _: &managed::Metrics) -> RecycleResult<DbErr> {
        let is_clean = std::mem::take(&mut pooled.is_clean);
        let Some(connection) = &mut pooled.connection else {
            return Err(CLOSED.into());
        };
        let (used_at, tested_at) = (pooled.used_at, Instant::now());
        let is_old = pooled.opened_at.elapsed() >= MAX_LIFETIME;
        if is_clean && !is_old && used_at.elapsed() < TEST_AFTER {
            return Ok(());
        }
        let lost_at = self.state.lock().lost_at;
        if is_old || lost_at.is_some_and(|lost_at| used_at <= lost_at) {
            return Err(CLOSED.into());
        }
        // Boxed: the test's future is larger than all that most operations need.
        if let Ok(Ok(())) = timeout(TEST_TIMEOUT, Box::pin(connection.ping())).await {
            return Ok(());
        }
        self.state.lock().lost_at = Some(tested_at);
        Err(CLOSED.into())
    }
}

/// A random delay of up to 2, 4, 8 … 128 ms before a conflicting transaction is tried again.
pub(super) fn jitter(tries: u32) -> Duration {
    Duration::from_micros(process::random::below(1000 << tries.min(7)))
}

/// Repeats work while its error is that of a conflict, until a timeout (`None`).
pub(super) async fn with_retries<T, E, W>(
    limit: Duration,
    work: impl Fn() -> W,
    is_conflict: impl Fn(&E) -> bool,
) -> Option<Result<T, E>>
where
    W: Future<Output = Result<T, E>>,
{
    let result = async {
        let mut tries = 1;
        loop {
            match work().await {
                Err(error) if is_conflict(&error) => sleep(jitter(tries)).await,
                result => return result,
            }
            tries += 1;
        }
    };
    timeout(limit, result).await.ok()
}
