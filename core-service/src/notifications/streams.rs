//! The dispatchers' streams to this process. A notification that is inserted pre-leased to one of
//! them needs no claim.

use std::sync::Arc;

use domain::scheduling::LEASE_DURATION;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};
use tonic::Status;
use uuid::Uuid;

use super::flow_control::{FlowControl, LeasedReceiver, LeasedSender};

use storage::notifications::{ClaimedNotification, Lease, NewNotification};

pub(crate) type Response = Result<proto::ReceiveResponse, Status>;
pub(crate) type Responses = mpsc::Sender<Response>;

/// How long a pre-leased notification may take to be committed. After that, it is not sent under
/// its pre-lease, which may expire during the attempt.
const MAX_COMMIT_TIME: std::time::Duration =
    LEASE_DURATION.checked_div(6).expect("six is not zero");

/// All streams of this process. They are also the outbox: see `outbox`.
#[derive(Debug)]
pub(crate) struct Streams {
    flow_control: Arc<Mutex<FlowControl>>,
    unsent_leases: mpsc::UnboundedSender<Lease>,
    /// Signalled when notifications become claimable.
    pub(super) notifications_ready: watch::Sender<()>,
    /// Signalled when the sequencer has found something due in the database.
    pub(super) due_found: Notify,
    /// Signalled when more may be claimable, because a dispatcher has granted credit or outcomes are
    /// recorded.
    pub(super) capacity_freed: Notify,
    /// Wakes the sequencer: signalled when events are written that have no number yet.
    pub(crate) events_written: watch::Sender<()>,
}

/// Pre-leased notifications that were not sent: their leases are to be released.
pub(crate) type UnsentLeases = mpsc::UnboundedReceiver<Lease>;

/// A committed notification that is leased to a stream.
#[derive(Debug)]
pub(super) struct LeasedNotification {
    pub(super) claimed: ClaimedNotification,
    pub(super) leased_at: Instant,
}

impl Streams {
    pub(crate) fn new() -> (Self, UnsentLeases) {
        let (unsent_leases, receiver) = mpsc::unbounded_channel();
        let streams = Self {
            flow_control: Arc::default(),
            unsent_leases,
            notifications_ready: watch::Sender::new(()),
            due_found: Notify::new(),
            capacity_freed: Notify::new(),
            events_written: watch::Sender::new(()),
        };
        (streams, receiver)
    }

    /// Wakes the task that claims, for notifications that became claimable.
    pub(crate) fn wake(&self) {
        self.notifications_ready.send_replace(());
    }

    /// Says that something is due in the database, which may not be claimable.
    pub(crate) fn found_due(&self) {
        self.due_found.notify_one();
    }

    pub(super) fn flow_control(&self) -> MutexGuard<'_, FlowControl> {
        self.flow_control.lock()
    }

    /// Registers a stream and returns its id, and what is to be sent on it.
    pub(super) fn open(&self, responses: &Responses) -> (Uuid, LeasedReceiver) {
        let (id, (leased, receiver)) = (Uuid::now_v7(), mpsc::unbounded_channel());
        self.flow_control().open(id, leased, responses);
        (id, receiver)
    }

    pub(super) fn grant(&self, stream: Uuid, credit: u32) {
        self.flow_control().grant(stream, credit);
        self.capacity_freed.notify_one();
    }

    /// Frees the capacity of notifications whose outcomes are recorded, each with whether it was answered well.
    pub(super) fn complete(&self, outcomes: impl IntoIterator<Item = (Lease, bool)>) {
        let mut flow_control = self.flow_control();
        for (lease, is_answered_well) in outcomes {
            flow_control.complete(lease, is_answered_well);
        }
        self.capacity_freed.notify_one();
    }

    /// Reserves capacity for a notification that is about to be inserted, on a stream that has free
    /// capacity; `None` if there is none, or if the notification is to be claimed.
    pub(super) fn reserve(&self, notification: &NewNotification) -> Option<Reservation> {
        if !notification.may_be_pre_leased {
            return None;
        }
        let leased = LeasedNotification {
            claimed: notification.leased.clone(),
            leased_at: Instant::now(),
        };
        let queue = self.flow_control().pre_lease(&leased)?;
        Some(Reservation {
            queue,
            unsent: Some(leased),
            flow_control: Arc::clone(&self.flow_control),
            unsent_leases: self.unsent_leases.clone(),
        })
    }
}

/// Capacity on a stream and a lease, both released on drop unless the notification is sent.
#[derive(Debug)]
pub(super) struct Reservation {
    queue: LeasedSender,
    unsent: Option<LeasedNotification>,
    flow_control: Arc<Mutex<FlowControl>>,
    unsent_leases: mpsc::UnboundedSender<Lease>,
}

impl Reservation {
    /// Sends the notification, which must be committed under this lease.
    pub(super) fn send(mut self) {
        let is_in_time =
            |unsent: &mut LeasedNotification| unsent.leased_at.elapsed() <= MAX_COMMIT_TIME;
        if let Some(leased) = self.unsent.take_if(is_in_time)
            && let Err(mut unsent) = self.queue.send(vec![leased])
        {
            self.unsent = unsent.0.pop();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(unsent) = &self.unsent {
            let lease = unsent.claimed.lease;
            self.flow_control.lock().return_credit(lease);
            // Fails only after the core has shut down; then the lease expires.
            let _ = self.unsent_leases.send(lease);
        }
    }
}

#[cfg(test)]
mod tests;
