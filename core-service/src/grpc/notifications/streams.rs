//! The dispatchers' streams to this process, as those see them who have something to hand out:
//! a notification is best born leased to one of them, and costs no claim.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use domain::id::NotificationId;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use uuid::Uuid;

use super::{
    LEASE, Responses,
    account::{Account, Held},
    leases::Found,
};

use storage::notifications::{Claimed, Owed};

/// After so long a commit a lease has too little left to be sent under.
const LATEST: std::time::Duration = LEASE.checked_div(6).expect("six is not zero");

/// All streams of this process.
#[derive(Debug)]
pub(crate) struct Streams {
    open: Mutex<Vec<Arc<Line>>>,
    unsent: mpsc::UnboundedSender<(NotificationId, Uuid)>,
}

/// What was leased from its birth and not sent: to be released.
pub(crate) type Unsent = mpsc::UnboundedReceiver<(NotificationId, Uuid)>;

/// One stream.
#[derive(Debug)]
pub(super) struct Line {
    account: Mutex<Account>,
    births: mpsc::UnboundedSender<Birth>,
    responses: mpsc::WeakSender<super::Response>,
    /// Told when there may be more to hand out than before.
    pub(super) look: Notify,
    /// Told when something was claimed without a look, which may not have been all.
    pub(super) look_soon: Notify,
    /// Whether something may be due that had no place or no credit when it was last looked: only
    /// then are an outcome and new credit reasons to look again.
    is_any_due: AtomicBool,
    /// Whether places that come free are filled again, as far as is known.
    is_filling: AtomicBool,
}

/// A notification born leased to a stream, and committed.
#[derive(Debug)]
pub(super) struct Birth {
    pub(super) claimed: Claimed,
    pub(super) lease_token: Uuid,
    pub(super) leased_at: Instant,
}

impl Birth {
    pub(super) fn lease(&self) -> (NotificationId, Uuid) {
        (self.claimed.id, self.lease_token)
    }
}

impl Streams {
    pub(crate) fn new() -> (Self, Unsent) {
        let (unsent, released) = mpsc::unbounded_channel();
        let streams = Self {
            open: Mutex::default(),
            unsent,
        };
        (streams, released)
    }

    /// Enters a stream; what is born to it comes out of the receiver.
    pub(super) fn open(
        &self,
        responses: &Responses,
    ) -> (Arc<Line>, mpsc::UnboundedReceiver<Birth>) {
        let (births, born) = mpsc::unbounded_channel();
        let line = Arc::new(Line {
            account: Mutex::default(),
            births,
            responses: responses.downgrade(),
            look: Notify::new(),
            look_soon: Notify::new(),
            is_any_due: AtomicBool::new(true),
            is_filling: AtomicBool::new(false),
        });
        lock(&self.open).push(Arc::clone(&line));
        (line, born)
    }

    /// Strikes a stream out. Nothing is born to it any more.
    pub(super) fn close(&self, line: &Arc<Line>) -> Vec<(NotificationId, Uuid)> {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, line));
        line.account().close()
    }

    /// A place on a stream for a notification that is about to be written, if one is free.
    pub(crate) fn reserve(&self, owed: &Owed) -> Option<Seat> {
        if owed.has_backlog {
            return None;
        }
        let held = Held {
            lease_token: Uuid::now_v7(),
            webhook_id: owed.target.webhook_id,
            standing: owed.standing,
        };
        let mut open = lock(&self.open);
        let taken = open
            .iter()
            .position(|line| line.is_listening() && line.account().take_place(owed.id, held))?;
        // The next one is another dispatcher's, if there is another.
        open.rotate_left(taken);
        let line = open.first().cloned()?;
        open.rotate_left(1);
        Some(Seat {
            line,
            claimed: Some(Claimed::born(owed)),
            id: owed.id,
            lease_token: held.lease_token,
            leased_at: Instant::now(),
            unsent: self.unsent.clone(),
        })
    }
}

impl Line {
    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.account)
    }

    pub(super) fn is_any_due(&self) -> bool {
        self.is_any_due.load(Ordering::Relaxed)
    }

    /// Nothing that was due before is reckoned with, until [`Self::note`].
    pub(super) fn forget_due(&self) {
        self.is_any_due.store(false, Ordering::Relaxed);
    }

    /// Notes what a look found.
    pub(super) fn note(&self, found: &Found) {
        match found {
            Found::Some(..) => self.note_filling(true),
            Found::NoPlace => self.is_any_due.store(true, Ordering::Relaxed),
            // Unless places were filled since it began to look: then it looked too early.
            Found::Nothing => {
                if !self.is_any_due() {
                    self.is_filling.store(false, Ordering::Relaxed);
                }
            }
        }
    }

    /// Notes whether there was anything to fill places with that had just come free.
    pub(super) fn note_filling(&self, is_filling: bool) {
        self.is_filling.store(is_filling, Ordering::Relaxed);
        if is_filling {
            self.is_any_due.store(true, Ordering::Relaxed);
        }
    }

    /// Whether places that come free are filled again, as far as is known.
    pub(super) fn is_filling(&self) -> bool {
        self.is_filling.load(Ordering::Relaxed)
    }

    /// Whether its dispatcher takes what it is sent.
    fn is_listening(&self) -> bool {
        self.responses
            .upgrade()
            .is_some_and(|responses| responses.capacity() > 0)
    }
}

