//! Flow control of one stream: the dispatcher's credit, and the notifications in flight on the
//! stream. Does no I/O.

use std::collections::HashMap;

use tokio::time::Instant;
use uuid::Uuid;

use domain::{
    id::{NotificationId, WebhookId},
    scheduling::{ByHealth, Capacity, ClaimBudget, Holder, LEASE_DURATION, ReceiverHealth, Usage},
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
    in_flight: HashMap<NotificationId, InFlight>,
    in_flight_by_webhook: HashMap<WebhookId, u32>,
    in_flight_by_health: ByHealth,
    usage: Usage,
    is_closed: bool,
}

/// A notification on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) lease_token: Uuid,
    pub(super) webhook_id: WebhookId,
    pub(super) receiver_health: ReceiverHealth,
    pub(super) holders: [Holder; 2],
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
    pub(super) fn try_use_credit(&mut self, id: NotificationId, notification: &InFlight) -> bool {
        let capacity = self.capacity();
        let health = notification.receiver_health;
        let of_webhook = self
            .in_flight_by_webhook
            .get(&notification.webhook_id)
            .copied()
            .unwrap_or_default();
        // Claims in progress may take all that they have reserved for one holder.
        let has_share = |holder| self.usage.remaining(capacity, holder, health) > self.reserved;
        let is_within_limits = self.credit > self.reserved
            && of_webhook < capacity.per_webhook(health)
            && self.in_flight_by_health[health as usize] + self.reserved_by_health[health as usize]
                < capacity.per_health(health)
            && notification.holders.iter().all(has_share);
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
        claimed: impl IntoIterator<Item = (NotificationId, InFlight)>,
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
        let is_expired = |notification: &InFlight| {
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

    /// Whether at least half of the capacity is free.
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

    fn insert(&mut self, id: NotificationId, notification: InFlight) {
        *self
            .in_flight_by_webhook
            .entry(notification.webhook_id)
            .or_default() += 1;
        let health = notification.receiver_health;
        self.in_flight_by_health[health as usize] += 1;
        for holder in &notification.holders {
            self.usage.add(holder.clone(), health);
        }
        if let Some(previous) = self.in_flight.insert(id, notification) {
            self.decrement(&previous);
        }
    }

    fn decrement(&mut self, notification: &InFlight) {
        if let Some(count) = self.in_flight_by_webhook.get_mut(&notification.webhook_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.in_flight_by_webhook.remove(&notification.webhook_id);
            }
        }
        let health = notification.receiver_health;
        let count = &mut self.in_flight_by_health[health as usize];
        *count = count.saturating_sub(1);
        for holder in &notification.holders {
            self.usage.remove(holder, health);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::id::StoreId;

    use super::{ReceiverHealth::*, *};

    fn flow_control(credit: u32) -> FlowControl {
        let mut flow = FlowControl::default();
        flow.grant(credit);
        flow
    }

    /// A notification of a store and a host of its own.
    fn notification(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> InFlight {
        InFlight {
            lease_token: Uuid::now_v7(),
            webhook_id,
            receiver_health,
            holders: [
                Holder::Store(StoreId::new()),
                Holder::Host(webhook_id.to_string()),
            ],
            leased_at: Instant::now(),
        }
    }

    /// Uses credit as often as the limits allow, each time for another webhook.
    fn fill(flow: &mut FlowControl, health: ReceiverHealth) -> Vec<(NotificationId, InFlight)> {
        std::iter::repeat_with(|| {
            let notification = notification(WebhookId::new(), health);
            (NotificationId::new(), notification)
        })
        .take_while(|(id, notification)| flow.try_use_credit(*id, notification))
        .collect()
    }

    #[test]
    fn credit_is_used_by_notifications_and_renewed_only_by_grants() {
        let mut flow = flow_control(2);
        let in_flight = fill(&mut flow, Healthy);
        assert_eq!((in_flight.len(), flow.claim_budget(1).is_none()), (2, true));

        let (id, notification) = in_flight[0].clone();
        assert!(flow.complete(id, notification.lease_token));
        assert!(!flow.complete(id, notification.lease_token), "only once");
        assert_eq!(fill(&mut flow, Healthy).len(), 0);
        flow.grant(1);
        assert_eq!(fill(&mut flow, Healthy).len(), 1);
    }

    #[test]
    fn credit_is_returned_only_once() {
        let mut flow = flow_control(1);
        let in_flight = fill(&mut flow, Unknown);

        flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);
        flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);

        assert_eq!(fill(&mut flow, Healthy).len(), 1);
    }

    #[test]
    fn one_webhook_and_receivers_of_unknown_or_slow_health_are_limited_to_their_share() {
        let mut flow = flow_control(64);
        let id = WebhookId::new();
        let use_credit = |flow: &mut FlowControl, health| {
            flow.try_use_credit(NotificationId::new(), &notification(id, health))
        };
        assert!((0..8).all(|_| use_credit(&mut flow, Healthy)));
        assert!(!use_credit(&mut flow, Healthy));

        for health in [Slow, Lagging, Unknown] {
            assert_eq!(fill(&mut flow, health).len(), 16, "{health:?}");
        }
        assert_eq!(fill(&mut flow, Healthy).len(), 8);
    }

    #[test]
    fn claims_and_pre_leased_notifications_share_the_credit() {
        let mut flow = flow_control(16);
        let budget = flow.begin_claim(6).unwrap();
        assert_eq!((budget.free, budget.capacity.0), (6, 16));

        assert_eq!(fill(&mut flow, Healthy).len(), 10);
        assert!(flow.begin_claim(1).is_none());
        let claimed = (
            NotificationId::new(),
            notification(WebhookId::new(), Unknown),
        );
        flow.end_claim(&budget, [claimed]);

        assert_eq!(flow.begin_claim(100).unwrap().free, 5);
    }

    #[test]
    fn concurrent_claims_leave_as_much_for_healthy_receivers_as_one_claim() {
        let mut flow = flow_control(64);
        let first = flow.begin_claim(20).unwrap();
        assert_eq!(first.free_by_health, [16, 64, 16, 16]);

        let second = flow.begin_claim(20).unwrap();
        assert_eq!(
            (second.free_by_health, second.reserved),
            ([0, 44, 0, 0], 20)
        );
        flow.end_claim(&first, []);
        flow.end_claim(&second, []);

        let third = flow.begin_claim(64).unwrap();
        assert_eq!(
            (third.free, third.free_by_health, third.reserved),
            (64, [16, 64, 16, 16], 0)
        );
    }

    /// Else the shares of capacity would shrink with each report.
    #[test]
    fn what_a_notification_used_counts_as_capacity_until_it_is_granted_again() {
        let mut flow = flow_control(64);
        let in_flight = fill(&mut flow, Healthy);
        assert_eq!(in_flight.len(), 64);
        for (id, notification) in &in_flight[..32] {
            flow.complete(*id, notification.lease_token);
        }
        assert_eq!(flow.capacity().0, 64);

        flow.grant(16);

        assert_eq!(flow.capacity().0, 48, "the dispatcher's limit is lower now");
    }

    #[test]
    fn a_notification_without_an_outcome_is_in_flight_until_its_lease_expires() {
        let mut flow = flow_control(32);
        let in_flight = fill(&mut flow, Unknown);
        assert_eq!(in_flight.len(), 8);
        let leased_at = in_flight[0].1.leased_at;

        flow.remove_expired(leased_at);
        assert_eq!(fill(&mut flow, Unknown).len(), 0);
        let (id, notification) = in_flight[7].clone();
        flow.remove_expired(notification.leased_at + LEASE_DURATION);

        assert!(!flow.complete(id, notification.lease_token));
        assert_eq!(fill(&mut flow, Unknown).len(), 6, "a quarter of the rest");
    }

    #[test]
    fn notifications_of_one_store_to_slow_receivers_use_half_of_their_part_at_most() {
        let mut flow = flow_control(64);
        let holders = [Holder::Store(StoreId::new()), Holder::Host(String::new())];
        let use_credit = |flow: &mut FlowControl, health| {
            let of_store = InFlight {
                holders: holders.clone(),
                ..notification(WebhookId::new(), health)
            };
            flow.try_use_credit(NotificationId::new(), &of_store)
        };
        assert_eq!((0..32).filter(|_| use_credit(&mut flow, Slow)).count(), 8);

        let budget = flow.claim_budget(64).unwrap();
        assert_eq!(budget.exhausted(Slow).count(), 2);
        assert_eq!(budget.exhausted(Healthy).count(), 0);
        assert_eq!(fill(&mut flow, Slow).len(), 8);
        assert!((0..48).all(|_| use_credit(&mut flow, Healthy)));
    }

    #[test]
    fn what_a_claim_may_take_for_a_store_is_not_used_by_pre_leased_notifications() {
        let mut flow = flow_control(64);
        let holders = [Holder::Store(StoreId::new()), Holder::Host(String::new())];
        let budget = flow.begin_claim(3).unwrap();
        let mut use_credit = || {
            let of_store = InFlight {
                holders: holders.clone(),
                ..notification(WebhookId::new(), Lagging)
            };
            flow.try_use_credit(NotificationId::new(), &of_store)
        };

        assert_eq!((0..64).filter(|_| use_credit()).count(), 5);

        flow.end_claim(&budget, []);
        let budget = flow.claim_budget(64).unwrap();
        let left = budget
            .usage
            .remaining(budget.capacity, &holders[0], Lagging);
        assert_eq!(left, 3);
    }

    #[test]
    fn a_closed_stream_has_no_credit() {
        let mut flow = flow_control(8);
        let in_flight = fill(&mut flow, Healthy);
        assert_eq!(in_flight.len(), 8);

        flow.close();
        flow.grant(8);
        flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);

        assert!(flow.is_closed() && flow.claim_budget(1).is_none());
        assert_eq!(fill(&mut flow, Healthy).len(), 0);
    }
}
