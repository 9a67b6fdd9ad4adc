//! Cancels pending notifications of disabled webhooks and removes old finished ones, in small
//! batches, and forgets old failures of hosts.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use process::clock::Clock;
use storage::Storage;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How often to look for notifications to cancel or remove.
const INTERVAL: Duration = Duration::from_mins(1);

/// The most notifications that one transaction removes, and the pause before the next, which
/// leaves the database to other writes.
const BATCH: u64 = 500;
const PAUSE_BETWEEN_BATCHES: Duration = Duration::from_millis(200);

/// Cancels and removes notifications.
pub(in crate::grpc) struct NotificationCleanup {
    pub(in crate::grpc) storage: Arc<Storage>,
    pub(in crate::grpc) clock: Clock,
    pub(in crate::grpc) retention: SignedDuration,
}

impl NotificationCleanup {
    /// Cancels pending notifications of disabled webhooks and removes finished ones past their
    /// retention with their attempts, until shutdown. Every core does so; removing skips rows that
    /// another core has locked, cancelling waits for the webhook's lock.
    pub(in crate::grpc) async fn run(self, shutdown: CancellationToken) {
        let mut clock_changes = self.clock.manual_changes();
        let mut pause = INTERVAL;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = clock_changes.next() => {}
            }
            let cancelled =
                storage::notifications::cancel_backlog_batch(&self.storage, self.clock.now()).await;
            let has_cancelled = match cancelled {
                Ok(has_cancelled) => has_cancelled,
                Err(error) => {
                    log_failure(&error, "cannot cancel notifications of disabled webhooks");
                    false
                }
            };
            let has_removed = match self.remove_some().await {
                Ok(count) => count == BATCH,
                Err(error) => {
                    log_failure(&error, "cannot remove old notifications");
                    false
                }
            };
            pause = if has_cancelled || has_removed {
                PAUSE_BETWEEN_BATCHES
            } else {
                INTERVAL
            };
        }
    }

    async fn remove_some(&self) -> Result<u64, Error> {
        let now = self.clock.now();
        let Ok(before) = now.checked_sub(self.retention) else {
            return Ok(0);
        };
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    storage::notifications::remove_old_failures(transaction, now).await?;
                    Ok(storage::notifications::remove_finished(transaction, before, BATCH).await?)
                })
            })
            .await
    }
}

fn log_failure(error: &(dyn std::error::Error + 'static), message: &'static str) {
    tracing::warn!(error, "{message}");
}
