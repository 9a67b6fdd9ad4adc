//! Flow control of one stream: the dispatcher's credit, and the notifications in flight on the
//! stream. Does no I/O.

use std::collections::HashMap;

use tokio::time::Instant;
use uuid::Uuid;

use domain::{
    id::{NotificationId, WebhookId},
    scheduling::{
        ByHealth, Capacity, ClaimBudget, LEASE_DURATION, ReceiverHealth, Usage, UsageKey,
    },
};

/// The state of a stream's flow control.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// Granted and not used.
    credit: u32,
    /// Used by notifications with an outcome, to be granted again.
    completed: u32,
    /// The part of the credit that is reserved for claims in progress.
    reserved: u32,
    /// The parts of the limit of each health that are reserved for claims in progress.
    reserved_by_health: ByHealth,
    /// Sent to the dispatcher, or about to be, without an outcome yet.
    in_flight: HashMap<NotificationId, InFlightNotification>,
    in_flight_by_webhook: HashMap<WebhookId, u32>,
    in_flight_by_health: ByHealth,
    usage: Usage,
    is_closed: bool,
}

/// A notification on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlightNotification {
    pub(super) lease_token: Uuid,
    pub(super) webhook_id: WebhookId,
    pub(super) receiver_health: ReceiverHealth,
    pub(super) usage_keys: [UsageKey; 2],
    pub(super) leased_at: Instant,
}

impl FlowControl {
    pub(super) fn grant(&mut self, credit: u32) {
        if !self.is_closed {
            self.credit = self.credit.saturating_add(credit);
            self.completed = 0;
        }
    }

    /// Uses one credit for a notification that is about to be inserted, if the limits of its
    /// webhook, its receiver's health, its store and its host allow it; returns whether they did.
    pub(super) fn try_use_credit(
        &mut self,
        id: NotificationId,
        notification: &InFlightNotification,
    ) -> bool {
        let capacity = self.capacity();
        let health = notification.receiver_health;
        let of_webhook = self
            .in_flight_by_webhook
            .get(&notification.webhook_id)
            .copied()
            .unwrap_or_default();
        // Claims in progress may take all that they have reserved for one store or host.
        let has_share = |key| self.usage.remaining(capacity, key, health) > self.reserved;
        let is_within_limits = self.credit > self.reserved
            && of_webhook < capacity.per_webhook(health)
            && self.in_flight_by_health[health as usize] + self.reserved_by_health[health as usize]
                < capacity.per_health(health)
            && notification.usage_keys.iter().all(has_share);
        if is_within_limits {
            self.credit -= 1;
            self.insert(id, notification.clone());
        }
        is_within_limits
    }

    /// Reverts [`Self::try_use_credit`].
    pub(super) fn return_credit(&mut self, id: NotificationId, lease_token: Uuid) {
        if self.remove(id, lease_token) && !self.is_closed {
            self.credit = self.credit.saturating_add(1);
        }
    }

    /// Reserves credit for a claim, to be ended with [`Self::end_claim`]; `None` without credit.
    pub(super) fn begin_claim(&mut self, limit: u32) -> Option<ClaimBudget> {
        let budget = self.claim_budget(limit)?;
        self.reserved += budget.free;
        for (reserved, free) in self
            .reserved_by_health
            .iter_mut()
            .zip(budget.free_by_health)
        {
            *reserved += free.min(budget.free);
        }
        Some(budget)
    }

    /// The budget that a claim would have now; `None` without credit.
    pub(super) fn claim_budget(&self, limit: u32) -> Option<ClaimBudget> {
        let free = self.credit.saturating_sub(self.reserved).min(limit);
        if free == 0 {
            return None;
        }
        let capacity = self.capacity();
        let free_for = |health: ReceiverHealth| {
            let used = self.in_flight_by_health[health as usize]
                + self.reserved_by_health[health as usize];
            capacity.per_health(health).saturating_sub(used)
        };
        Some(ClaimBudget {
            capacity,
            free,
            free_by_health: ReceiverHealth::ALL.map(free_for),
            usage: self.usage.clone(),
            reserved: self.reserved,
        })
    }

    /// Ends a claim: frees its reservation and adds the notifications that it found.
    pub(super) fn end_claim(
        &mut self,
        budget: &ClaimBudget,
        claimed: impl IntoIterator<Item = (NotificationId, InFlightNotification)>,
    ) {
        self.reserved = self.reserved.saturating_sub(budget.free);
        for (reserved, free) in self
            .reserved_by_health
            .iter_mut()
            .zip(budget.free_by_health)
        {
            *reserved = reserved.saturating_sub(free.min(budget.free));
        }
        for (id, notification) in claimed {
            self.credit = self.credit.saturating_sub(1);
            self.insert(id, notification);
        }
    }

    /// Removes a notification whose outcome has arrived; returns whether it was in flight under
    /// this lease.
    pub(super) fn complete(&mut self, id: NotificationId, lease_token: Uuid) -> bool {
        let is_in_flight = self.remove(id, lease_token);
        if is_in_flight {
            self.completed = self.completed.saturating_add(1);
        }
        is_in_flight
    }

    /// Removes notifications whose lease has expired: their outcomes were reported to another core,
    /// or never will be.
    pub(super) fn remove_expired(&mut self, now: Instant) {
        let is_expired = |notification: &InFlightNotification| {
            now.saturating_duration_since(notification.leased_at) >= LEASE_DURATION
        };
        let expired: Vec<_> = self
            .in_flight
            .extract_if(|_, notification| is_expired(notification))
            .collect();
        for (_, notification) in expired {
            self.decrement(&notification);
        }
    }

    fn remove(&mut self, id: NotificationId, lease_token: Uuid) -> bool {
        let is_in_flight = self
            .in_flight
            .get(&id)
            .is_some_and(|notification| notification.lease_token == lease_token);
        if is_in_flight && let Some(notification) = self.in_flight.remove(&id) {
            self.decrement(&notification);
        }
        is_in_flight
    }

    /// Whether the credit is at least the number of notifications in flight: about half of the
    /// capacity.
    pub(super) fn is_half_free(&self) -> bool {
        usize::try_from(self.credit).is_ok_and(|credit| credit >= self.in_flight.len())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Drops all credit permanently.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.credit = 0;
    }

    /// The dispatcher's capacity at this core, as far as it is known from the credit.
    fn capacity(&self) -> Capacity {
        let in_flight = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        let used = in_flight.saturating_add(self.completed);
        Capacity(self.credit.saturating_add(used))
    }

    fn insert(&mut self, id: NotificationId, notification: InFlightNotification) {
        *self
            .in_flight_by_webhook
            .entry(notification.webhook_id)
            .or_default() += 1;
        let health = notification.receiver_health;
        self.in_flight_by_health[health as usize] += 1;
        for key in &notification.usage_keys {
            self.usage.add(key.clone(), health);
        }
        if let Some(previous) = self.in_flight.insert(id, notification) {
            self.decrement(&previous);
        }
    }

    fn decrement(&mut self, notification: &InFlightNotification) {
        if let Some(count) = self.in_flight_by_webhook.get_mut(&notification.webhook_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.in_flight_by_webhook.remove(&notification.webhook_id);
            }
        }
        let health = notification.receiver_health;
        let count = &mut self.in_flight_by_health[health as usize];
        *count = count.saturating_sub(1);
        for key in &notification.usage_keys {
            self.usage.remove(key, health);
        }
    }
}

#[cfg(test)]
mod tests;
