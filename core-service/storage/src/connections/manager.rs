//! Opens the connections of a pool, and tests them before they are used again.

use std::time::Duration;

use deadpool::managed::{self, RecycleResult};
use migrations::driver_error;
use parking_lot::Mutex;
use sea_orm::{DbErr, sqlx};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    connect::{RETRY_AFTER, Target, is_refusal, is_starting},
    metrics::Metrics,
    session::{CLOSED, Connection, connect_error},
};

/// How long a connection may be idle before it is tested when it is taken. One in constant use
/// needs no test.
pub(super) const TEST_AFTER: Duration = Duration::from_secs(10);

/// How long a test may take, or the closing of a connection.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections that were opened earlier are replaced: new ones are distributed again where servers or
/// poolers share a name.
pub(super) const MAX_LIFETIME: Duration = Duration::from_mins(30);

/// After this time without a refusal, the next one is logged.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Manager {
    pub(super) target: Target,
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
pub(super) struct Pooled {
    /// `None` while a transaction has it, and after one that did not end.
    pub(super) connection: Option<Connection>,
    pub(super) used_at: Instant,
    /// Whether its last statement has ended without an error. Otherwise it may be lost, or have a response
    /// to read.
    pub(super) is_clean: bool,
    opened_at: Instant,
    pub(super) metrics: Metrics,
}

impl Manager {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            state: Mutex::default(),
        }
    }

    fn with_state<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut self.state.lock())
    }

    fn refused(&self, error: sqlx::Error) -> DbErr {
        let is_refused = is_refusal(&error);
        let error = connect_error(error);
        if is_temporary(&error) {
            let refusal = Some((Instant::now(), error.clone()));
            let last = self.with_state(|state| std::mem::replace(&mut state.refusal, refusal));
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
pub(super) fn is_temporary(error: &DbErr) -> bool {
    driver_error(error).is_some_and(|error| is_refusal(error) || is_starting(error))
}

impl managed::Manager for Manager {
    type Type = Pooled;
    type Error = DbErr;

    async fn create(&self) -> Result<Pooled, DbErr> {
        let refusal = self.with_state(|state| state.refusal.clone());
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
        if pooled.opened_at.elapsed() >= MAX_LIFETIME {
            return Err(CLOSED.into());
        }
        let (used_at, tested_at) = (pooled.used_at, Instant::now());
        if is_clean && used_at.elapsed() < TEST_AFTER {
            return Ok(());
        }
        if self.with_state(|state| state.lost_at.is_some_and(|lost_at| used_at <= lost_at)) {
            return Err(CLOSED.into());
        }
        // Boxed: the test's future is larger than all that most operations need.
        if let Ok(Ok(())) = timeout(TEST_TIMEOUT, Box::pin(connection.ping())).await {
            return Ok(());
        }
        self.with_state(|state| state.lost_at = Some(tested_at));
        Err(CLOSED.into())
    }
}
