//! What one exchange holds: sends under way, and outcomes until a core has confirmed them, over
//! its own stream or, where that is gone, over any.

use std::sync::Arc;

use proto::{Notification, Recorded};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Duration, Instant},
};

use crate::{
    ledger::{CreditExceeded, Ledger, Report},
    sender::Sender,
    strays::Strays,
};

/// One exchange's part of all there is.
pub(crate) struct Holding {
    sender: Arc<Sender>,
    sends: JoinSet<Report>,
    pub(crate) ledger: Ledger,
    strays: watch::Sender<Strays>,
    changes: watch::Receiver<Strays>,
    /// Whether it counts among those that hold something.
    is_holder: bool,
}

impl Holding {
    /// Nothing yet, with room for a number of sends; what is left goes to `strays`.
    pub(crate) fn new(sender: Arc<Sender>, limit: usize, strays: watch::Sender<Strays>) -> Self {
        let changes = strays.subscribe();
        Self {
            sender,
            sends: JoinSet::new(),
            ledger: Ledger::new(limit),
            strays,
            changes,
            is_holder: false,
        }
    }

    pub(crate) fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// Begins to send what came down the stream.
    pub(crate) fn begin(&mut self, notifications: Vec<Notification>) -> Result<(), CreditExceeded> {
        self.ledger.take(&notifications)?;
        let now = Instant::now();
        for notification in notifications {
            let lease = notification
                .lease
                .and_then(|lease| Duration::try_from(lease).ok());
            let until = lease.and_then(|lease| now.checked_add(lease));
            let sender = Arc::clone(&self.sender);
            self.sends.spawn(async move {
                Report {
                    outcome: sender.send(notification).await,
                    until,
                }
            });
        }
        self.count();
        Ok(())
    }

    /// Waits until a send has ended, or what is left to others has changed.
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            Some(ended) = self.sends.join_next() => self.finish(ended),
            // It never fails: this end lives as long as the other.
            _ = self.changes.changed() => {}
        }
    }

    /// Takes note of all sends that have ended.
    pub(crate) fn collect_ended(&mut self) {
        while let Some(ended) = self.sends.try_join_next() {
            self.finish(ended);
        }
    }

    pub(crate) fn record(&mut self, recorded: Vec<Recorded>) {
        for recorded in recorded {
            self.ledger.record(recorded);
        }
        self.count();
    }

    /// Takes what others could not report, as far as there is room.
    pub(crate) fn adopt_strays(&mut self) {
        let room = self.ledger.room();
        if room > 0 && self.are_strays_waiting() {
            self.share(|strays, ledger| ledger.adopt(strays.take(room, Instant::now())));
        }
    }

    /// There is no stream: what has an outcome that is not confirmed is left to whoever has one.
    pub(crate) fn leave_to_others(&mut self) {
        self.collect_ended();
        let mut excess = 0;
        self.share(|strays, ledger| excess = strays.leave(ledger.give_back(), Instant::now()));
        if excess > 0 {
            tracing::warn!(
                count = excess,
                "outcomes are dropped, there being no stream from any core; their leases will end"
            );
        }
    }

    /// Whether it holds nothing itself.
    pub(crate) fn is_settled(&self) -> bool {
        self.ledger.is_settled()
    }

    /// Whether somebody's outcomes wait for a stream.
    pub(crate) fn are_strays_waiting(&self) -> bool {
        !self.strays.borrow().is_empty()
    }

    /// Whether nobody holds anything.
    pub(crate) fn is_all_settled(&self) -> bool {
        self.strays.borrow().is_settled()
    }

    fn finish(&mut self, ended: Result<Report, JoinError>) {
        let report = ended
            .inspect_err(|error| tracing::error!(%error, "a send was lost; its lease will end"))
            .ok();
        self.ledger.finish(report);
        self.count();
    }

    /// Counts this among those that hold something, or no longer.
    fn count(&mut self) {
        if self.ledger.is_settled() == self.is_holder {
            self.share(|_, _| {});
        }
    }

    /// Gives to what is shared, or takes from it. Nothing is ever on neither side: who looks
    /// between sees it held. The others hear of it if it changes what they have to do.
    fn share(&mut self, exchange: impl FnOnce(&mut Strays, &mut Ledger)) {
        let (ledger, is_holder) = (&mut self.ledger, &mut self.is_holder);
        self.strays.send_if_modified(|strays| {
            let before = (strays.is_empty(), strays.is_settled());
            exchange(strays, ledger);
            let holds = !ledger.is_settled();
            if holds != *is_holder {
                *is_holder = holds;
                strays.count_holder(holds);
            }
            before != (strays.is_empty(), strays.is_settled())
        });
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if self.is_holder {
            self.strays.send_modify(|strays| strays.count_holder(false));
        }
    }
}
