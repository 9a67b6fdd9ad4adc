use domain::id::{StoreId, WebhookId};

use super::{ReceiverHealth::*, *};

/// A stream whose dispatcher reads what it is sent.
struct TestStream {
    id: Uuid,
    leased: LeasedReceiver,
    responses: Responses,
    _sent: mpsc::Receiver<Response>,
}

fn open(flow: &mut FlowControl, credit: u32) -> TestStream {
    let (id, (leased, receiver)) = (Uuid::now_v7(), mpsc::unbounded_channel());
    let (responses, sent) = mpsc::channel(1);
    flow.open(id, leased, &responses);
    flow.grant(id, credit);
    TestStream {
        id,
        leased: receiver,
        responses,
        _sent: sent,
    }
}

/// A stream with credit, alone.
fn flow_control(credit: u32) -> (FlowControl, TestStream) {
    let mut flow = FlowControl::default();
    let stream = open(&mut flow, credit);
    (flow, stream)
}

/// A notification of a store of its own.
fn notification(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> LeasedNotification {
    LeasedNotification {
        claimed: storage::fixture::claimed(webhook_id, receiver_health),
        leased_at: Instant::now(),
    }
}

/// Pre-leases a notification of a healthy webhook.
fn pre_lease(flow: &mut FlowControl, webhook_id: WebhookId) -> Option<Lease> {
    let leased = notification(webhook_id, Healthy);
    flow.pre_lease(&leased).map(|_| leased.claimed.lease)
}

/// Uses credit as often as the limits allow, each time for another healthy webhook.
fn fill(flow: &mut FlowControl) -> Vec<Lease> {
    std::iter::from_fn(|| pre_lease(flow, WebhookId::new())).collect()
}

/// Claims a notification of each slow webhook of these stores.
fn claim_slow(flow: &mut FlowControl, stores: impl IntoIterator<Item = StoreId>) {
    let claimed = stores.into_iter().map(|store_id| {
        let mut slow = notification(WebhookId::new(), Slow);
        slow.claimed.target.key.store_id = store_id;
        slow
    });
    assert_eq!(flow.send_claimed(claimed), []);
}

#[test]
fn credit_is_used_by_notifications_and_renewed_only_by_grants() {
    let (mut flow, stream) = flow_control(2);
    let in_flight = fill(&mut flow);
    assert_eq!((in_flight.len(), flow.claim_budget().is_none()), (2, true));

    flow.complete(in_flight[0], false);
    assert_eq!(fill(&mut flow).len(), 0);
    flow.grant(stream.id, 1);
    assert_eq!(fill(&mut flow).len(), 1);
}

#[test]
fn credit_is_returned_only_once_and_only_by_the_lease_that_used_it() {
    let (mut flow, _stream) = flow_control(1);
    let lease = fill(&mut flow)[0];
    let of_another_lease = Lease {
        token: Uuid::now_v7(),
        ..lease
    };

    flow.return_credit(of_another_lease);
    assert_eq!(fill(&mut flow).len(), 0);
    flow.return_credit(lease);
    flow.return_credit(lease);

    assert_eq!(fill(&mut flow).len(), 1);
}

#[test]
fn pre_leased_notifications_go_to_the_streams_with_credit_in_turn() {
    let mut flow = FlowControl::default();
    let mut streams = [1, 3, 2].map(|credit| open(&mut flow, credit));
    let mut sent = Vec::new();

    for _ in 0..6 {
        let leased = notification(WebhookId::new(), Healthy);
        let queue = flow.pre_lease(&leased).unwrap();
        queue.send(vec![leased]).unwrap();
        sent.push(streams.each_ref().map(|stream| stream.leased.len()));
    }

    assert_eq!((sent[2], sent[5]), ([1, 1, 1], [1, 3, 2]));
    for stream in &mut streams {
        stream.leased.close();
    }
}

#[test]
fn a_claim_is_sent_to_the_streams_with_credit_in_turn_together_on_each() {
    let mut flow = FlowControl::default();
    let mut streams = [1, 3, 2].map(|credit| open(&mut flow, credit));
    assert_eq!(flow.begin_claim().unwrap().free, 6);

    let claimed = [(); 6].map(|()| notification(WebhookId::new(), Slow));
    assert_eq!(flow.send_claimed(claimed), []);

    for (stream, count) in streams.iter_mut().zip([1, 3, 2]) {
        assert_eq!(stream.leased.try_recv().unwrap().len(), count);
    }
    assert!(flow.claim_budget().is_none());
}

/// It closes while the transaction of the claim runs.
#[test]
fn what_a_claim_finds_for_a_closed_stream_is_not_sent() {
    let mut flow = FlowControl::default();
    let mut streams = [1, 1].map(|credit| open(&mut flow, credit));
    assert_eq!(flow.begin_claim().unwrap().free, 2);
    flow.close(streams[0].id);

    let claimed = [(); 2].map(|()| notification(WebhookId::new(), Slow));
    let leases = claimed.each_ref().map(|leased| leased.claimed.lease);
    assert_eq!(flow.send_claimed(claimed), leases[1..]);

    assert!(streams[0].leased.try_recv().is_err());
    let sent = streams[1].leased.try_recv().unwrap();
    assert_eq!(sent[0].claimed.lease, leases[0]);
}

#[test]
fn one_webhook_is_limited_to_its_share() {
    let (mut flow, _stream) = flow_control(64);
    let id = WebhookId::new();
    assert!((0..8).all(|_| pre_lease(&mut flow, id).is_some()));
    assert!(pre_lease(&mut flow, id).is_none());

    assert_eq!(fill(&mut flow).len(), 56);
}

#[test]
fn an_outcome_frees_the_share_of_its_webhook_for_one_notification() {
    let (mut flow, _stream) = flow_control(64);
    let id = WebhookId::new();
    let in_flight = [(); 8].map(|()| pre_lease(&mut flow, id).unwrap());

    flow.complete(in_flight[0], false);

    assert!(pre_lease(&mut flow, id).is_some());
    assert!(pre_lease(&mut flow, id).is_none());
}

#[test]
fn the_limit_of_a_webhook_grows_with_good_answers_up_to_its_part_of_the_capacity() {
    let (mut flow, stream) = flow_control(64);
    let id = WebhookId::new();
    let in_flight = |flow: &mut FlowControl| {
        let leased: Vec<_> = std::iter::from_fn(|| pre_lease(flow, id)).collect();
        leased
    };
    let first = in_flight(&mut flow);
    assert_eq!(first.len(), 8);

    for lease in first {
        flow.complete(lease, true);
    }
    flow.grant(stream.id, 8);
    let budget = flow.claim_budget().unwrap();
    assert_eq!((budget.free_grown, budget.grown[&id]), (32, 13));
    let second = in_flight(&mut flow);
    assert_eq!(second.len(), 13);
    let budget = flow.claim_budget().unwrap();
    assert_eq!((budget.free_grown, budget.grown[&id]), (27, 13));

    for round in [second, Vec::new(), Vec::new()] {
        for lease in round.into_iter().chain(in_flight(&mut flow)) {
            flow.complete(lease, true);
            flow.grant(stream.id, 1);
        }
    }
    let most = in_flight(&mut flow);
    assert_eq!(most.len(), 40, "eight at first and half of the capacity");
    // The rest is for others.
    assert_eq!(fill(&mut flow).len(), 24);

    flow.complete(most[0], false);
    assert_eq!(flow.webhooks[&id].limit, 20);
    for lease in &most[1..] {
        flow.complete(*lease, false);
    }
    assert!(!flow.webhooks.contains_key(&id), "it is as at first");

    flow.grant(stream.id, 40);
    let grown = in_flight(&mut flow);
    flow.complete(grown[0], true);
    for lease in &grown[1..] {
        flow.return_credit(*lease);
    }
    flow.remove_expired(Instant::now());
    assert_eq!(flow.webhooks[&id].limit, 9);
    flow.remove_expired(Instant::now() + IN_FLIGHT_WINDOW);
    assert!(!flow.webhooks.contains_key(&id), "it is idle");
}

#[test]
fn what_a_claim_reserves_is_not_pre_leased_until_it_ends() {
    let (mut flow, stream) = flow_control(4);
    let budget = flow.begin_claim().unwrap();
    assert_eq!((budget.free, budget.capacity.0), (4, 4));
    assert_eq!(fill(&mut flow).len(), 0);
    flow.grant(stream.id, 2);
    assert_eq!(fill(&mut flow).len(), 2);

    claim_slow(&mut flow, [StoreId::new()]);

    assert_eq!(fill(&mut flow).len(), 3);
}

#[test]
fn a_claim_takes_at_most_256_notifications() {
    let (flow, _stream) = flow_control(1024);
    let budget = flow.claim_budget().unwrap();
    assert_eq!((budget.free, budget.capacity.0), (256, 1024));
}

/// Else the shares of capacity would shrink with each report.
#[test]
fn what_a_notification_used_counts_as_capacity_until_it_is_granted_again() {
    let (mut flow, stream) = flow_control(64);
    let in_flight = fill(&mut flow);
    assert_eq!(in_flight.len(), 64);
    for lease in &in_flight[..32] {
        flow.complete(*lease, false);
    }
    assert_eq!(flow.capacity().0, 64);

    flow.grant(stream.id, 16);

    assert_eq!(flow.capacity().0, 48, "the dispatcher's limit is lower now");
}

#[test]
fn a_notification_without_an_outcome_is_in_flight_until_its_lease_expires() {
    let (mut flow, _stream) = flow_control(8);
    let leased_at = Instant::now();
    assert_eq!(fill(&mut flow).len(), 8);
    let all_leased_at = Instant::now();

    flow.remove_expired(leased_at);
    assert_eq!(flow.in_flight.len(), 8);
    flow.remove_expired(all_leased_at + LEASE_DURATION);

    assert_eq!(flow.in_flight.len(), 0);
}

#[test]
fn slow_receivers_use_a_quarter_of_the_capacity_and_those_of_one_store_half_of_it() {
    let (mut flow, _stream) = flow_control(64);
    let stores = [StoreId::new(), StoreId::new()];
    claim_slow(&mut flow, [stores[0]; 8]);
    let budget = flow.claim_budget().unwrap();
    assert_eq!((budget.free_slow, budget.slow_per_store), (8, 8));
    assert_eq!(budget.stores_at_limit().collect::<Vec<_>>(), [stores[0]]);

    claim_slow(&mut flow, [stores[1]; 8]);

    assert_eq!(flow.claim_budget().unwrap().free_slow, 0);
    assert_eq!(fill(&mut flow).len(), 48);
}

#[test]
fn a_closed_stream_has_no_credit() {
    let (mut flow, stream) = flow_control(8);
    let in_flight = fill(&mut flow);

    flow.close(stream.id);
    flow.grant(stream.id, 8);
    flow.return_credit(in_flight[0]);

    assert!(flow.claim_budget().is_none() && flow.next().is_none());
    assert_eq!(fill(&mut flow).len(), 0);
}

#[test]
fn a_claim_is_sent_to_dispatchers_that_read_and_uses_no_credit_of_one_that_does_not() {
    let mut flow = FlowControl::default();
    let mut stalled = open(&mut flow, 10);
    let mut reading = open(&mut flow, 2);
    let full = proto::ReceiveResponse::default();
    stalled.responses.try_send(Ok(full)).unwrap();

    assert_eq!(flow.begin_claim().unwrap().free, 2);
    assert!(pre_lease(&mut flow, WebhookId::new()).is_none(), "reserved");
    let claimed = [(), ()].map(|()| notification(WebhookId::new(), Healthy));
    assert_eq!(flow.send_claimed(claimed), []);

    assert_eq!(reading.leased.try_recv().unwrap().len(), 2);
    assert!(stalled.leased.try_recv().is_err());
}
