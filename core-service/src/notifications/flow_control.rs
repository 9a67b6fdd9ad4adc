//! Flow control of one stream: the dispatcher's credit, and the notifications in flight on the
//! stream. Does no I/O.

use std::collections::HashMap;

use tokio::time::Instant;
use uuid::Uuid;

use domain::{
    id::{NotificationId, StoreId, WebhookId},
    scheduling::{Capacity, ClaimBudget, LEASE_DURATION, ReceiverHealth},
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
    /// What claims in progress may use for slow receivers.
    reserved_slow: u32,
    /// Sent to the dispatcher, or about to be, without an outcome yet.
    in_flight: HashMap<NotificationId, InFlightNotification>,
    is_closed: bool,
}

/// A notification on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlightNotification {
    pub(super) lease_token: Uuid,
    pub(super) store_id: StoreId,
    pub(super) webhook_id: WebhookId,
    pub(super) receiver_health: ReceiverHealth,
    pub(super) leased_at: Instant,
}

impl FlowControl {
    pub(super) fn grant(&mut self, credit: u32) {
        if !self.is_closed {
            self.credit = self.credit.saturating_add(credit);
            self.completed = 0;
        }
    }

    /// Uses one credit for a notification to a healthy receiver that is about to be inserted, if the
    /// limit of its webhook allows it; returns whether it did.
    pub(super) fn try_use_credit(
        &mut self,
        id: NotificationId,
        notification: &InFlightNotification,
    ) -> bool {
        let of_webhook = self.count(|in_flight| in_flight.webhook_id == notification.webhook_id);
        let limit = self.capacity().per_webhook(notification.receiver_health);
        let is_within_limits = self.credit > self.reserved && of_webhook < limit;
        if is_within_limits {
            self.credit -= 1;
            self.in_flight.insert(id, notification.clone());
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
        self.reserved_slow += budget.free_slow;
        Some(budget)
    }

    /// The budget that a claim would have now; `None` without credit.
    pub(super) fn claim_budget(&self, limit: u32) -> Option<ClaimBudget> {
        let free = self.credit.saturating_sub(self.reserved).min(limit);
        if free == 0 {
            return None;
        }
        let capacity = self.capacity();
        let mut slow_by_store = HashMap::<_, u32>::new();
        for slow in self.in_flight.values().filter(|slow| slow.is_slow()) {
            *slow_by_store.entry(slow.store_id).or_default() += 1;
        }
        // Claims in progress may use all that they have reserved for one store.
        let slow_per_store = capacity
            .for_slow_of_store()
            .saturating_sub(self.reserved_slow);
        let used = slow_by_store.values().sum::<u32>() + self.reserved_slow;
        let free_slow = if slow_per_store > 0 {
            capacity.for_slow().saturating_sub(used).min(free)
        } else {
            0
        };
        Some(ClaimBudget {
            capacity,
            free,
            free_slow,
            slow_per_store,
            slow_by_store,
        })
    }

    /// Ends a claim: frees its reservation and adds the notifications that it found.
    pub(super) fn end_claim(
        &mut self,
        budget: &ClaimBudget,
        claimed: impl IntoIterator<Item = (NotificationId, InFlightNotification)>,
    ) {
        self.reserved = self.reserved.saturating_sub(budget.free);
        self.reserved_slow = self.reserved_slow.saturating_sub(budget.free_slow);
        for (id, notification) in claimed {
            self.credit = self.credit.saturating_sub(1);
            self.in_flight.insert(id, notification);
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
        self.in_flight.retain(|_, notification| {
            now.saturating_duration_since(notification.leased_at) < LEASE_DURATION
        });
    }

    fn remove(&mut self, id: NotificationId, lease_token: Uuid) -> bool {
        let is_in_flight = self
            .in_flight
            .get(&id)
            .is_some_and(|notification| notification.lease_token == lease_token);
        if is_in_flight {
            self.in_flight.remove(&id);
        }
        is_in_flight
    }

    fn count(&self, is_counted: impl Fn(&InFlightNotification) -> bool) -> u32 {
        let counted = self
            .in_flight
            .values()
            .filter(|in_flight| is_counted(in_flight));
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
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
        let used = self.count(|_| true).saturating_add(self.completed);
        Capacity(self.credit.saturating_add(used))
    }
}

impl InFlightNotification {
    fn is_slow(&self) -> bool {
        self.receiver_health == ReceiverHealth::Slow
    }
}

#[cfg(test)]
mod tests;
