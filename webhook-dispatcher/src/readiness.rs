//! The readiness check of a dispatcher, for `/readyz`.

use process::health::Readiness;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A dispatcher is ready with at least one open stream, until it shuts down.
pub(crate) struct DispatcherReadiness {
    pub(crate) streams: TaskTracker,
    pub(crate) shutdown: CancellationToken,
}

impl Readiness for DispatcherReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            Err("shutting down".to_owned())
        } else if self.streams.is_empty() {
            Err("no open stream from any core".to_owned())
        } else {
            Ok(())
        }
    }
}
