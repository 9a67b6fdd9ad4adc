//! Retention: what has ended long ago is removed, a little at a time.

use std::time::Duration;

use crate::{error::Error, grpc::Core, storage};

/// How often a core looks for something to remove.
const PAUSE: Duration = Duration::from_mins(1);

/// How many are removed by one transaction, and how long others have the database to themselves
/// before the next.
const BATCH: u64 = 500;
const BREATH: Duration = Duration::from_millis(200);

impl Core {
    /// Removes finished notifications of a certain age and their attempts, until told to stop.
    /// Every core does so; what one is removing the others pass over.
    pub(crate) async fn remove_finished_notifications(&self) {
        let mut moves = self.clock.moves();
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = moves.next() => {}
            }
            pause = match self.remove_some().await {
                Ok(BATCH) => BREATH,
                Ok(_) => PAUSE,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "old notifications could not be removed"
                    );
                    PAUSE
                }
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
