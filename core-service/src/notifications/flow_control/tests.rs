use domain::id::StoreId;

use super::{ReceiverHealth::*, *};

fn flow_control(credit: u32) -> FlowControl {
    let mut flow = FlowControl::default();
    flow.grant(credit);
    flow
}

/// A notification of a store and a host of its own.
fn notification(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> InFlightNotification {
    InFlightNotification {
        lease_token: Uuid::now_v7(),
        webhook_id,
        receiver_health,
        usage_keys: [
            UsageKey::Store(StoreId::new()),
            UsageKey::Host(webhook_id.to_string()),
        ],
        leased_at: Instant::now(),
    }
}

/// Uses credit as often as the limits allow, each time for another webhook.
fn fill(
    flow: &mut FlowControl,
    health: ReceiverHealth,
) -> Vec<(NotificationId, InFlightNotification)> {
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
fn what_a_claim_may_take_for_a_health_is_not_used_by_pre_leased_notifications() {
    let mut flow = flow_control(64);
    let budget = flow.begin_claim(6).unwrap();
    assert_eq!(fill(&mut flow, Slow).len(), 10, "16 less what is reserved");

    let second = flow.begin_claim(6).unwrap();
    flow.end_claim(&budget, []);
    flow.end_claim(&second, []);

    assert_eq!(fill(&mut flow, Slow).len(), 6);
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
fn notifications_of_one_store_to_slow_receivers_use_half_of_their_share_at_most() {
    let mut flow = flow_control(64);
    let usage_keys = [
        UsageKey::Store(StoreId::new()),
        UsageKey::Host(String::new()),
    ];
    let use_credit = |flow: &mut FlowControl, health| {
        let of_store = InFlightNotification {
            usage_keys: usage_keys.clone(),
            ..notification(WebhookId::new(), health)
        };
        flow.try_use_credit(NotificationId::new(), &of_store)
    };
    assert_eq!((0..32).filter(|_| use_credit(&mut flow, Slow)).count(), 8);

    let budget = flow.claim_budget(64).unwrap();
    assert_eq!(budget.keys_at_limit(Slow).count(), 2);
    assert_eq!(budget.keys_at_limit(Healthy).count(), 0);
    assert_eq!(fill(&mut flow, Slow).len(), 8);
    assert!((0..48).all(|_| use_credit(&mut flow, Healthy)));
}

#[test]
fn what_a_claim_may_take_for_a_store_is_not_used_by_pre_leased_notifications() {
    let mut flow = flow_control(64);
    let usage_keys = [
        UsageKey::Store(StoreId::new()),
        UsageKey::Host(String::new()),
    ];
    let budget = flow.begin_claim(3).unwrap();
    let mut use_credit = || {
        let of_store = InFlightNotification {
            usage_keys: usage_keys.clone(),
            ..notification(WebhookId::new(), Lagging)
        };
        flow.try_use_credit(NotificationId::new(), &of_store)
    };

    assert_eq!((0..64).filter(|_| use_credit()).count(), 5);

    flow.end_claim(&budget, []);
    let budget = flow.claim_budget(64).unwrap();
    let left = budget
        .usage
        .remaining(budget.capacity, &usage_keys[0], Lagging);
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
