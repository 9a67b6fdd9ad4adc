//! The sequencer: numbers committed events, and gives changes of tasks their positions. Every core does so, one at a
//! time.

use std::{sync::Arc, time::Duration};

use process::{clock::Clock, metrics::Counter};
use storage::{Storage, notifications, task_changes};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{error::Error, notifications::Streams};

/// The most events, or changes of tasks, that one transaction numbers.
const BATCH: usize = 1000;

/// How long to wait for more events after the first, so that many share a transaction.
const BATCH_WINDOW: Duration = Duration::from_millis(20);

/// How often the database is polled without a signal from this core: the minimum interval after a
/// run that found events, then doubled up to the maximum. Polling finds events that other cores
/// wrote.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
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
            let mut is_any_failed = false;
            for (found, failure) in [
                // First: a later event of a delivery waits for that of its creation.
                (
                    self.move_changes().await,
                    "cannot move changes of tasks to their log",
                ),
                (self.number_events().await, "cannot number events"),
            ] {
                match found {
                    Ok(false) => {}
                    Ok(true) => interval = MIN_POLL_INTERVAL,
                    Err(error) => {
                        is_any_failed = true;
                        tracing::warn!(error = &error as &dyn std::error::Error, "{failure}");
                    }
                }
            }
            if is_any_failed {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(MAX_POLL_INTERVAL) => {}
                }
            }
        }
    }

    /// Writes the events of new deliveries, too. Returns whether any changes of tasks had no position.
    async fn move_changes(&self) -> Result<bool, Error> {
        let mut is_any_found = false;
        while task_changes::is_any_queued(self.storage.reader()).await? {
            is_any_found = true;
            let now = self.clock.now();
            let moved = self.storage.write(move |transaction| async move {
                let moved = task_changes::move_to_log(&transaction, BATCH, now).await?;
                let created = moved.as_ref().map_or(&[][..], |moved| &moved.created);
                let is_any_pending = !created.is_empty()
                    && notifications::insert_of_created(&transaction, created, now).await?;
                Ok::<_, storage::Error>(moved.map(|moved| (moved, is_any_pending)))
            });
            // Another core may be moving other changes: these are looked for again soon.
            let Some((moved, is_any_pending)) = moved.await? else {
                break;
            };
            self.events_sequenced.send_replace(());
            if is_any_pending {
                self.streams.wake();
            }
            self.sequenced
                .inc_by(u64::try_from(moved.created.len()).unwrap_or(u64::MAX));
            if moved.count < BATCH {
                break;
            }
        }
        Ok(is_any_found)
    }

    /// Returns whether there were any events without a number.
    async fn number_events(&self) -> Result<bool, Error> {
        let mut is_any_found = false;
        while storage::events::is_any_unnumbered(self.storage.reader()).await? {
            is_any_found = true;
            let numbered = self.storage.write(move |transaction| async move {
                storage::events::assign_numbers(&transaction, BATCH).await
            });
            // Another core may be numbering other events: these are looked for again soon.
            let Some(count) = numbered.await? else {
                break;
            };
            self.events_sequenced.send_replace(());
            self.sequenced
                .inc_by(u64::try_from(count).unwrap_or(u64::MAX));
            if count < BATCH {
                break;
            }
        }
        Ok(is_any_found)
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
                storage::events::assign_numbers(&transaction, BATCH).await?;
                signals[0].add_permits(1);
                let _end = signals[1].acquire().await;
                // Rolls back, as if the other core was killed.
                Err::<(), _>(Error::DefinitionChanged)
            });
            numbering.await
        });
        let _numbered = numbered.acquire().await.unwrap();
        let sequencer = sequencer(&storage);

        let run = tokio::time::timeout(Duration::from_mins(1), sequencer.number_events());
        assert!(run.await.expect("the run should end").unwrap());
        assert_eq!(sequencer.sequenced.get(), 0);

        end.add_permits(1);
        other.await.unwrap().unwrap_err();
        assert!(sequencer.number_events().await.unwrap());
        assert_eq!(sequencer.sequenced.get(), 1);
    }

    #[tokio::test]
    async fn more_events_than_a_transaction_numbers_are_numbered_without_a_pause() {
        let (_directory, storage) = fixture::sqlite().await;
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_mins(1);
        fixture::leased_notifications(&storage, &webhook, BATCH + 1, lease).await;
        let sequencer = sequencer(&storage);

        let is_any_found = sequencer.number_events().await.unwrap();

        assert!(is_any_found);
        assert_eq!(usize::try_from(sequencer.sequenced.get()), Ok(BATCH + 1));
        assert!(!sequencer.number_events().await.unwrap());
    }
}
