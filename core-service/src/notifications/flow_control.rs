//! Flow control of this process's streams: the dispatchers' credit, and the notifications in flight on
//! the streams. Does no I/O.

use std::collections::HashMap;

use tokio::{sync::mpsc, time::Instant};
use uuid::Uuid;

use domain::{
    id::NotificationId,
    scheduling::{Capacity, ClaimBudget, LEASE_DURATION, ReceiverHealth},
    webhook::WebhookKey,
};

use super::streams::{LeasedNotification, Response, Responses};

use storage::notifications::Lease;

/// The most notifications that one transaction claims.
const MAX_CLAIM: u32 = 256;

/// Sends notifications that are sent together.
pub(super) type LeasedSender = mpsc::UnboundedSender<Vec<LeasedNotification>>;
pub(super) type LeasedReceiver = mpsc::UnboundedReceiver<Vec<LeasedNotification>>;

#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// The open streams, in the order of their next use.
    streams: Vec<OpenStream>,
    /// Sent to a dispatcher, or about to be, without an outcome yet.
    in_flight: HashMap<NotificationId, InFlightNotification>,
    /// The part of the credit that is reserved for the claim in progress.
    reserved: u32,
}

#[derive(Debug)]
struct OpenStream {
    id: Uuid,
    /// Granted and not used.
    credit: u32,
    /// Used by notifications with an outcome, to be granted again.
    completed: u32,
    /// What is to be sent on the stream.
    leased: LeasedSender,
    responses: mpsc::WeakSender<Response>,
}

/// A notification on a stream.
#[derive(Debug)]
struct InFlightNotification {
    stream: Uuid,
    lease_token: Uuid,
    webhook: WebhookKey,
    receiver_health: ReceiverHealth,
    leased_at: Instant,
}

impl FlowControl {
    /// Adds a stream without credit.
    pub(super) fn open(&mut self, id: Uuid, leased: LeasedSender, responses: &Responses) {
        self.streams.push(OpenStream {
            id,
            credit: 0,
            completed: 0,
            leased,
            responses: responses.downgrade(),
        });
    }

    /// Removes a stream. The leases of what it was sent outlive it: outcomes are reported to any core.
    pub(super) fn close(&mut self, id: Uuid) {
        self.streams.retain(|stream| stream.id != id);
        self.in_flight
            .retain(|_, notification| notification.stream != id);
    }

    pub(super) fn grant(&mut self, id: Uuid, credit: u32) {
        if let Some(stream) = self.stream(id) {
            stream.credit = stream.credit.saturating_add(credit);
            stream.completed = 0;
        }
    }

    /// The send queue of the next stream.
    pub(super) fn next(&mut self) -> Option<Responses> {
        let mut streams = self.streams.iter().enumerate();
        let (index, responses) =
            streams.find_map(|(index, stream)| Some((index, stream.responses.upgrade()?)))?;
        self.streams.rotate_left(index + 1);
        Some(responses)
    }

    /// Uses one credit for a notification to a healthy receiver that is about to be inserted, if the
    /// limit of its webhook allows it. Returns the queue of its stream, whose dispatcher reads what it
    /// is sent.
    pub(super) fn pre_lease(&mut self, leased: &LeasedNotification) -> Option<LeasedSender> {
        let webhook_id = leased.claimed.target.key.webhook_id;
        let in_flight = self.in_flight.values();
        let of_webhook = in_flight.filter(|in_flight| in_flight.webhook.webhook_id == webhook_id);
        let limit = self.capacity().per_webhook(ReceiverHealth::Healthy);
        if count(of_webhook) >= limit || self.accepting_credit() <= self.reserved {
            return None;
        }
        let stream = self.use_credit(leased, OpenStream::is_accepting)?;
        Some(stream.leased.clone())
    }

    /// Uses one credit of the next stream that has any.
    fn use_credit(
        &mut self,
        leased: &LeasedNotification,
        may_use: fn(&OpenStream) -> bool,
    ) -> Option<&OpenStream> {
        let mut streams = self.streams.iter();
        let index = streams.position(|stream| stream.credit > 0 && may_use(stream))?;
        self.streams.rotate_left(index + 1);
        let stream = self.streams.last_mut()?;
        stream.credit -= 1;
        let claimed = &leased.claimed;
        let in_flight = InFlightNotification {
            stream: stream.id,
            lease_token: claimed.lease.token,
            webhook: claimed.target.key,
            receiver_health: claimed.receiver_health,
            leased_at: leased.leased_at,
        };
        self.in_flight.insert(claimed.lease.id, in_flight);
        Some(stream)
    }

