//! Tracks the requests in flight on a connection, so that an idle connection can be closed.

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
    had_request: AtomicBool,
    in_flight: AtomicUsize,
    /// Notified when a request begins and when one ends.
    changed: Notify,
}

/// Counts a request as in flight until it is dropped.
pub(crate) struct InFlight(Arc<Activity>);

impl Activity {
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.had_request.store(true, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        InFlight(Arc::clone(self))
    }

    /// Completes if no request begins before the timeout, otherwise never.
    pub(crate) async fn no_request_within(&self, timeout: Duration) {
        sleep(timeout).await;
        if self.had_request.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Completes once no request has been in flight for this long.
    pub(crate) async fn idle_for(&self, duration: Duration) {
        loop {
            let changed = self.changed.notified();
            if self.in_flight.load(Ordering::Relaxed) > 0 {
                changed.await;
            } else if timeout(duration, changed).await.is_err() {
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_no_request_has_been_in_flight_for_a_time() {
        let activity = Arc::new(Activity::default());
        let request = activity.begin();
        let mut idle = pin!(activity.idle_for(SECOND));

        for _ in 0..3 {
            assert!(poll!(idle.as_mut()).is_pending());
            advance(SECOND).await;
        }
        drop(request);
        assert!(poll!(idle.as_mut()).is_pending());
        advance(SECOND / 2).await;
        drop(activity.begin());
        assert!(poll!(idle.as_mut()).is_pending());
        advance(SECOND / 2).await;
        assert!(poll!(idle.as_mut()).is_pending());
        advance(SECOND / 2).await;
        assert!(poll!(idle.as_mut()).is_ready());
    }
}
