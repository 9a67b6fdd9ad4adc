//! The loop that numbers events, on one core at a time.

use std::time::Duration;

use storage::events::Round;
use uuid::Uuid;

use crate::{error::Error, grpc::Core};

/// How long after its last turn nobody else need try to number events. Were its holder to die,
/// they would wait this long.
const LEASE: Duration = Duration::from_secs(10);

/// How many events get a number in one transaction at most.
const BATCH: usize = 1000;

/// How long events gather after the first, so that many share a transaction.
const GATHERING: Duration = Duration::from_millis(20);

/// How often the database is asked without being told of anything: soon after there was
/// something, then ever more rarely. It finds what was written through other cores.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_millis(500);

impl Core {
    /// Numbers events until told to stop.
    pub(crate) async fn number_events(&self) {
        let holder = Uuid::now_v7();
        let mut happened = self.happened.subscribe();
        let mut poll = SHORTEST_POLL;
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break,
                _ = happened.changed() => {
                    poll = SHORTEST_POLL;
                    tokio::time::sleep(GATHERING).await;
                }
                () = tokio::time::sleep(poll) => poll = (poll * 2).min(LONGEST_POLL),
            }
            match self.number_what_there_is(holder).await {
                Ok(Round::Numbered(0)) => {}
                Ok(Round::Numbered(_)) => poll = SHORTEST_POLL,
                // Its holder sees everything too.
                Ok(Round::NotOurs) => self.pause(LEASE / 4).await,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "events could not be numbered"
                    );
                    self.pause(LONGEST_POLL).await;
                }
            }
        }
        self.give_up_numbering(holder).await;
    }

    async fn number_what_there_is(&self, holder: Uuid) -> Result<Round, Error> {
        let mut count = 0;
        while storage::events::is_any_unnumbered(self.storage.reader()).await? {
            let round = self
                .storage
                .write(move |transaction| {
                    Box::pin(async move {
                        let lease = (holder, LEASE);
                        Ok::<_, Error>(storage::events::number(transaction, lease, BATCH).await?)
                    })
                })
                .await?;
            match round {
                Round::NotOurs => return Ok(Round::NotOurs),
                Round::Numbered(more) => {
                    self.numbered.send_replace(());
                    count += more;
                    if more < BATCH {
                        break;
                    }
                }
            }
        }
        Ok(Round::Numbered(count))
    }

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// So that another core goes on at once.
    async fn give_up_numbering(&self, holder: Uuid) {
        let given_up = self
            .storage
            .write(move |transaction| {
                Box::pin(async move { storage::events::give_up(transaction, Some(holder)).await })
            })
            .await;
        if let Err(error) = given_up {
            tracing::info!(
                error = &error as &dyn std::error::Error,
                "the lease on numbering events ends by itself"
            );
        }
    }
}