/// A place on a stream. Unless it is sent, the place is given back, and the lease with it.
#[derive(Debug)]
pub(crate) struct Seat {
    line: Arc<Line>,
    claimed: Option<Claimed>,
    id: NotificationId,
    pub(super) lease_token: Uuid,
    leased_at: Instant,
    unsent: mpsc::UnboundedSender<(NotificationId, Uuid)>,
}

impl Seat {
    /// Sends what was written under this lease and is committed.
    pub(crate) fn send(mut self) {
        if self.leased_at.elapsed() > LATEST || self.line.account().is_closed() {
            return;
        }
        if let Some(claimed) = self.claimed.take() {
            let birth = Birth {
                claimed,
                lease_token: self.lease_token,
                leased_at: self.leased_at,
            };
            if let Err(refused) = self.line.births.send(birth) {
                self.claimed = Some(refused.0.claimed);
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.claimed.is_some() {
            self.line
                .account()
                .give_place_back(self.id, self.lease_token);
            // Nobody listens once the core has ended; then the lease ends by itself.
            let _ = self.unsent.send((self.id, self.lease_token));
        }
    }
}

/// What is behind these locks is changed by what can't panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        event::EventName,
        fairness::Standing,
        id::{DeliveryId, EventId, StoreId, WebhookId},
    };

    use storage::webhooks::Target;

    /// A stream with credit, and its two ends.
    struct Stream {
        line: Arc<Line>,
        born: mpsc::UnboundedReceiver<Birth>,
        responses: Responses,
        _read: mpsc::Receiver<super::super::Response>,
    }

    fn open(streams: &Streams, credit: u32) -> Stream {
        let (responses, read) = mpsc::channel(1);
        let (line, born) = streams.open(&responses);
        line.account().grant(credit);
        Stream {
            line,
            born,
            responses,
            _read: read,
        }
    }

    fn owed() -> Owed {
        Owed {
            id: NotificationId::new(),
            event_id: EventId::new(),
            event: EventName::DeliveryCompleted,
            store_id: StoreId::new(),
            delivery_id: DeliveryId::new(),
            standing: Standing::Answering,
            has_backlog: false,
            target: Target::example(WebhookId::new()),
        }
    }

    #[test]
    fn what_is_sent_after_the_commit_comes_out_under_its_lease() {
        let (streams, mut unsent) = Streams::new();
        let mut stream = open(&streams, 1);
        let owed = owed();

        let seat = streams.reserve(&owed).unwrap();
        let lease = (owed.id, seat.lease_token);
        assert!(streams.reserve(&self::owed()).is_none(), "no credit");
        seat.send();

        assert_eq!(stream.born.try_recv().unwrap().lease(), lease);
        assert!(unsent.try_recv().is_err());
    }

    #[test]
    fn what_is_not_sent_gives_its_place_and_its_lease_back() {
        let (streams, mut unsent) = Streams::new();
        let mut stream = open(&streams, 1);

        for closes in [false, true] {
            let owed = owed();
            let seat = streams.reserve(&owed).unwrap();
            let lease = (owed.id, seat.lease_token);
            if closes {
                assert_eq!(streams.close(&stream.line), [lease]);
                seat.send();
            } else {
                drop(seat);
            }
            assert_eq!(unsent.try_recv().unwrap(), lease);
        }

        assert!(stream.born.try_recv().is_err());
        assert!(streams.reserve(&owed()).is_none(), "no stream is left");
    }

    #[test]
    fn nothing_is_born_to_a_stream_that_is_not_read_nor_ahead_of_a_backlog() {
        let (streams, _unsent) = Streams::new();
        let stream = open(&streams, 8);
        let behind = Owed {
            has_backlog: true,
            ..owed()
        };
        assert!(streams.reserve(&behind).is_none());
        assert!(streams.reserve(&owed()).is_some());

        let response = proto::StreamResponse::default();
        stream.responses.try_send(Ok(response)).unwrap();

        assert!(streams.reserve(&owed()).is_none());
    }

    #[test]
    fn streams_take_turns() {
        let (streams, _unsent) = Streams::new();
        let mut both = [open(&streams, 8), open(&streams, 8)];

        for _ in 0..4 {
            streams.reserve(&owed()).unwrap().send();
        }

        for stream in &mut both {
            assert_eq!(stream.born.len(), 2);
            stream.born.close();
        }
    }
}
