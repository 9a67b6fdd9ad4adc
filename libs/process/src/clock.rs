//! The one place that reads the time: from the system, or set by hand in tests.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Where "now" comes from. Clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<watch::Sender<Timestamp>>),
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still until it is set.
    pub fn manual(now: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(watch::Sender::new(now))))
    }

    /// Now, in whole microseconds: what is stored is what was decided with.
    pub fn now(&self) -> Timestamp {
        let now = match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the clock")]
            Source::System => Timestamp::now(),
            Source::Manual(now) => *now.borrow(),
        };
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// Sets a manual clock. The system's is left alone.
    pub fn set(&self, now: Timestamp) {
        if let Source::Manual(sender) = &self.0 {
            sender.send_replace(now);
        }
    }

    /// Moves a manual clock.
    pub fn advance(&self, by: SignedDuration) {
        if let Ok(later) = self.now().checked_add(by) {
            self.set(later);
        }
    }

    /// The moves of the clock from here on.
    pub fn moves(&self) -> Moves {
        Moves(match &self.0 {
            Source::System => None,
            Source::Manual(now) => Some(now.subscribe()),
        })
    }
}

/// Moves of a clock, of which none is missed: what happens while nobody waits ends the next wait.
#[derive(Debug)]
pub struct Moves(Option<watch::Receiver<Timestamp>>);

impl Moves {
    /// Waits until the clock was set since the last wait; for ever with the system's, or one that
    /// is no more. Nothing is lost by giving up the wait.
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
    fn a_move_between_two_waits_ends_the_second_and_no_third() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut moves = clock.moves();
        let second = SignedDuration::from_secs(1);
        assert_eq!(moves.next().now_or_never(), None);
        clock.advance(second);
        assert_eq!(moves.next().now_or_never(), Some(()));
        // Whoever waited is at work: both happen before it waits again.
        clock.advance(second);
        clock.advance(second);
        assert_eq!(moves.next().now_or_never(), Some(()));
        assert_eq!(moves.next().now_or_never(), None);
        // It was before these were asked for.
        assert_eq!(clock.moves().next().now_or_never(), None);
    }

    #[test]
    fn the_clock_of_the_system_has_no_moves_nor_has_one_that_is_no_more() {
        assert_eq!(Clock::system().moves().next().now_or_never(), None);
        let mut gone = Clock::manual(Timestamp::UNIX_EPOCH).moves();
        assert_eq!(gone.next().now_or_never(), None);
    }
}