    /// Returns the credit of a notification that is not sent.
    pub(super) fn return_credit(&mut self, lease: Lease) {
        let stream = self.remove(lease);
        if let Some(stream) = stream.and_then(|id| self.stream(id)) {
            stream.credit = stream.credit.saturating_add(1);
        }
    }

    /// Removes a notification whose outcome has arrived.
    pub(super) fn complete(&mut self, lease: Lease) {
        let stream = self.remove(lease);
        if let Some(stream) = stream.and_then(|id| self.stream(id)) {
            stream.completed = stream.completed.saturating_add(1);
        }
    }

    /// Removes notifications whose lease has expired: their outcomes were reported to another core,
    /// or never will be.
    pub(super) fn remove_expired(&mut self, now: Instant) {
        self.in_flight.retain(|_, notification| {
            now.saturating_duration_since(notification.leased_at) < LEASE_DURATION
        });
    }

    /// Reserves credit for a claim, until [`Self::send_claimed`] or [`Self::end_claim`]; `None` without
    /// credit.
    pub(super) fn begin_claim(&mut self) -> Option<ClaimBudget> {
        let budget = self.claim_budget()?;
        self.reserved = budget.free;
        Some(budget)
    }

    pub(super) fn end_claim(&mut self) {
        self.reserved = 0;
    }

    /// Ends a claim: sends what it found on the streams in turn, together on each; on one whose dispatcher
    /// does not read only if no other has credit. Returns the leases of what no stream takes, because one
    /// has closed meanwhile.
    pub(super) fn send_claimed(
        &mut self,
        claimed: impl IntoIterator<Item = LeasedNotification>,
    ) -> Vec<Lease> {
        self.end_claim();
        let (mut batches, mut unsent) = (HashMap::<_, Vec<_>>::new(), Vec::new());
        for leased in claimed {
            let may_use = match self.accepting_credit() {
                0 => OpenStream::is_open,
                _ => OpenStream::is_accepting,
            };
            match self.use_credit(&leased, may_use) {
                Some(stream) => batches.entry(stream.id).or_default().push(leased),
                None => unsent.push(leased.claimed.lease),
            }
        }
        for (id, batch) in batches {
            if let Some(stream) = self.stream(id) {
                // Fails only if its task has panicked.
                if let Err(batch) = stream.leased.send(batch) {
                    unsent.extend(batch.0.iter().map(|leased| leased.claimed.lease));
                }
            }
        }
        unsent
    }

    /// The budget that a claim would have now: the credit of the streams whose dispatchers read what
    /// they are sent. `None` without credit.
    pub(super) fn claim_budget(&self) -> Option<ClaimBudget> {
        let free = self.accepting_credit().min(MAX_CLAIM);
        if free == 0 {
            return None;
        }
        let capacity = self.capacity();
        let is_slow =
            |in_flight: &&InFlightNotification| in_flight.receiver_health == ReceiverHealth::Slow;
        let mut slow_by_store = HashMap::<_, u32>::new();
        for slow in self.in_flight.values().filter(is_slow) {
            *slow_by_store.entry(slow.webhook.store_id).or_default() += 1;
        }
        let slow = slow_by_store.values().sum();
        Some(ClaimBudget {
            capacity,
            free,
            free_slow: capacity.for_slow().saturating_sub(slow).min(free),
            slow_per_store: capacity.for_slow_of_store(),
            slow_by_store,
        })
    }

    fn stream(&mut self, id: Uuid) -> Option<&mut OpenStream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// Returns the stream of a notification that was in flight under this lease.
    fn remove(&mut self, lease: Lease) -> Option<Uuid> {
        let in_flight = self.in_flight.get(&lease.id)?;
        if in_flight.lease_token != lease.token {
            return None;
        }
        Some(self.in_flight.remove(&lease.id)?.stream)
    }

    /// The dispatchers' capacity at this core, as far as it is known from their credit.
    fn capacity(&self) -> Capacity {
        let unused = self.sum(|stream| stream.credit.saturating_add(stream.completed));
        Capacity(unused.saturating_add(count(self.in_flight.values())))
    }

    /// The credit of the streams whose dispatchers read what they are sent.
    fn accepting_credit(&self) -> u32 {
        self.sum(|stream| stream.credit * u32::from(stream.is_accepting()))
    }

    fn sum(&self, of_stream: fn(&OpenStream) -> u32) -> u32 {
        let streams = self.streams.iter().map(of_stream);
        streams.fold(0, u32::saturating_add)
    }
}

impl OpenStream {
    fn is_open(&self) -> bool {
        self.responses.upgrade().is_some()
    }

    /// Whether the dispatcher reads what it is sent.
    fn is_accepting(&self) -> bool {
        let responses = self.responses.upgrade();
        responses.is_some_and(|responses| responses.capacity() > 0)
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
