//! The sequencer: numbers committed events, on one core at a time.

use std::{sync::Arc, time::Duration};

use process::metrics::Counter;
use storage::{Storage, events::SequencerRun};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::Error;

/// The lease of the sequencer, renewed whenever it numbers events. If its owner crashes, events wait
/// this long.
const LEASE_DURATION: Duration = Duration::from_secs(10);

/// The most events that one transaction numbers.
const BATCH: usize = 1000;

/// How long to wait for more events after the first, so that many share a transaction.
const BATCH_WINDOW: Duration = Duration::from_millis(20);

/// How often the database is polled without a signal from this core: the minimum interval after a
/// run that found events, then doubled up to the maximum. Polling finds events that other cores
/// wrote.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Numbers events.
pub(in crate::grpc) struct Sequencer {
    pub(in crate::grpc) storage: Arc<Storage>,
    /// Signalled when events are written that have no number yet.
    pub(in crate::grpc) events_written: watch::Sender<()>,
    /// Signalled when this core has numbered events.
    pub(in crate::grpc) events_sequenced: watch::Sender<()>,
    /// Counts the events that this core has numbered.
    pub(in crate::grpc) sequenced: Counter,
}

impl Sequencer {
    /// Numbers events until shutdown.
    pub(in crate::grpc) async fn run(self, shutdown: CancellationToken) {
        let lease_owner = Uuid::now_v7();
        let mut events_written = self.events_written.subscribe();
        let mut interval = MIN_POLL_INTERVAL;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = events_written.changed() => {
                    interval = MIN_POLL_INTERVAL;
                    tokio::time::sleep(BATCH_WINDOW).await;
                }
                () = tokio::time::sleep(interval) => {
                    interval = (interval * 2).min(MAX_POLL_INTERVAL);
                }
            }
            match self.number_events(lease_owner).await {
                Ok(SequencerRun::Numbered(0)) => {}
                Ok(SequencerRun::Numbered(_)) => interval = MIN_POLL_INTERVAL,
                // The owner of the lease finds the events, too.
                Ok(SequencerRun::LeaseHeldElsewhere) => pause(LEASE_DURATION / 4, &shutdown).await,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot number events"
                    );
                    pause(MAX_POLL_INTERVAL, &shutdown).await;
                }
            }
        }
        self.release(lease_owner).await;
    }

    async fn number_events(&self, lease_owner: Uuid) -> Result<SequencerRun, Error> {
        let mut total = 0;
        while storage::events::is_any_unnumbered(self.storage.reader()).await? {
            let run = self
                .storage
                .write(move |transaction| {
                    let lease = (lease_owner, LEASE_DURATION);
                    Box::pin(storage::events::assign_numbers(transaction, lease, BATCH))
                })
                .await?;
            match run {
                SequencerRun::LeaseHeldElsewhere => return Ok(SequencerRun::LeaseHeldElsewhere),
                SequencerRun::Numbered(count) => {
                    self.events_sequenced.send_replace(());
                    self.sequenced
                        .inc_by(u64::try_from(count).unwrap_or(u64::MAX));
                    total += count;
                    if count < BATCH {
                        break;
                    }
                }
            }
        }
        Ok(SequencerRun::Numbered(total))
    }

    /// Releases the lease, so that another core takes it at once.
    async fn release(&self, lease_owner: Uuid) {
        let released = self
            .storage
            .write(move |transaction| {
                Box::pin(storage::events::release_sequencer_lease(
                    transaction,
                    Some(lease_owner),
                ))
            })
            .await;
        if let Err(error) = released {
            tracing::info!(
                error = &error as &dyn std::error::Error,
                "cannot release the sequencer lease, it will expire"
            );
        }
    }
}

async fn pause(duration: Duration, shutdown: &CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = tokio::time::sleep(duration) => {}
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use storage::fixture;

    use super::*;

    async fn write_events(storage: &Storage, count: usize) {
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        fixture::leased_notifications(storage, &webhook, count, LEASE_DURATION).await;
    }

    fn sequencer(storage: &Arc<Storage>) -> Sequencer {
        Sequencer {
            storage: Arc::clone(storage),
            events_written: watch::Sender::new(()),
            events_sequenced: watch::Sender::new(()),
            sequenced: Counter::default(),
        }
    }

    #[tokio::test]
    async fn more_events_than_a_transaction_numbers_are_numbered_without_a_pause() {
        let (_directory, storage) = fixture::sqlite().await;
        write_events(&storage, BATCH + 1).await;

        let run = sequencer(&storage).number_events(Uuid::now_v7()).await;

        assert_eq!(run.unwrap(), SequencerRun::Numbered(BATCH + 1));
    }

    #[tokio::test]
    async fn a_sequencer_that_ends_leaves_its_lease_to_the_next() {
        let (_directory, storage) = fixture::sqlite().await;
        let sequencer = sequencer(&storage);
        let [first, second] = [(); 2].map(|()| Uuid::now_v7());
        write_events(&storage, 1).await;
        let run = sequencer.number_events(first).await.unwrap();
        assert_eq!(run, SequencerRun::Numbered(1));
        write_events(&storage, 1).await;
        let run = sequencer.number_events(second).await.unwrap();
        assert_eq!(run, SequencerRun::LeaseHeldElsewhere);

        sequencer.release(first).await;

        let run = sequencer.number_events(second).await.unwrap();
        assert_eq!(run, SequencerRun::Numbered(1));
        assert_eq!(sequencer.sequenced.get(), 2);
    }
}
