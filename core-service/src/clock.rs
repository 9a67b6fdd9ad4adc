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

    /// Waits until a manual clock is set; for ever with the system's.
    pub(crate) async fn moved(&self) {
        match &self.0 {
            Source::System => std::future::pending().await,
            Source::Manual(now) => {
                // The sender is held by `self`, so this ends by a change only.
                let _ = now.subscribe().changed().await;
            }
        }
    }
}
