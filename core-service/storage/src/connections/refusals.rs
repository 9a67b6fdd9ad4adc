//! What `PostgreSQL` refuses: connections above its limits by role, by database and by server, which
//! other programs use too, and all connections while it starts.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sea_orm::sqlx;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};

/// `SQLSTATE` of `too_many_connections`.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// `SQLSTATE` of `cannot_connect_now`: the server starts, stops or recovers.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// How long after a refusal as many connections as are open must do.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How often the refusal is logged, and how long after the last one the end of it is.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The permits that are withheld because `PostgreSQL` refused the connection of each. Operations
/// wait for the other permits, and so for the connections that are open.
#[derive(Debug)]
pub(super) struct Refusals {
    max: usize,
    withheld: Arc<AtomicUsize>,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    refused_at: Option<Instant>,
    logged_at: Option<Instant>,
}

impl Refusals {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            withheld: Arc::default(),
            last: Mutex::default(),
        }
    }

    /// Withholds a permit for some seconds.
    pub(super) fn begin(&self, reason: &sqlx::Error, permit: OwnedSemaphorePermit) {
        let withheld = Arc::clone(&self.withheld);
        withheld.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            sleep(RETRY_AFTER).await;
            withheld.fetch_sub(1, Ordering::Relaxed);
            drop(permit);
        });
        let mut last = self.lock();
        last.refused_at = Some(Instant::now());
        if last.logged_at.is_none_or(is_past) {
            last.logged_at = last.refused_at;
            tracing::warn!(
                reason = %message(reason),
                connections = self.max,
                "PostgreSQL refuses more connections: continuing with the open ones; raise its limit or lower --database-connections"
            );
        }
    }

    /// Reports that a connection was opened.
    pub(super) fn end(&self) {
        let mut last = self.lock();
        if last.refused_at.is_some_and(is_past) {
            last.refused_at = None;
            tracing::info!("PostgreSQL permits more connections again");
        }
    }

    pub(super) fn withheld(&self) -> usize {
        self.withheld.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_past(instant: Instant) -> bool {
    instant.elapsed() >= LOG_INTERVAL
}

pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    has_code(error, TOO_MANY_CONNECTIONS)
}

/// Whether the server may accept connections in a moment.
pub(super) fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        error => has_code(error, CANNOT_CONNECT_NOW),
    }
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|error| error.code().as_deref() == Some(code))
}

/// `PostgreSQL`'s own words.
fn message(error: &sqlx::Error) -> String {
    let database = error.as_database_error();
    database.map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
