//! What is left pending of disabled webhooks is dropped, and what has ended long ago removed, a
//! little at a time.

use std::time::Duration;

use crate::{error::Error, grpc::Core};

/// How often a core looks for something to drop or to remove.
const PAUSE: Duration = Duration::from_mins(1);

/// How many are removed by one transaction, and how long others have the database to themselves
/// before the next.
const BATCH: u64 = 500;
const BREATH: Duration = Duration::from_millis(200);

impl Core {
    /// Drops what is left pending of disabled webhooks, and removes finished notifications of a
    /// certain age and their attempts, until told to stop. Every core does so; what one is
    /// removing the others pass over.
    pub(crate) async fn remove_finished_notifications(&self) {
        let mut moves = self.clock.moves();
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = moves.next() => {}
            }
            let dropped =
                storage::notifications::drop_some_left(&self.storage, self.clock.now()).await;
            let has_dropped = match dropped {
                Ok(has_dropped) => has_dropped,
                Err(error) => {
                    say_failed(
                        &error,
                        "what is left of disabled webhooks could not be dropped",
                    );
                    false
                }
            };
            let has_removed = match self.remove_some().await {
                Ok(count) => count == BATCH,
                Err(error) => {
                    say_failed(&error, "old notifications could not be removed");
                    false
                }
            };
            pause = if has_dropped || has_removed {
                BREATH
            } else {
                PAUSE
            };
        }
    }

    async fn remove_some(&self) -> Result<u64, Error> {
        let now = self.clock.now();
        let Ok(before) = now.checked_sub(self.config.webhooks.retention()) else {
            return Ok(0);
        };
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    Ok(storage::notifications::remove_finished(transaction, before, BATCH).await?)
                })
            })
            .await
    }
}

fn say_failed(error: &(dyn std::error::Error + 'static), what: &'static str) {
    tracing::warn!(error, "{what}");
}
