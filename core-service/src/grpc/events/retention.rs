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
