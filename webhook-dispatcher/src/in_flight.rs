//! Counts the notifications or the test sends of a session in flight: from their arrival until a core
//! has recorded their outcomes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use process::metrics::Gauge;
use tokio::sync::Notify;

#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<State>);

#[derive(Debug, Default)]
struct State {
    count: AtomicUsize,
    /// Signalled when one ends.
    ended: Notify,
    /// Those of all sessions, for metrics.
    of_all: Gauge,
}

/// Counts one notification until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(Arc<State>);

impl InFlight {
    /// Also counts in a gauge, over all sessions.
    pub(crate) fn counted_in(of_all: Gauge) -> Self {
        Self(Arc::new(State {
            of_all,
            ..State::default()
        }))
    }

    pub(crate) fn add(&self) -> InFlightGuard {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.of_all.inc();
        InFlightGuard(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Waits until one has ended since the last call.
    pub(crate) async fn ended(&self) {
        self.0.ended.notified().await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.of_all.dec();
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_counts_for_its_session_and_for_all_until_it_ends() {
        let of_all = Gauge::default();
        let sessions = [(); 2].map(|()| InFlight::counted_in(of_all.clone()));

        let first = sessions[0].add();
        let second = sessions[1].add();

        assert_eq!(sessions.each_ref().map(InFlight::count), [1, 1]);
        assert_eq!(of_all.get(), 2);
        drop(first);
        assert_eq!(sessions.each_ref().map(InFlight::count), [0, 1]);
        assert_eq!(of_all.get(), 1);
        drop(second);
        assert_eq!(of_all.get(), 0);
    }
}
