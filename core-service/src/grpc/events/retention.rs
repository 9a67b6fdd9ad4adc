//! The loop that removes events which have been kept long enough.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{error::Error, grpc::Core};

/// How often the oldest event is looked at.
const INTERVAL: Duration = Duration::from_mins(10);

/// How many are removed by one transaction.
const BATCH: u64 = 500;

impl Core {
    /// Removes old events until told to stop.
    pub(crate) async fn trim_events(&self) {
        let mut moves = self.clock.moves();
        loop {
            if let Err(error) = self.trim_old_events().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "old events could not be removed"
                );
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
                () = moves.next() => {}
            }
        }
    }

    async fn trim_old_events(&self) -> Result<(), Error> {
        let kept = SignedDuration::from_hours(24 * i64::from(self.config.event_retention_days));
        let Ok(before) = self.clock.now().checked_sub(kept) else {
            return Ok(());
        };
        while !self.shutdown.is_cancelled()
            && storage::events::is_any_older(self.storage.reader(), before).await?
        {
            self.storage
                .write(move |transaction| {
                    Box::pin(async move {
                        storage::events::trim(transaction, before, BATCH).await?;
                        Ok::<_, Error>(())
                    })
                })
                .await?;
        }
        Ok(())
    }
}
