//! Removes events past their retention.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use process::clock::Clock;
use storage::Storage;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How often to look for old events.
const INTERVAL: Duration = Duration::from_mins(10);

/// The most events that one transaction removes.
const BATCH: u64 = 500;

/// Removes old events.
pub(in crate::grpc) struct EventRetention {
    pub(in crate::grpc) storage: Arc<Storage>,
    pub(in crate::grpc) clock: Clock,
    pub(in crate::grpc) retention: SignedDuration,
}

impl EventRetention {
    /// Removes old events until shutdown.
    pub(in crate::grpc) async fn run(self, shutdown: CancellationToken) {
        let mut changes = self.clock.manual_changes();
        loop {
            if let Err(error) = self.remove_old(&shutdown).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot remove old events"
                );
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
                () = changes.next() => {}
            }
        }
    }

    async fn remove_old(&self, shutdown: &CancellationToken) -> Result<(), Error> {
        let Ok(before) = self.clock.now().checked_sub(self.retention) else {
            return Ok(());
        };
        while !shutdown.is_cancelled()
            && storage::events::is_any_older(self.storage.reader(), before).await?
        {
            self.storage
                .write(move |transaction| {
                    Box::pin(storage::events::remove_oldest(transaction, before, BATCH))
                })
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use storage::{events::SequencerRun, fixture};
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn events_are_removed_after_their_retention_and_not_before() {
        let (_directory, storage) = fixture::sqlite().await;
        let retention = SignedDuration::from_hours(24);
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_mins(1);
        // Each has an event. Only numbered ones are removed.
        fixture::leased_notifications(&storage, &webhook, 3, lease).await;
        let numbered = storage.write(move |transaction| {
            let lease = (Uuid::nil(), lease);
            Box::pin(storage::events::assign_numbers(transaction, lease, 3))
        });
        assert_eq!(numbered.await.unwrap(), SequencerRun::Numbered(3));
        for (after, is_left) in [(0, true), (1, false)] {
            let now = webhook.created_at + retention + SignedDuration::from_micros(after);
            let events = EventRetention {
                storage: Arc::clone(&storage),
                clock: Clock::manual(now),
                retention,
            };

            events.remove_old(&CancellationToken::new()).await.unwrap();

            let reader = storage.reader();
            let is_any_left = storage::events::is_any_older(reader, Timestamp::MAX).await;
            assert_eq!(is_any_left.unwrap(), is_left, "{after}");
        }
    }
}
