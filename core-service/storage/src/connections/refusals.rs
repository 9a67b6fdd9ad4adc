//! What `PostgreSQL` refuses: connections above its limits by role, by database and by server, which
//! other programs use too, and all connections while it starts.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sea_orm::sqlx;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};

/// While another refusal is likely, how long after one attempt to connect the next may follow. A permit is
/// withheld as long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long after a refusal another one is likely, and explains why an operation got no connection.
/// Longer than any operation waits.
const RECENT_REFUSAL: Duration = Duration::from_secs(10);

/// The minimum time between two refusals that are logged, and from the last refusal to the log of
/// their end.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// While connections are refused, an operation that finds no idle one leaves its permit here for a
/// second, and waits at the end of the queue for a permit of an open connection.
#[derive(Debug)]
pub(super) struct Refusals {
    max: usize,
    /// Has a clone for each withheld permit.
    withheld: Arc<()>,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    refused_at: Option<Instant>,
    /// When a connection was last tried, while another refusal is likely.
    tried_at: Option<Instant>,
    logged_at: Option<Instant>,
    reason: Option<Arc<sqlx::Error>>,
}

impl Refusals {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            withheld: Arc::default(),
            last: Mutex::default(),
        }
    }

    /// Whether an operation may open a connection. While some are refused, one operation a second.
    pub(super) fn may_connect(&self) -> bool {
        let mut last = self.lock();
        if !last.is_refused_within(RECENT_REFUSAL) {
            return true;
        }
        let may_try = last.tried_at.is_none_or(|at| at.elapsed() >= RETRY_AFTER);
        if may_try {
            last.tried_at = Some(Instant::now());
        }
        may_try
    }

    /// The reason of the last refusal, unless it was some time ago.
    pub(super) fn reason(&self) -> Option<Arc<sqlx::Error>> {
        let last = self.lock();
        let is_recent = last.is_refused_within(RECENT_REFUSAL);
        last.reason.clone().filter(|_| is_recent)
    }

    pub(super) fn refused(&self, reason: sqlx::Error) {
        let mut last = self.lock();
        let now = Instant::now();
        let is_past = |logged_at: Instant| logged_at.elapsed() >= LOG_INTERVAL;
        if last.logged_at.is_none_or(is_past) {
            last.logged_at = Some(now);
            tracing::warn!(
                reason = %message(&reason),
                connections = self.max,
                "PostgreSQL refuses more connections: continuing with the open ones; raise its limit or lower --database-connections"
            );
        }
        last.refused_at = Some(now);
        last.tried_at = Some(now);
        last.reason = Some(Arc::new(reason));
    }

    /// Lets the next operation try at once: this one failed for another reason.
    pub(super) fn failed(&self) {
        self.lock().tried_at = None;
    }

    /// Withholds a permit for [`RETRY_AFTER`].
    pub(super) fn withhold(&self, permit: OwnedSemaphorePermit) {
        let withheld = Arc::clone(&self.withheld);
        tokio::spawn(async move {
            sleep(RETRY_AFTER).await;
            drop((withheld, permit));
        });
    }

    /// Reports that a connection was opened.
    pub(super) fn opened(&self) {
        let mut last = self.lock();
        last.tried_at = None;
        if last.refused_at.is_some() && !last.is_refused_within(LOG_INTERVAL) {
            *last = Last::default();
            tracing::info!("PostgreSQL permits more connections again");
        }
    }

    pub(super) fn withheld(&self) -> usize {
        Arc::strong_count(&self.withheld) - 1
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    fn is_refused_within(&self, duration: Duration) -> bool {
        self.refused_at.is_some_and(|at| at.elapsed() < duration)
    }
}

/// The message that `PostgreSQL` sent.
fn message(error: &sqlx::Error) -> String {
    let database = error.as_database_error();
    database.map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::{sync::Semaphore, time::advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn while_connections_are_refused_one_is_tried_each_second() {
        let refusals = Refusals::new(1);
        assert!(refusals.may_connect() && refusals.may_connect());
        refusals.refused(sqlx::Error::PoolTimedOut);
        assert!(!refusals.may_connect());

        advance(RETRY_AFTER).await;
        assert!(refusals.may_connect());
        assert!(!refusals.may_connect(), "one is being tried");

        // The next may try at once, as long as another refusal is likely.
        for succeeded_or_failed in [Refusals::opened, Refusals::failed] {
            succeeded_or_failed(&refusals);
            assert!(refusals.may_connect());
            assert!(!refusals.may_connect());
        }
        advance(RECENT_REFUSAL.saturating_sub(RETRY_AFTER)).await;
        assert!(refusals.may_connect() && refusals.may_connect());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_explains_for_ten_seconds_why_there_is_no_connection() {
        let refusals = Refusals::new(1);
        assert!(refusals.reason().is_none());

        refusals.refused(sqlx::Error::PoolTimedOut);
        refusals.opened();
        let reason = refusals.reason();
        assert!(
            matches!(reason.as_deref(), Some(sqlx::Error::PoolTimedOut)),
            "{reason:?}"
        );

        advance(RECENT_REFUSAL).await;
        assert!(refusals.reason().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_withheld_for_a_second() {
        let refusals = Refusals::new(1);
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        assert_eq!(refusals.withheld(), 0);

        let started = Instant::now();
        refusals.withhold(permit);
        assert_eq!(refusals.withheld(), 1);
        let _available = permits.acquire().await.unwrap();

        assert_eq!(refusals.withheld(), 0);
        let took = started.elapsed();
        assert!(took >= RETRY_AFTER && took < 2 * RETRY_AFTER, "{took:?}");
    }

    #[test]
    fn the_message_of_an_error_without_one_of_postgresql_is_its_own() {
        let error = sqlx::Error::PoolTimedOut;
        assert_eq!(message(&error), error.to_string());
    }
}
