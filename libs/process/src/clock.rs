//! The clock of the platform: the system clock, or a manual clock in tests. Other code that reads
//! the system clock states a reason.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A source of the current time. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<watch::Sender<Timestamp>>),
}

impl Clock {
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that changes only when it is set.
    pub fn manual(now: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(watch::Sender::new(now))))
    }

    /// The current time in whole microseconds, the precision of stored times.
    pub fn now(&self) -> Timestamp {
        let now = match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the clock")]
            Source::System => Timestamp::now(),
            Source::Manual(now) => *now.borrow(),
        };
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// Sets a manual clock. Has no effect on the system clock.
    pub fn set(&self, now: Timestamp) {
        if let Source::Manual(sender) = &self.0 {
            sender.send_replace(now);
        }
    }

    pub fn advance(&self, by: SignedDuration) {
        if let Ok(later) = self.now().checked_add(by) {
            self.set(later);
        }
    }

    /// Subscribes to changes of a manual clock. Periodic tasks run at each change too, so that a test
    /// that sets the clock does not wait for their interval.
    pub fn manual_changes(&self) -> ManualClockChanges {
        ManualClockChanges(match &self.0 {
            Source::System => None,
            Source::Manual(now) => Some(now.subscribe()),
        })
    }
}

/// Changes of a manual clock. A change between two waits completes the second one.
#[derive(Debug)]
pub struct ManualClockChanges(Option<watch::Receiver<Timestamp>>);

impl ManualClockChanges {
    /// Waits until the clock has been set since the last wait. Never completes for the system
    /// clock or a dropped manual clock. Cancel-safe.
    pub async fn next(&mut self) {
        if let Some(now) = &mut self.0
            && now.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_change_between_two_waits_completes_only_the_second() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut changes = clock.manual_changes();
        let step = SignedDuration::from_secs(1);
        assert_eq!(changes.next().now_or_never(), None);
        clock.advance(step);
        assert_eq!(changes.next().now_or_never(), Some(()));
        // Two changes before the next wait complete one wait.
        clock.advance(step);
        clock.advance(step);
        assert_eq!(changes.next().now_or_never(), Some(()));
        assert_eq!(changes.next().now_or_never(), None);
        // A new subscription does not see earlier changes.
        assert_eq!(clock.manual_changes().next().now_or_never(), None);
    }

    #[test]
    fn the_system_clock_and_a_dropped_clock_never_change() {
        assert_eq!(Clock::system().manual_changes().next().now_or_never(), None);
        let mut dropped = Clock::manual(Timestamp::UNIX_EPOCH).manual_changes();
        assert_eq!(dropped.next().now_or_never(), None);
    }
}
