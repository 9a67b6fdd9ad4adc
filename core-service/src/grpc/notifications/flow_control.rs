//! Flow control of one stream: the dispatcher's credit, and the notifications in flight on the
//! stream. Does no I/O.

use std::collections::HashMap;

use uuid::Uuid;

use domain::{
    id::{NotificationId, WebhookId},
    scheduling::{Capacity, ClaimBudget, ReceiverHealth},
};

/// The state of a stream's flow control.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// Granted and not used.
    credit: u32,
    /// The part of the credit that is reserved for claims in progress.
    reserved: u32,
    /// The parts of the concurrency limits of receivers with unknown health and of slow ones that
    /// are reserved for claims in progress.
    reserved_for_unknown: u32,
    reserved_for_slow: u32,
    /// Sent to the dispatcher, or about to be, without an outcome yet.
    in_flight: HashMap<NotificationId, InFlight>,
    in_flight_by_webhook: HashMap<WebhookId, u32>,
    unknown_in_flight: u32,
    slow_in_flight: u32,
    is_closed: bool,
    /// Whether the dispatcher has announced that it sends nothing more from this stream.
    is_drained: bool,
}

/// A notification on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) lease_token: Uuid,
    pub(super) webhook_id: WebhookId,
    pub(super) receiver_health: ReceiverHealth,
}

impl FlowControl {
    pub(super) fn grant(&mut self, credit: u32) {
        if !self.is_closed {
            self.credit = self.credit.saturating_add(credit);
        }
    }

    /// Uses one credit for a notification that is about to be inserted, if the limits of its
    /// webhook and of its receiver's health allow it; returns whether they did.
    pub(super) fn try_use_credit(&mut self, id: NotificationId, notification: InFlight) -> bool {
        let capacity = self.capacity();
        let health = notification.receiver_health;
        let of_webhook = self
            .in_flight_by_webhook
            .get(&notification.webhook_id)
            .copied()
            .unwrap_or_default();
        let of_health = match health {
            ReceiverHealth::Healthy => 0,
            ReceiverHealth::Unknown => self.unknown_in_flight,
            ReceiverHealth::Slow => self.slow_in_flight,
        };
        let is_within_limits = self.credit > self.reserved
            && of_webhook < capacity.per_webhook(health)
            && of_health < capacity.per_health(health);
        if is_within_limits {
            self.credit -= 1;
            self.insert(id, notification);
        }
        is_within_limits
    }

    /// Reverts [`Self::try_use_credit`].
    pub(super) fn return_credit(&mut self, id: NotificationId, lease_token: Uuid) {
        if self.complete(id, lease_token) {
            self.grant(1);
        }
    }

    /// Reserves credit for a claim, to be ended with [`Self::end_claim`]; `None` without credit.
    pub(super) fn begin_claim(&mut self, limit: u32) -> Option<ClaimBudget> {
        let budget = self.claim_budget(limit)?;
        self.reserved += budget.free;
        self.reserved_for_unknown += budget.free_for_unknown.min(budget.free);
        self.reserved_for_slow += budget.free_for_slow.min(budget.free);
        Some(budget)
    }

    /// The budget that a claim would have now; `None` without credit.
    pub(super) fn claim_budget(&self, limit: u32) -> Option<ClaimBudget> {
        let free = self.credit.saturating_sub(self.reserved).min(limit);
        if free == 0 {
            return None;
        }
        let capacity = self.capacity();
        let free_for = |health, used| capacity.per_health(health).saturating_sub(used);
        Some(ClaimBudget {
            capacity,
            free,
            free_for_unknown: free_for(
                ReceiverHealth::Unknown,
                self.unknown_in_flight + self.reserved_for_unknown,
            ),
            free_for_slow: free_for(
                ReceiverHealth::Slow,
                self.slow_in_flight + self.reserved_for_slow,
            ),
        })
    }

    /// Ends a claim: frees its reservation and adds the notifications that it found.
    pub(super) fn end_claim(
        &mut self,
        budget: &ClaimBudget,
        claimed: impl IntoIterator<Item = (NotificationId, InFlight)>,
    ) {
        let unreserve = |reserved: &mut u32, share: u32| {
            *reserved = reserved.saturating_sub(share.min(budget.free));
        };
        unreserve(&mut self.reserved, budget.free);
        unreserve(&mut self.reserved_for_unknown, budget.free_for_unknown);
        unreserve(&mut self.reserved_for_slow, budget.free_for_slow);
        for (id, notification) in claimed {
            self.credit = self.credit.saturating_sub(1);
            self.insert(id, notification);
        }
    }

