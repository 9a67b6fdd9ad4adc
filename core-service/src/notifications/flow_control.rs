//! Flow control of this process's streams: the dispatchers' credit, and the notifications in flight on
//! the streams. Does no I/O.

use std::collections::HashMap;

use tokio::{sync::mpsc, time::Instant};
use uuid::Uuid;

use domain::{
    id::{NotificationId, WebhookId},
    scheduling::{Capacity, ClaimBudget, IN_FLIGHT_WINDOW, LEASE_DURATION, ReceiverHealth},
    webhook::WebhookKey,
};

use super::streams::{LeasedNotification, Response, Responses};

use storage::notifications::Lease;

/// The most notifications that one transaction claims.
const MAX_CLAIM: u32 = 256;

/// The most webhooks of which one claim knows that their limits have grown, which are those with the highest.
const MAX_GROWN: usize = 64;

/// Sends notifications that are sent together.
pub(super) type LeasedSender = mpsc::UnboundedSender<Vec<LeasedNotification>>;
pub(super) type LeasedReceiver = mpsc::UnboundedReceiver<Vec<LeasedNotification>>;

#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// The open streams, in the order of their next use.
    streams: Vec<OpenStream>,
    /// Sent to a dispatcher, or about to be, without an outcome yet.
    in_flight: HashMap<NotificationId, InFlightNotification>,
    webhooks: HashMap<WebhookId, ActiveWebhook>,
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

/// A webhook with notifications in flight, or whose limit has grown lately.
#[derive(Clone, Copy, Debug)]
struct ActiveWebhook {
    in_flight: u32,
    /// As [`Capacity::grown`] has it; 0 while it has not grown.
    limit: u32,
    /// When its last outcome arrived.
    completed_at: Instant,
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
        self.retain(|notification| notification.stream != id);
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
        let webhook = self.webhooks.get(&leased.claimed.target.key.webhook_id);
        let (in_flight, limit) =
            webhook.map_or((0, 0), |webhook| (webhook.in_flight, webhook.limit));
        let at_first = self.capacity().per_webhook(ReceiverHealth::Healthy);
        let is_below = in_flight < at_first || (in_flight < limit && self.free_grown() > 0);
        if !is_below || self.accepting_credit() <= self.reserved {
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
        let webhook = self.webhooks.entry(claimed.target.key.webhook_id);
        let webhook = webhook.or_insert(ActiveWebhook {
            in_flight: 0,
            limit: 0,
            completed_at: leased.leased_at,
        });
        webhook.in_flight += 1;
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
        let removed = self.remove(lease);
        if let Some(stream) = removed.and_then(|removed| self.stream(removed.stream)) {
            stream.credit = stream.credit.saturating_add(1);
        }
    }

    /// Removes a notification whose outcome has arrived, and adapts the limit of its webhook.
    pub(super) fn complete(&mut self, lease: Lease, is_answered_well: bool) {
        let capacity = self.capacity();
        let at_first = capacity.per_webhook(ReceiverHealth::Healthy);
        let in_flight = self.in_flight.get(&lease.id);
        let of_lease = in_flight.filter(|in_flight| in_flight.lease_token == lease.token);
        let webhook =
            of_lease.and_then(|in_flight| self.webhooks.get_mut(&in_flight.webhook.webhook_id));
        if let Some(webhook) = webhook {
            let limit = capacity.grown(webhook.limit, webhook.in_flight, is_answered_well);
            webhook.limit = if limit > at_first { limit } else { 0 };
            webhook.completed_at = Instant::now();
        }
        let Some(removed) = self.remove(lease) else {
            return;
        };
        if let Some(stream) = self.stream(removed.stream) {
            stream.completed = stream.completed.saturating_add(1);
        }
    }

    /// Removes notifications whose lease has expired: their outcomes were reported to another core,
    /// or never will be. Forgets the limits of webhooks that are idle.
    pub(super) fn remove_expired(&mut self, now: Instant) {
        self.retain(|notification| {
            now.saturating_duration_since(notification.leased_at) < LEASE_DURATION
        });
        self.webhooks.retain(|_, webhook| {
            let age = now.saturating_duration_since(webhook.completed_at);
            webhook.in_flight > 0 || age < IN_FLIGHT_WINDOW
        });
    }

    fn retain(&mut self, is_kept: impl Fn(&InFlightNotification) -> bool) {
        let webhooks = &mut self.webhooks;
        self.in_flight.retain(|_, notification| {
            let is_kept = is_kept(notification);
            if !is_kept {
                count_down(webhooks, notification);
            }
            is_kept
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
        let at_first = capacity.per_webhook(ReceiverHealth::Healthy);
        let limits = self
            .webhooks
            .iter()
            .map(|(id, webhook)| (*id, webhook.limit));
        let mut grown: Vec<_> = limits.filter(|(_, limit)| *limit > at_first).collect();
        grown.sort_unstable_by_key(|(_, limit)| std::cmp::Reverse(*limit));
        grown.truncate(MAX_GROWN);
        Some(ClaimBudget {
            capacity,
            free,
            free_slow: capacity.for_slow().saturating_sub(slow).min(free),
            slow_per_store: capacity.for_slow_of_store(),
            slow_by_store,
            free_grown: self.free_grown().min(free),
            grown: grown.into_iter().collect(),
        })
    }

    /// What webhooks may still have in flight beyond their limits at first.
    fn free_grown(&self) -> u32 {
        let capacity = self.capacity();
        let at_first = capacity.per_webhook(ReceiverHealth::Healthy);
        let beyond = self.webhooks.values();
        let beyond = beyond.map(|webhook| webhook.in_flight.saturating_sub(at_first));
        capacity.for_grown().saturating_sub(beyond.sum())
    }

    fn stream(&mut self, id: Uuid) -> Option<&mut OpenStream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// Removes a notification that was in flight under this lease.
    fn remove(&mut self, lease: Lease) -> Option<InFlightNotification> {
        let in_flight = self.in_flight.get(&lease.id)?;
        if in_flight.lease_token != lease.token {
            return None;
        }
        let removed = self.in_flight.remove(&lease.id)?;
        count_down(&mut self.webhooks, &removed);
        Some(removed)
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

fn count_down(webhooks: &mut HashMap<WebhookId, ActiveWebhook>, removed: &InFlightNotification) {
    let id = removed.webhook.webhook_id;
    if let Some(webhook) = webhooks.get_mut(&id) {
        webhook.in_flight = webhook.in_flight.saturating_sub(1);
        if webhook.in_flight == 0 && webhook.limit == 0 {
            webhooks.remove(&id);
        }
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
