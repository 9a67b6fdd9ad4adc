//! The dispatchers' streams to this process. A notification that is inserted pre-leased to one of
//! them needs no claim.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use domain::{id::NotificationId, scheduling::LEASE_DURATION};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tonic::Status;
use uuid::Uuid;

use super::flow_control::{FlowControl, InFlight};

use storage::notifications::{ClaimedNotification, NewNotification};

pub(in crate::grpc) type Response = Result<proto::StreamResponse, Status>;
pub(in crate::grpc) type Responses = mpsc::Sender<Response>;

/// A notification and the token of its lease.
pub(super) type Lease = (NotificationId, Uuid);

/// How long a pre-leased notification may take to be committed. After that, it is not sent under
/// its pre-lease, which may expire during the attempt.
const MAX_COMMIT_TIME: std::time::Duration =
    LEASE_DURATION.checked_div(6).expect("six is not zero");

/// All streams of this process.
#[derive(Debug)]
pub(in crate::grpc) struct Streams {
    open: Mutex<Vec<Arc<DispatcherStream>>>,
    unsent_leases: mpsc::UnboundedSender<Lease>,
}

/// Pre-leased notifications that were not sent: their leases are to be released.
pub(in crate::grpc) type UnsentLeases = mpsc::UnboundedReceiver<Lease>;

/// One stream.
#[derive(Debug)]
pub(super) struct DispatcherStream {
    flow_control: Mutex<FlowControl>,
    pre_leased: mpsc::UnboundedSender<PreLeased>,
    responses: mpsc::WeakSender<Response>,
    /// Signalled when more may be claimable than before.
    pub(super) claim_now: Notify,
    /// Signalled after a claim together with outcomes. It may have missed due notifications, so
    /// the next poll follows soon.
    pub(super) claim_soon: Notify,
    /// Whether the last poll left due notifications unclaimed, for lack of credit or because of
    /// concurrency limits: only then can an outcome or new credit make one claimable.
    has_unclaimed: AtomicBool,
    /// Whether the last claim found notifications, so that the next one will probably find more.
    expects_more_due: AtomicBool,
}

/// A committed notification that has been leased to a stream since its insertion.
#[derive(Debug)]
pub(super) struct PreLeased {
    pub(super) claimed: ClaimedNotification,
    pub(super) lease_token: Uuid,
    pub(super) leased_at: Instant,
}

impl PreLeased {
    pub(super) fn lease(&self) -> Lease {
        (self.claimed.id, self.lease_token)
    }
}

impl Streams {
    pub(in crate::grpc) fn new() -> (Self, UnsentLeases) {
        let (unsent_leases, receiver) = mpsc::unbounded_channel();
        let streams = Self {
            open: Mutex::default(),
            unsent_leases,
        };
        (streams, receiver)
    }

    /// Registers a stream and returns it with the receiver of its pre-leased notifications.
    pub(super) fn open(
        &self,
        responses: &Responses,
    ) -> (Arc<DispatcherStream>, mpsc::UnboundedReceiver<PreLeased>) {
        let (pre_leased, receiver) = mpsc::unbounded_channel();
        let stream = Arc::new(DispatcherStream {
            flow_control: Mutex::default(),
            pre_leased,
            responses: responses.downgrade(),
            claim_now: Notify::new(),
            claim_soon: Notify::new(),
            has_unclaimed: AtomicBool::new(true),
            expects_more_due: AtomicBool::new(false),
        });
        lock(&self.open).push(Arc::clone(&stream));
        (stream, receiver)
    }

    /// Unregisters a stream, so that nothing more is pre-leased to it, and returns the leases of
    /// what was in flight.
    pub(super) fn close(&self, stream: &Arc<DispatcherStream>) -> Vec<Lease> {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, stream));
        stream.flow_control().close()
    }

    /// Reserves capacity for a notification that is about to be inserted, on a stream that has free
    /// capacity; `None` if there is none.
    pub(super) fn reserve(&self, notification: &NewNotification) -> Option<Reservation> {
        if notification.has_backlog {
            return None;
        }
        let in_flight = InFlight {
            lease_token: Uuid::now_v7(),
            webhook_id: notification.target.webhook_id,
            receiver_health: notification.receiver_health,
        };
        let mut open = lock(&self.open);
        let index = open.iter().position(|stream| {
            stream.is_accepting()
                && stream
                    .flow_control()
                    .try_use_credit(notification.id, in_flight)
        })?;
        // Round robin: the next notification goes to another dispatcher if there is one.
        open.rotate_left(index);
        let stream = open.first().cloned()?;
        open.rotate_left(1);
        Some(Reservation {
            stream,
            claimed: Some(ClaimedNotification::pre_leased(notification)),
            id: notification.id,
            lease_token: in_flight.lease_token,
            leased_at: Instant::now(),
            unsent_leases: self.unsent_leases.clone(),
        })
    }
}