    /// Removes a notification whose outcome has arrived; returns whether it was in flight under
    /// this lease.
    pub(super) fn complete(&mut self, id: NotificationId, lease_token: Uuid) -> bool {
        let is_in_flight = self
            .in_flight
            .get(&id)
            .is_some_and(|notification| notification.lease_token == lease_token);
        if is_in_flight && let Some(notification) = self.in_flight.remove(&id) {
            self.decrement(notification);
        }
        is_in_flight
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether at least half of the capacity is free.
    pub(super) fn is_half_free(&self) -> bool {
        usize::try_from(self.credit).is_ok_and(|credit| credit >= self.in_flight.len())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Records that the dispatcher sends nothing more from this stream, and drops all credit
    /// permanently.
    pub(super) fn drain(&mut self) {
        self.is_drained = true;
        self.is_closed = true;
        self.credit = 0;
    }

    /// To be called once no claim is in progress. Drops all credit permanently, and returns the
    /// leases to be released: what is in flight on a
    /// drained stream. Otherwise the leases outlive the stream, since their outcomes arrive on
    /// another one.
    pub(super) fn close(&mut self) -> Vec<(NotificationId, Uuid)> {
        self.is_closed = true;
        self.credit = 0;
        self.in_flight_by_webhook.clear();
        self.unknown_in_flight = 0;
        self.slow_in_flight = 0;
        let in_flight = self.in_flight.drain();
        if !self.is_drained {
            return Vec::new();
        }
        in_flight
            .map(|(id, notification)| (id, notification.lease_token))
            .collect()
    }

    /// The dispatcher's capacity at this core, as far as it is known from the credit.
    fn capacity(&self) -> Capacity {
        let in_flight = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        Capacity(self.credit.saturating_add(in_flight))
    }

    fn insert(&mut self, id: NotificationId, notification: InFlight) {
        *self
            .in_flight_by_webhook
            .entry(notification.webhook_id)
            .or_default() += 1;
        match notification.receiver_health {
            ReceiverHealth::Healthy => {}
            ReceiverHealth::Unknown => self.unknown_in_flight += 1,
            ReceiverHealth::Slow => self.slow_in_flight += 1,
        }
        if let Some(previous) = self.in_flight.insert(id, notification) {
            self.decrement(previous);
        }
    }

    fn decrement(&mut self, notification: InFlight) {
        if let Some(count) = self.in_flight_by_webhook.get_mut(&notification.webhook_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.in_flight_by_webhook.remove(&notification.webhook_id);
            }
        }
        let count = match notification.receiver_health {
            ReceiverHealth::Healthy => return,
            ReceiverHealth::Unknown => &mut self.unknown_in_flight,
            ReceiverHealth::Slow => &mut self.slow_in_flight,
        };
        *count = count.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{ReceiverHealth::*, *};

    fn flow_control(credit: u32) -> FlowControl {
        let mut flow = FlowControl::default();
        flow.grant(credit);
        flow
    }

    fn notification(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> InFlight {
        InFlight {
            lease_token: Uuid::now_v7(),
            webhook_id,
            receiver_health,
        }
    }

    /// Uses credit as often as the limits allow, each time for another webhook.
    fn fill(flow: &mut FlowControl, health: ReceiverHealth) -> Vec<(NotificationId, InFlight)> {
        std::iter::repeat_with(|| {
            let notification = notification(WebhookId::new(), health);
            (NotificationId::new(), notification)
        })
        .take_while(|(id, notification)| flow.try_use_credit(*id, *notification))
        .collect()
    }

    #[test]
    fn credit_is_used_by_notifications_and_renewed_only_by_grants() {
        let mut flow = flow_control(2);
        let in_flight = fill(&mut flow, Healthy);
        assert_eq!((in_flight.len(), flow.claim_budget(1).is_none()), (2, true));

        let (id, notification) = in_flight[0];
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
            flow.try_use_credit(NotificationId::new(), notification(id, health))
        };
        assert!((0..8).all(|_| use_credit(&mut flow, Healthy)));
        assert!(!use_credit(&mut flow, Healthy));

        assert_eq!(fill(&mut flow, Slow).len(), 16);
        assert_eq!(fill(&mut flow, Unknown).len(), 32);
        assert_eq!(fill(&mut flow, Healthy).len(), 8);
    }

    #[test]
    fn claims_and_pre_leased_notifications_share_the_credit() {
        let mut flow = flow_control(8);
        let budget = flow.begin_claim(6).unwrap();
        assert_eq!((budget.free, budget.capacity.0), (6, 8));

        assert_eq!(fill(&mut flow, Healthy).len(), 2);
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
        assert_eq!((first.free_for_unknown, first.free_for_slow), (32, 16));

        let second = flow.begin_claim(20).unwrap();
        assert_eq!((second.free_for_unknown, second.free_for_slow), (12, 0));
        flow.end_claim(&first, []);
        flow.end_claim(&second, []);

        let third = flow.begin_claim(64).unwrap();
        assert_eq!(
            (third.free, third.free_for_unknown, third.free_for_slow),
            (64, 32, 16)
        );
    }

    #[test]
    fn closing_a_drained_stream_returns_the_leases_in_flight_and_ends_all_credit() {
        let mut flow = flow_control(8);
        let mut expected: Vec<_> = fill(&mut flow, Healthy)
            .into_iter()
            .map(|(id, notification)| (id, notification.lease_token))
            .collect();
        expected.sort();

        flow.drain();
        let mut leases = flow.close();
        leases.sort();

        assert_eq!(leases, expected);
        flow.grant(8);
        assert!(flow.is_closed() && flow.claim_budget(1).is_none());
        flow.return_credit(expected[0].0, expected[0].1);
        assert_eq!(fill(&mut flow, Healthy).len(), 0);
    }

    #[test]
    fn what_a_claim_finds_after_the_stream_is_drained_is_released() {
        for is_drained in [true, false] {
            let mut flow = flow_control(8);
            let claim = flow.begin_claim(8).unwrap();
            if is_drained {
                flow.drain();
            }
            let found = notification(WebhookId::new(), Healthy);
            let id = NotificationId::new();
            flow.end_claim(&claim, [(id, found)]);

            let released = flow.close();

            let expected = is_drained.then_some((id, found.lease_token));
            assert_eq!(released, Vec::from_iter(expected));
        }
    }
}
