//! The sequencer: numbers committed events, and gives changes of tasks their positions. Every core does so, one at a
//! time.

use std::{sync::Arc, time::Duration};

use process::{clock::Clock, metrics::Counter};
use storage::{
    Storage,
    events::{self, QueueHeads},
    notifications, task_changes,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{error::Error, notifications::Streams};

/// The most events, or changes of tasks, that one transaction numbers.
const BATCH: usize = 1000;

/// How long to wait for more events after the first, so that many share a transaction.
const BATCH_WINDOW: Duration = Duration::from_millis(20);

/// How often the database is polled without a signal from this core: the minimum interval after a
/// run that found events, then doubled up to the maximum. Polling finds events that other cores
/// wrote, and, for the task that claims, notifications that are due.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Sequencer {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    /// They signal when events are written that have no number yet, and are woken for notifications.
    pub(crate) streams: Arc<Streams>,
    /// Signalled when this core has numbered events, or given changes of tasks their positions.
    pub(crate) events_sequenced: watch::Sender<()>,
    pub(crate) sequenced: Counter,
}

impl Sequencer {
    /// Numbers events until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut events_written = self.streams.events_written.subscribe();
        let mut interval = MIN_POLL_INTERVAL;
        let mut heads = QueueHeads::BEGINNING;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = events_written.changed() => {
                    interval = MIN_POLL_INTERVAL;
                    tokio::time::sleep(BATCH_WINDOW).await;
                }
                () = tokio::time::sleep(interval) => {
                    interval = (interval * 2).min(MAX_POLL_INTERVAL);
                }
            }
            match self.sequence(&mut heads).await {
                Ok(false) => {}
                Ok(true) => interval = MIN_POLL_INTERVAL,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot sequence events and changes of tasks"
                    );
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(MAX_POLL_INTERVAL) => {}
                    }
                }
            }
        }
    }

    /// Returns whether there was anything to do.
    async fn sequence(&self, heads: &mut QueueHeads) -> Result<bool, Error> {
        let now = self.clock.now();
        let waiting = events::waiting(self.storage.reader(), heads, now).await?;
        if waiting.is_any_due {
            self.streams.found_due();
        }
        // First: a later event of a delivery waits for that of its creation.
        let are_moved = !waiting.changes || self.move_changes(*heads).await?;
        if waiting.events && are_moved {
            self.number_events(*heads).await?;
        }
        if waiting.is_anything() {
            self.notify_of_created().await?;
        }
        Ok(waiting.is_anything())
    }

    /// Writes the events of new deliveries, too. Returns whether none waits any more: another core may be moving some.
    async fn move_changes(&self, heads: QueueHeads) -> Result<bool, Error> {
        loop {
            let now = self.clock.now();
            let moved = self.storage.write(move |transaction| async move {
                task_changes::move_to_log(&transaction, BATCH, heads, now).await
            });
            let Some(moved) = moved.await? else {
                return Ok(false);
            };
            self.signal(moved.created);
            if moved.changes < BATCH {
                return Ok(true);
            }
        }
    }

    /// Another core may be numbering other events: these are looked for again soon.
    async fn number_events(&self, heads: QueueHeads) -> Result<(), Error> {
        loop {
            let numbered = self.storage.write(move |transaction| async move {
                events::assign_numbers(&transaction, BATCH, heads).await
            });
            let Some(count) = numbered.await? else {
                return Ok(());
            };
            self.signal(count);
            if count < BATCH {
                return Ok(());
            }
        }
    }

    async fn notify_of_created(&self) -> Result<(), Error> {
        loop {
            let now = self.clock.now();
            let notified = self.storage.write(move |transaction| async move {
                notifications::notify_of_created(&transaction, BATCH as u64, now).await
            });
            let Some(notified) = notified.await? else {
                return Ok(());
            };
            if notified.is_any_pending {
                self.streams.wake();
            }
            if !notified.has_more {
                return Ok(());
            }
        }
    }

    /// Says that there is something new in the logs, and counts events.
    fn signal(&self, events: usize) {
        self.events_sequenced.send_replace(());
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        self.sequenced.inc_by(events);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use storage::fixture;
    use tokio::sync::Semaphore;

    use super::*;

    fn sequencer(storage: &Arc<Storage>) -> Sequencer {
        Sequencer {
            storage: Arc::clone(storage),
            clock: Clock::system(),
            streams: Arc::new(Streams::new().0),
            events_sequenced: watch::Sender::new(()),
            sequenced: Counter::default(),
        }
    }

    #[tokio::test]
    async fn a_run_ends_if_another_core_is_numbering_and_finds_the_events_again_later() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        fixture::leased_notifications(&storage, &webhook, 1, Duration::from_mins(1)).await;
        let signals = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let [numbered, end] = signals.clone();
        let other = Arc::clone(&storage);
        let other = tokio::spawn(async move {
            let numbering = other.write(move |transaction| async move {
                events::assign_numbers(&transaction, BATCH, QueueHeads::BEGINNING).await?;
                signals[0].add_permits(1);
                let _end = signals[1].acquire().await;
                // Rolls back, as if the other core was killed.
                Err::<(), _>(Error::DefinitionChanged)
            });
            numbering.await
        });
        let _numbered = numbered.acquire().await.unwrap();
        let sequencer = sequencer(&storage);

        let run = tokio::time::timeout(
            Duration::from_mins(1),
            sequencer.number_events(QueueHeads::BEGINNING),
        );
        run.await.expect("the run should end").unwrap();
        assert_eq!(sequencer.sequenced.get(), 0);

        end.add_permits(1);
        other.await.unwrap().unwrap_err();
        let mut heads = QueueHeads::BEGINNING;
        assert!(sequencer.sequence(&mut heads).await.unwrap());
        assert_eq!(sequencer.sequenced.get(), 1);
    }

    #[tokio::test]
    async fn more_events_than_a_transaction_numbers_are_numbered_without_a_pause() {
        let (_directory, storage) = fixture::sqlite().await;
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_mins(1);
        fixture::leased_notifications(&storage, &webhook, BATCH + 1, lease).await;
        let sequencer = sequencer(&storage);

        let mut heads = QueueHeads::BEGINNING;
        assert!(sequencer.sequence(&mut heads).await.unwrap());

        assert_eq!(usize::try_from(sequencer.sequenced.get()), Ok(BATCH + 1));
        assert!(!sequencer.sequence(&mut heads).await.unwrap());
    }
}
