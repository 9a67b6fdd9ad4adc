//! Claims: one task leases due notifications for all streams of this process, within their credit.

use std::{sync::Arc, time::Duration};

use domain::scheduling::LEASE_DURATION;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Queue, streams::LeasedNotification};
use storage::notifications::ClaimedBatch;

use crate::error::Error;

/// The interval between polls of the database without a wake-up: short after a successful claim,
/// then longer each time. What other processes enqueue and what becomes due on schedule, the sequencer finds: an idle
/// core has one poller.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// How long after a claim the sequencer's finding is heeded: what it finds may not be claimable.
const DUE_FOUND_PAUSE: Duration = Duration::from_secs(1);

/// How long freed capacity waits for more, so that one claim uses it.
const REFILL_WINDOW: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimResult {
    NothingDue,
    /// There is no credit, or concurrency limits exclude everything that is due.
    NoCapacity,
    /// Notifications are leased.
    Claimed {
        /// Whether another claim may find more at once.
        may_be_more: bool,
    },
}

impl Queue {
    pub(crate) async fn claim_due(self: Arc<Self>, shutdown: CancellationToken) {
        let mut notifications_ready = self.streams.notifications_ready.subscribe();
        let mut changes = self.clock.manual_changes();
        let mut interval = MIN_POLL_INTERVAL;
        while !shutdown.is_cancelled() {
            let result = self.claim().await.unwrap_or_else(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot claim notifications, retrying"
                );
                ClaimResult::NothingDue
            });
            if let ClaimResult::Claimed { may_be_more } = result {
                interval = MIN_POLL_INTERVAL;
                if may_be_more {
                    continue;
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                _ = notifications_ready.changed() => interval = MIN_POLL_INTERVAL,
                () = changes.next() => interval = MIN_POLL_INTERVAL,
                () = self.due_found() => {}
                // Only then can it make one claimable.
                () = self.streams.capacity_freed.notified(), if result != ClaimResult::NothingDue => {
                    interval = MIN_POLL_INTERVAL;
                    sleep(REFILL_WINDOW).await;
                }
                () = sleep(interval) => interval = (interval * 2).min(MAX_POLL_INTERVAL),
            }
        }
    }

    async fn due_found(&self) {
        sleep(DUE_FOUND_PAUSE).await;
        self.streams.due_found.notified().await;
    }

    /// Leases due notifications, and has them sent on the streams in turn.
    async fn claim(&self) -> Result<ClaimResult, Error> {
        let now = self.clock.now();
        // First a check without a transaction and without reserving credit: notifications that are
        // inserted meanwhile can be pre-leased with that credit.
        let budget = {
            let mut flow_control = self.streams.flow_control();
            flow_control.remove_expired(Instant::now());
            flow_control.claim_budget()
        };
        let Some(budget) = budget else {
            return Ok(ClaimResult::NoCapacity);
        };
        let reader = self.storage.reader();
        if !storage::notifications::is_any_due(reader, now).await? {
            return Ok(ClaimResult::NothingDue);
        }
        if !storage::notifications::is_any_claimable(reader, &budget, now).await? {
            return Ok(ClaimResult::NoCapacity);
        }
        let Some(budget) = self.streams.flow_control().begin_claim() else {
            return Ok(ClaimResult::NoCapacity);
        };
        let leased_at = Instant::now();
        let claimed = self.storage.write(move |transaction| async move {
            storage::notifications::claim(&transaction, &budget, LEASE_DURATION, now).await
        });
        let claimed = claimed.await;
        if claimed.is_err() {
            // Else nothing could be pre-leased until the next claim.
            self.streams.flow_control().end_claim();
        }
        let ClaimedBatch {
            claimed,
            is_complete,
        } = claimed?;
        let is_empty = claimed.is_empty();
        let leased = claimed
            .into_iter()
            .map(|claimed| LeasedNotification { claimed, leased_at });
        let unsent = self.streams.flow_control().send_claimed(leased);
        self.release_unsent(unsent).await;
        Ok(if is_empty {
            ClaimResult::NoCapacity
        } else {
            ClaimResult::Claimed {
                may_be_more: !is_complete,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;
    use tokio::{sync::mpsc, time::timeout};

    use super::{super::fixture::queue, *};

    impl Queue {
        /// How often the database was read.
        async fn reads(&self) -> u64 {
            let mut exposition = Exposition::new();
            self.storage.register_metrics(exposition.registry());
            let rendered = exposition.render().await;
            let name = "db_client_connection_wait_time_seconds_count";
            let line = rendered.lines().find(|line| line.starts_with(name));
            // There is none before the first read.
            let value = line.and_then(|line| line.rsplit_once(' '));
            value.map_or(0, |(_, count)| count.parse().unwrap())
        }
    }

    #[tokio::test]
    async fn without_due_notifications_the_database_is_polled_at_growing_intervals() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, _sent) = mpsc::channel(1);
        let (stream, _leased) = queue.streams.open(&responses);
        queue.streams.grant(stream, 1);
        let before = queue.reads().await;

        // At once, after 50 ms, and after another 100 ms.
        let claiming = Arc::clone(&queue).claim_due(CancellationToken::new());
        let ended = timeout(3 * MIN_POLL_INTERVAL, claiming).await;

        assert!(ended.is_err(), "{ended:?}");
        // A poll that finds nothing reads once.
        let polls = queue.reads().await - before;
        assert!((1..=3).contains(&polls), "{polls}");
    }

    #[tokio::test]
    async fn nothing_is_claimed_without_credit_or_for_a_dispatcher_that_does_not_read() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let lease = queue.lease_one(LEASE_DURATION).await;
        queue.release(vec![lease]).await.unwrap();
        assert_eq!(queue.claim().await.unwrap(), ClaimResult::NoCapacity);
        let (responses, mut sent) = mpsc::channel(1);
        let (stream, mut leased) = queue.streams.open(&responses);
        assert_eq!(queue.claim().await.unwrap(), ClaimResult::NoCapacity);
        queue.streams.grant(stream, 1);
        let response = proto::ReceiveResponse::default();
        responses.try_send(Ok(response)).unwrap();
        assert_eq!(queue.claim().await.unwrap(), ClaimResult::NoCapacity);

        sent.recv().await.unwrap().unwrap();
        let claimed = queue.claim().await.unwrap();

        assert_eq!(claimed, ClaimResult::Claimed { may_be_more: true });
        assert_eq!(leased.try_recv().unwrap()[0].claimed.lease.id, lease.id);
        assert_eq!(queue.claim().await.unwrap(), ClaimResult::NoCapacity);
        queue.streams.grant(stream, 1);
        assert_eq!(queue.claim().await.unwrap(), ClaimResult::NothingDue);
    }
}
