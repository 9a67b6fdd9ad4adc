//! The readiness check of a dispatcher, for `/readyz`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use process::health::Readiness;
use tokio_util::sync::CancellationToken;

/// The number of open streams from cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenStreams(Arc<AtomicUsize>);

/// Counts one stream until it is dropped.
pub(crate) struct OpenStream(Arc<AtomicUsize>);

impl OpenStreams {
    pub(crate) fn add(&self) -> OpenStream {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A dispatcher is ready with at least one open stream, until it shuts down.
pub(crate) struct DispatcherReadiness {
    pub(crate) streams: OpenStreams,
    pub(crate) shutdown: CancellationToken,
}

impl Readiness for DispatcherReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            Err("shutting down".to_owned())
        } else if self.streams.count() == 0 {
            Err("no open stream from any core".to_owned())
        } else {
            Ok(())
        }
    }
}
