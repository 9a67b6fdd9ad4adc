//! Whether a connection is of use to anybody.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// The requests on one connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    heard: AtomicBool,
    in_flight: AtomicUsize,
    /// Told when a request begins, and when one ends.
    changed: Notify,
}

/// A request, until it is dropped.
pub(crate) struct InFlight(Arc<Activity>);

impl Activity {
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.heard.store(true, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        InFlight(Arc::clone(self))
    }

    /// Ends if there has been no request when the time has passed, else never.
    pub(crate) async fn silence(&self, patience: Duration) {
        sleep(patience).await;
        if self.heard.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Ends once no request has been in flight for so long.
    pub(crate) async fn idle(&self, patience: Duration) {
        loop {
            let changed = self.changed.notified();
            if self.in_flight.load(Ordering::Relaxed) > 0 {
                changed.await;
            } else if timeout(patience, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}
