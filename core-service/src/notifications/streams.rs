//! The dispatchers' streams to this process. A notification that is inserted pre-leased to one of
//! them needs no claim.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use domain::{
    id::NotificationId,
    scheduling::{LEASE_DURATION, ReceiverHealth},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, RwLock, mpsc, watch},
    time::Instant,
};
use tonic::Status;
use uuid::Uuid;

use super::flow_control::{FlowControl, InFlightNotification};

use storage::notifications::{ClaimedNotification, NewNotification};

pub(crate) type Response = Result<proto::ReceiveResponse, Status>;
pub(crate) type Responses = mpsc::Sender<Response>;

/// A notification and the token of its lease.
pub(super) type Lease = (NotificationId, Uuid);

/// How long a pre-leased notification may take to be committed. After that, it is not sent under
/// its pre-lease, which may expire during the attempt.
const MAX_COMMIT_TIME: std::time::Duration =
    LEASE_DURATION.checked_div(6).expect("six is not zero");

/// All streams of this process. They are also the outbox: see `outbox`.
#[derive(Debug)]
pub(crate) struct Streams {
    open: Mutex<Vec<Arc<DispatcherStream>>>,
    unsent_leases: mpsc::UnboundedSender<Lease>,
    /// Signalled when notifications become claimable.
    pub(super) notifications_ready: watch::Sender<()>,
    /// Wakes the sequencer: signalled when events are written that have no number yet.
    pub(crate) events_written: watch::Sender<()>,
}

/// Pre-leased notifications that were not sent: their leases are to be released.
pub(crate) type UnsentLeases = mpsc::UnboundedReceiver<Lease>;

/// One stream.
#[derive(Debug)]
pub(super) struct DispatcherStream {
    flow_control: Mutex<FlowControl>,
    pre_leased: mpsc::UnboundedSender<PreLeased>,
    responses: mpsc::WeakSender<Response>,
    /// Read-locked by reports that claim for this stream, until what they claim is sent.
    pub(super) claiming: RwLock<()>,
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
    pub(crate) fn new() -> (Self, UnsentLeases) {
        let (unsent_leases, receiver) = mpsc::unbounded_channel();
        let streams = Self {
            open: Mutex::default(),
            unsent_leases,
            notifications_ready: watch::Sender::new(()),
            events_written: watch::Sender::new(()),
        };
        (streams, receiver)
    }

    /// Wakes the streams for notifications that became claimable.
    pub(crate) fn wake(&self) {
        self.notifications_ready.send_replace(());
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
            claiming: RwLock::new(()),
            claim_now: Notify::new(),
            claim_soon: Notify::new(),
            has_unclaimed: AtomicBool::new(true),
            expects_more_due: AtomicBool::new(false),
        });
        self.open.lock().push(Arc::clone(&stream));
        (stream, receiver)
    }

    /// Unregisters a stream: nothing more is claimed for it or pre-leased to it. The leases of what
    /// it was sent outlive it, since their outcomes are reported to any core.
    pub(super) fn close(&self, stream: &Arc<DispatcherStream>) {
        self.open.lock().retain(|open| !Arc::ptr_eq(open, stream));
        stream.flow_control().close();
    }

    /// The send queue of a stream, each time of another one: a dispatcher may hang.
    pub(super) fn next(&self) -> Option<Responses> {
        let mut open = self.open.lock();
        let mut accepting = open.iter().enumerate();
        let (index, responses) =
            accepting.find_map(|(index, stream)| Some((index, stream.responses()?)))?;
        open.rotate_left(index + 1);
        Some(responses)
    }

    /// Removes notifications with an outcome from what is in flight. Returns the stream of one of
    /// them, if any is open here: a dispatcher reports the outcomes of one stream together.
    pub(super) fn complete(&self, leases: &[Lease]) -> Option<Arc<DispatcherStream>> {
        let open = self.open.lock();
        let mut completed = None;
        for stream in open.iter() {
            let mut flow_control = stream.flow_control();
            for &(id, lease_token) in leases {
                if flow_control.complete(id, lease_token) {
                    completed = Some(stream);
                }
            }
        }
        completed.cloned()
    }

    /// Reserves capacity for a notification that is about to be inserted, on a stream that has free
    /// capacity; `None` if there is none, or if the notification is to be claimed.
    pub(super) fn reserve(&self, notification: &NewNotification) -> Option<Reservation> {
        if !notification.may_be_pre_leased {
            return None;
        }
        let in_flight = InFlightNotification {
            lease_token: Uuid::now_v7(),
            store_id: notification.store_id,
            webhook_id: notification.target.webhook_id,
            receiver_health: ReceiverHealth::Healthy,
            leased_at: Instant::now(),
        };
        let mut open = self.open.lock();
        let index = open.iter().position(|stream| {
            stream.is_accepting()
                && stream
                    .flow_control()
                    .try_use_credit(notification.id, &in_flight)
        })?;
        // Round robin: the next notification goes to another dispatcher if there is one.
        open.rotate_left(index);
        let stream = open.first().cloned()?;
        open.rotate_left(1);
        Some(Reservation {
            stream,
            lease_token: in_flight.lease_token,
            unsent: Some(PreLeased {
                claimed: ClaimedNotification::pre_leased(notification),
                lease_token: in_flight.lease_token,
                leased_at: in_flight.leased_at,
            }),
            unsent_leases: self.unsent_leases.clone(),
        })
    }
}

impl DispatcherStream {
    pub(super) fn flow_control(&self) -> MutexGuard<'_, FlowControl> {
        self.flow_control.lock()
    }

    /// Whether due notifications are left unclaimed, as far as is known.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.has_unclaimed.load(Ordering::Relaxed)
    }

    /// Call before a poll; after the poll, call the `record_…` method for its result.
    pub(super) fn clear_unclaimed(&self) {
        self.has_unclaimed.store(false, Ordering::Relaxed);
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

    /// The send queue; `None` once the stream has ended.
    pub(super) fn responses(&self) -> Option<Responses> {
        self.responses.upgrade()
    }

    /// Whether the dispatcher reads what it is sent.
    fn is_accepting(&self) -> bool {
        self.responses()
            .is_some_and(|responses| responses.capacity() > 0)
    }
}

/// Capacity on a stream and a lease, both released on drop unless the notification is sent.
#[derive(Debug)]
pub(super) struct Reservation {
    stream: Arc<DispatcherStream>,
    pub(super) lease_token: Uuid,
    unsent: Option<PreLeased>,
    unsent_leases: mpsc::UnboundedSender<Lease>,
}

impl Reservation {
    /// Sends the notification, which must be committed under this lease.
    pub(super) fn send(mut self) {
        let is_open = !self.stream.flow_control().is_closed();
        let is_in_time =
            |unsent: &mut PreLeased| is_open && unsent.leased_at.elapsed() <= MAX_COMMIT_TIME;
        if let Some(pre_leased) = self.unsent.take_if(is_in_time)
            && let Err(unsent) = self.stream.pre_leased.send(pre_leased)
        {
            self.unsent = Some(unsent.0);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(unsent) = &self.unsent {
            let (id, lease_token) = unsent.lease();
            self.stream.flow_control().return_credit(id, lease_token);
            // Fails only after the core has shut down; then the lease expires.
            let _ = self.unsent_leases.send((id, lease_token));
        }
    }
}

#[cfg(test)]
mod tests;
