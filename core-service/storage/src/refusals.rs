//! Works with the open connections while `PostgreSQL` refuses more. `PostgreSQL` limits connections
//! by role, by database and by server, and other programs use them too. The pool retries a refused
//! connection until its timeout and reports neither the reason nor the connections that become idle
//! meanwhile.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use process::metrics::Counter;
use sea_orm::{DbErr, RuntimeErr, sqlx};
use sqlx::{Connection as _, PgPool, postgres::PgConnection};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// `SQLSTATE` of `too_many_connections`.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// The minimum time between two trial connections, if the last one was refused.
const TRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long after a refusal, at least, a trial connection precedes each that the pool opens.
const EXPECTED_FOR: Duration = Duration::from_mins(1);

/// How often the refusal is logged.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// How long a trial connection may take.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the pool is asked for an idle connection; it does not signal one.
const IDLE_POLL: Duration = Duration::from_millis(1);

/// Whether `PostgreSQL` refuses connections.
#[derive(Debug)]
pub(super) struct Refusals {
    pool: PgPool,
    max: u32,
    /// Set by a refusal. Cleared by a successful trial, at least [`EXPECTED_FOR`] after the last
    /// refusal.
    are_expected: AtomicBool,
    last: Mutex<Last>,
    /// Held while an operation takes an idle connection, so that no other takes it.
    idle_lock: tokio::sync::Mutex<()>,
    count: Counter,
}

#[derive(Debug, Default)]
struct Last {
    refused_at: Option<Instant>,
    tried_at: Option<Instant>,
    logged_at: Option<Instant>,
    reason: Option<Arc<sqlx::Error>>,
}

impl Refusals {
    pub(super) fn new(pool: PgPool, max: u32, count: Counter) -> Self {
        Self {
            pool,
            max,
            are_expected: AtomicBool::new(false),
            last: Mutex::default(),
            idle_lock: tokio::sync::Mutex::new(()),
            count,
        }
    }

    /// Whether an operation must [wait for a connection](Self::wait_for_connection).
    pub(super) fn are_expected(&self) -> bool {
        self.are_expected.load(Ordering::Relaxed)
    }

    /// Waits for an idle connection, or until `PostgreSQL` permits another one. While the result is
    /// held, no other operation gets one.
    pub(super) async fn wait_for_connection(&self, deadline: Instant) -> Option<impl Drop> {
        let guard = timeout_at(deadline, self.idle_lock.lock()).await.ok()?;
        while self.pool.num_idle() == 0 && Instant::now() < deadline {
            let may_try = self.lock().tried_at.is_none_or(is_past(TRY_INTERVAL));
            if may_try && self.pool.size() < self.max && self.check().await.is_none() {
                break;
            }
            sleep(IDLE_POLL).await;
        }
        Some(guard)
    }

    /// Opens a trial connection, unless one was refused just now. Returns the reason of a refusal.
    pub(super) async fn check(&self) -> Option<DbErr> {
        {
            let mut last = self.lock();
            if let (Some(tried_at), Some(reason)) = (last.tried_at, &last.reason)
                && tried_at.elapsed() < TRY_INTERVAL
            {
                return Some(refused(reason));
            }
            last.tried_at = Some(Instant::now());
        }
        let options = self.pool.connect_options();
        let trial = timeout(TRIAL_TIMEOUT, PgConnection::connect_with(&options)).await;
        match trial {
            Ok(Ok(connection)) => {
                // Closed first: otherwise the server may refuse the one that the pool opens next.
                let _ = connection.close().await;
                self.succeeded();
                None
            }
            Ok(Err(error)) if is_refusal(&error) => Some(self.refused(error)),
            // Not a refusal: the operation's own connection fails too and reports the error.
            Ok(Err(_)) | Err(_) => None,
        }
    }

    fn refused(&self, error: sqlx::Error) -> DbErr {
        let reason = Arc::new(error);
        self.count.inc();
        let mut last = self.lock();
        if last.logged_at.is_none_or(is_past(LOG_INTERVAL)) {
            tracing::warn!(
                reason = %message(&reason),
                connections = self.max,
                "PostgreSQL refuses more connections: continuing with the open ones; raise its limit or lower --database-connections"
            );
            last.logged_at = Some(Instant::now());
        }
        last.refused_at = Some(Instant::now());
        last.reason = Some(Arc::clone(&reason));
        self.are_expected.store(true, Ordering::Relaxed);
        refused(&reason)
    }

    fn succeeded(&self) {
        let mut last = self.lock();
        last.tried_at = None;
        last.reason = None;
        if last.refused_at.is_some_and(is_past(EXPECTED_FOR)) {
            last.refused_at = None;
            self.are_expected.store(false, Ordering::Relaxed);
            tracing::info!("PostgreSQL permits more connections again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_past(duration: Duration) -> impl Fn(Instant) -> bool {
    move |instant| instant.elapsed() >= duration
}

fn refused(reason: &Arc<sqlx::Error>) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::clone(reason)))
}

fn is_refusal(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|error| error.code().as_deref() == Some(TOO_MANY_CONNECTIONS))
}

/// `PostgreSQL`'s own words.
fn message(error: &sqlx::Error) -> String {
    let database = error.as_database_error();
    database.map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