impl DispatcherStream {
    pub(super) fn flow_control(&self) -> MutexGuard<'_, FlowControl> {
        lock(&self.flow_control)
    }

    /// Whether due notifications are left unclaimed, as far as is known.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.has_unclaimed.load(Ordering::Relaxed)
    }

    /// Call before a poll; after the poll, call the `record_…` method for its result.
    pub(super) fn clear_unclaimed(&self) {
        self.has_unclaimed.store(false, Ordering::Relaxed);
    }

    /// Records that notifications were claimed; there may be more.
    pub(super) fn record_claimed(&self) {
        self.record_expects_more_due(true);
    }

    /// Records that no due notification could be claimed.
    pub(super) fn record_no_capacity(&self) {
        self.has_unclaimed.store(true, Ordering::Relaxed);
    }

    /// Records that nothing was due, unless a concurrent claim succeeded since the poll began.
    pub(super) fn record_nothing_due(&self) {
        if !self.has_unclaimed() {
            self.expects_more_due.store(false, Ordering::Relaxed);
        }
    }

    /// Records whether a claim found notifications.
    pub(super) fn record_expects_more_due(&self, expects_more_due: bool) {
        self.expects_more_due
            .store(expects_more_due, Ordering::Relaxed);
        if expects_more_due {
            self.has_unclaimed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the last claim found notifications, so that the next one will probably find more.
    pub(super) fn expects_more_due(&self) -> bool {
        self.expects_more_due.load(Ordering::Relaxed)
    }

    /// Whether the dispatcher reads what it is sent.
    fn is_accepting(&self) -> bool {
        self.responses
            .upgrade()
            .is_some_and(|responses| responses.capacity() > 0)
    }
}

/// Capacity on a stream and a lease, both released on drop unless the notification is sent.
#[derive(Debug)]
pub(super) struct Reservation {
    stream: Arc<DispatcherStream>,
    claimed: Option<ClaimedNotification>,
    id: NotificationId,
    pub(super) lease_token: Uuid,
    leased_at: Instant,
    unsent_leases: mpsc::UnboundedSender<Lease>,
}

impl Reservation {
    /// Sends the notification, which must be committed under this lease.
    pub(super) fn send(mut self) {
        if self.leased_at.elapsed() > MAX_COMMIT_TIME || self.stream.flow_control().is_closed() {
            return;
        }
        if let Some(claimed) = self.claimed.take() {
            let pre_leased = PreLeased {
                claimed,
                lease_token: self.lease_token,
                leased_at: self.leased_at,
            };
            if let Err(unsent) = self.stream.pre_leased.send(pre_leased) {
                self.claimed = Some(unsent.0.claimed);
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.claimed.is_some() {
            self.stream
                .flow_control()
                .return_credit(self.id, self.lease_token);
            // Fails only after the core has shut down; then the lease expires.
            let _ = self.unsent_leases.send((self.id, self.lease_token));
        }
    }
}

/// A poisoned lock is usable: no code that holds it panics halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use domain::{
        event::EventName,
        id::{DeliveryId, EventId, StoreId, WebhookId},
        scheduling::ReceiverHealth,
    };

    use storage::webhooks::Target;

    /// A stream with credit, and its two ends.
    struct OpenStream {
        stream: Arc<DispatcherStream>,
        pre_leased: mpsc::UnboundedReceiver<PreLeased>,
        responses: Responses,
        _sent: mpsc::Receiver<Response>,
    }

    fn open(streams: &Streams, credit: u32) -> OpenStream {
        let (responses, sent) = mpsc::channel(1);
        let (stream, pre_leased) = streams.open(&responses);
        stream.flow_control().grant(credit);
        OpenStream {
            stream,
            pre_leased,
            responses,
            _sent: sent,
        }
    }

    fn notification() -> NewNotification {
        NewNotification {
            id: NotificationId::new(),
            event_id: EventId::new(),
            event: EventName::DeliveryCompleted,
            store_id: StoreId::new(),
            delivery_id: DeliveryId::new(),
            receiver_health: ReceiverHealth::Healthy,
            has_backlog: false,
            target: Target::example(WebhookId::new()),
        }
    }

    #[test]
    fn a_committed_notification_is_sent_under_its_pre_lease() {
        let (streams, mut unsent_leases) = Streams::new();
        let mut stream = open(&streams, 1);
        let notification = notification();

        let reservation = streams.reserve(&notification).unwrap();
        let lease = (notification.id, reservation.lease_token);
        assert!(
            streams.reserve(&self::notification()).is_none(),
            "no credit"
        );
        reservation.send();

        assert_eq!(stream.pre_leased.try_recv().unwrap().lease(), lease);
        assert!(unsent_leases.try_recv().is_err());
    }

    #[test]
    fn an_unsent_reservation_releases_its_capacity_and_its_lease() {
        let (streams, mut unsent_leases) = Streams::new();
        let mut stream = open(&streams, 1);

        for closes in [false, true] {
            let notification = notification();
            let reservation = streams.reserve(&notification).unwrap();
            let lease = (notification.id, reservation.lease_token);
            if closes {
                assert_eq!(streams.close(&stream.stream), [lease]);
                reservation.send();
            } else {
                drop(reservation);
            }
            assert_eq!(unsent_leases.try_recv().unwrap(), lease);
        }

        assert!(stream.pre_leased.try_recv().is_err());
        assert!(
            streams.reserve(&notification()).is_none(),
            "no stream is open"
        );
    }

    /// Its pre-lease could expire during the attempt.
    #[test]
    fn a_reservation_older_than_a_sixth_of_the_lease_is_released_instead_of_sent() {
        let (streams, mut unsent_leases) = Streams::new();
        let mut stream = open(&streams, 1);

        for (age, is_sent) in [(11, false), (5, true)] {
            let notification = notification();
            let mut reservation = streams.reserve(&notification).unwrap();
            let lease = (notification.id, reservation.lease_token);
            let leased_at = Instant::now().checked_sub(Duration::from_secs(age));
            reservation.leased_at = leased_at.unwrap();
            reservation.send();

            let sent = stream.pre_leased.try_recv().ok();
            let sent = sent.map(|sent| (sent.lease(), sent.leased_at));
            assert_eq!(sent, leased_at.filter(|_| is_sent).map(|at| (lease, at)));
            let released = unsent_leases.try_recv().ok();
            assert_eq!(released, (!is_sent).then_some(lease));
            let free = stream.stream.flow_control().claim_budget(8);
            assert_eq!(free.map(|budget| budget.free), (!is_sent).then_some(1));
        }
    }

    #[test]
    fn a_poll_without_a_result_keeps_what_a_concurrent_claim_recorded() {
        let (streams, _unsent_leases) = Streams::new();
        let stream = open(&streams, 1).stream;
        stream.record_claimed();

        stream.clear_unclaimed();
        // Outcomes are recorded with a claim, which finds notifications.
        stream.record_expects_more_due(true);
        stream.record_nothing_due();
        assert!(stream.expects_more_due() && stream.has_unclaimed());

        stream.clear_unclaimed();
        stream.record_nothing_due();
        assert!(!stream.expects_more_due() && !stream.has_unclaimed());
    }

    #[test]
    fn nothing_is_pre_leased_to_a_stream_that_is_not_read_nor_ahead_of_a_backlog() {
        let (streams, _unsent_leases) = Streams::new();
        let stream = open(&streams, 8);
        let queued = NewNotification {
            has_backlog: true,
            ..notification()
        };
        assert!(streams.reserve(&queued).is_none());
        assert!(streams.reserve(&notification()).is_some());

        let response = proto::StreamResponse::default();
        stream.responses.try_send(Ok(response)).unwrap();

        assert!(streams.reserve(&notification()).is_none());
    }

    #[test]
    fn reservations_alternate_between_streams() {
        let (streams, _unsent_leases) = Streams::new();
        let mut both = [open(&streams, 8), open(&streams, 8)];

        for _ in 0..4 {
            streams.reserve(&notification()).unwrap().send();
        }

        for stream in &mut both {
            assert_eq!(stream.pre_leased.len(), 2);
            stream.pre_leased.close();
        }
    }
}
