//! What a dispatcher answers to `/readyz`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use process::health::Readiness;
use tokio_util::sync::CancellationToken;

/// How many cores there is an open stream from.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenStreams(Arc<AtomicUsize>);

/// Counts one stream until it is dropped.
pub(crate) struct OpenStream(Arc<AtomicUsize>);

impl OpenStreams {
    pub(crate) fn add(&self) -> OpenStream {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(&self.0))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A dispatcher can do its work if a core hands it any and it has not been told to end.
pub(crate) struct DispatcherReadiness {
    pub(crate) streams: OpenStreams,
    pub(crate) shutdown: CancellationToken,
}

impl Readiness for DispatcherReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            Err("this dispatcher is ending".to_owned())
        } else if self.streams.0.load(Ordering::Relaxed) == 0 {
            Err("there is no stream from any core".to_owned())
        } else {
            Ok(())
        }
    }
}
