use super::{ReceiverHealth::*, *};

fn flow_control(credit: u32) -> FlowControl {
    let mut flow = FlowControl::default();
    flow.grant(credit);
    flow
}

/// A notification of a store of its own.
fn notification(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> InFlightNotification {
    InFlightNotification {
        lease_token: Uuid::now_v7(),
        store_id: StoreId::new(),
        webhook_id,
        receiver_health,
        leased_at: Instant::now(),
    }
}

/// Uses credit as often as the limits allow, each time for another healthy webhook.
fn fill(flow: &mut FlowControl) -> Vec<(NotificationId, InFlightNotification)> {
    std::iter::repeat_with(|| {
        let notification = notification(WebhookId::new(), Healthy);
        (NotificationId::new(), notification)
    })
    .take_while(|(id, notification)| flow.try_use_credit(*id, notification))
    .collect()
}

/// Claims a notification of each slow webhook of these stores.
fn claim_slow(flow: &mut FlowControl, stores: impl IntoIterator<Item = StoreId>) {
    let budget = flow.begin_claim(u32::MAX).unwrap();
    let claimed = stores.into_iter().map(|store_id| {
        let of_store = InFlightNotification {
            store_id,
            ..notification(WebhookId::new(), Slow)
        };
        (NotificationId::new(), of_store)
    });
    flow.end_claim(&budget, claimed);
}

#[test]
fn credit_is_used_by_notifications_and_renewed_only_by_grants() {
    let mut flow = flow_control(2);
    let in_flight = fill(&mut flow);
    assert_eq!((in_flight.len(), flow.claim_budget(1).is_none()), (2, true));

    let (id, notification) = in_flight[0].clone();
    assert!(flow.complete(id, notification.lease_token));
    assert!(!flow.complete(id, notification.lease_token), "only once");
    assert_eq!(fill(&mut flow).len(), 0);
    flow.grant(1);
    assert_eq!(fill(&mut flow).len(), 1);
}

#[test]
fn credit_is_returned_only_once() {
    let mut flow = flow_control(1);
    let in_flight = fill(&mut flow);

    flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);
    flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);

    assert_eq!(fill(&mut flow).len(), 1);
}

#[test]
fn one_webhook_is_limited_to_its_share() {
    let mut flow = flow_control(64);
    let id = WebhookId::new();
    let mut use_credit = || flow.try_use_credit(NotificationId::new(), &notification(id, Healthy));
    assert!((0..8).all(|_| use_credit()));
    assert!(!use_credit());

    assert_eq!(fill(&mut flow).len(), 56);
}

#[test]
fn an_outcome_frees_the_share_of_its_webhook_for_one_notification() {
    let mut flow = flow_control(64);
    let webhook_id = WebhookId::new();
    let use_credit = |flow: &mut FlowControl| {
        let (id, notification) = (NotificationId::new(), notification(webhook_id, Healthy));
        let lease = (id, notification.lease_token);
        flow.try_use_credit(id, &notification).then_some(lease)
    };
    let in_flight = [(); 8].map(|()| use_credit(&mut flow).unwrap());

    let (id, lease_token) = in_flight[0];
    assert!(flow.complete(id, lease_token));

    assert!(use_credit(&mut flow).is_some());
    assert!(use_credit(&mut flow).is_none());
}

#[test]
fn claims_and_pre_leased_notifications_share_the_credit() {
    let mut flow = flow_control(16);
    let budget = flow.begin_claim(6).unwrap();
    assert_eq!((budget.free, budget.capacity.0), (6, 16));

    assert_eq!(fill(&mut flow).len(), 10);
    assert!(flow.begin_claim(1).is_none());
    let claimed = (NotificationId::new(), notification(WebhookId::new(), Slow));
    flow.end_claim(&budget, [claimed]);

    assert_eq!(flow.begin_claim(100).unwrap().free, 5);
}

#[test]
fn a_stream_is_half_free_with_credit_for_as_many_notifications_as_are_in_flight() {
    let mut flow = flow_control(6);
    assert!(flow.is_half_free());

    let mut half_free_after = Vec::new();
    for _ in 0..6 {
        let used = flow.try_use_credit(
            NotificationId::new(),
            &notification(WebhookId::new(), Healthy),
        );
        assert!(used);
        half_free_after.push(flow.is_half_free());
    }

    assert_eq!(half_free_after, [true, true, true, false, false, false]);
}

#[test]
fn concurrent_claims_leave_as_much_for_healthy_receivers_and_other_stores_as_one_claim() {
    let mut flow = flow_control(64);
    let free = |budget: &ClaimBudget| (budget.free, budget.free_slow, budget.slow_per_store);
    let first = flow.begin_claim(6).unwrap();
    assert_eq!(free(&first), (6, 6, 8));

    let second = flow.begin_claim(20).unwrap();
    assert_eq!(free(&second), (20, 10, 2));
    let third = flow.begin_claim(20).unwrap();
    assert_eq!(free(&third), (20, 0, 0));
    for budget in [&first, &second, &third] {
        flow.end_claim(budget, []);
    }

    assert_eq!(free(&flow.claim_budget(64).unwrap()), (64, 16, 8));
}

/// Else the shares of capacity would shrink with each report.
#[test]
fn what_a_notification_used_counts_as_capacity_until_it_is_granted_again() {
    let mut flow = flow_control(64);
    let in_flight = fill(&mut flow);
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
    let mut flow = flow_control(8);
    let in_flight = fill(&mut flow);
    assert_eq!(in_flight.len(), 8);
    let (first, last) = (&in_flight[0], &in_flight[7]);

    flow.remove_expired(first.1.leased_at);
    assert!(flow.complete(first.0, first.1.lease_token));
    flow.remove_expired(last.1.leased_at + LEASE_DURATION);

    assert!(!flow.complete(last.0, last.1.lease_token));
}

#[test]
fn slow_receivers_use_a_quarter_of_the_capacity_and_those_of_one_store_half_of_it() {
    let mut flow = flow_control(64);
    let stores = [StoreId::new(), StoreId::new()];
    claim_slow(&mut flow, [stores[0]; 8]);
    let budget = flow.claim_budget(64).unwrap();
    assert_eq!(budget.free_slow, 8);
    assert_eq!(budget.stores_at_limit().collect::<Vec<_>>(), [stores[0]]);

    claim_slow(&mut flow, [stores[1]; 8]);

    assert_eq!(flow.claim_budget(64).unwrap().free_slow, 0);
    assert_eq!(fill(&mut flow).len(), 48);
}

#[test]
fn a_closed_stream_has_no_credit() {
    let mut flow = flow_control(8);
    let in_flight = fill(&mut flow);
    assert_eq!(in_flight.len(), 8);

    flow.close();
    flow.grant(8);
    flow.return_credit(in_flight[0].0, in_flight[0].1.lease_token);

    assert!(flow.is_closed() && flow.claim_budget(1).is_none());
    assert_eq!(fill(&mut flow).len(), 0);
}
