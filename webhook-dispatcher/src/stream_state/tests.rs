use super::*;

fn notifications(count: usize) -> Vec<Notification> {
    vec![Notification::default(); count]
}

fn outcome(number: usize) -> Outcome {
    Outcome {
        name: format!("notifications/{number}"),
        lease_token: format!("lease-{number}"),
        ..Outcome::default()
    }
}

fn ack(number: usize) -> Ack {
    Ack {
        name: format!("notifications/{number}"),
        lease_token: format!("lease-{number}"),
    }
}

fn leased_outcome(number: usize) -> LeasedOutcome {
    LeasedOutcome {
        outcome: outcome(number),
        lease_expires_at: None,
    }
}

/// The state of a stream whose whole limit is granted as credit.
fn state(limit: usize) -> StreamState {
    let mut state = StreamState::new(limit);
    assert_eq!(state.next_request(true).credit as usize, limit);
    state
}

#[test]
fn credit_is_granted_again_with_the_outcome() {
    let mut state = state(3);
    assert!(!state.has_request(true));

    state.accept(&notifications(2)).unwrap();
    assert!(!state.has_request(true));
    state.complete(Some(leased_outcome(1)));

    assert_eq!(
        state.next_request(true),
        StreamRequest {
            credit: 1,
            outcomes: vec![outcome(1)],
            ..StreamRequest::default()
        }
    );
    assert!(!state.has_request(true));
}

#[test]
fn notifications_beyond_the_credit_are_rejected_together() {
    let mut state = state(3);
    state.accept(&notifications(2)).unwrap();
    assert_eq!(
        state.accept(&notifications(2)),
        Err(CreditExceeded { sent: 2, credit: 1 })
    );
    assert_eq!(state.accept(&notifications(1)), Ok(()));
}

#[test]
fn unacknowledged_outcomes_are_taken_and_a_new_stream_counts_sends_in_flight() {
    let mut state = state(5);
    state.accept(&notifications(4)).unwrap();
    for number in 1..=2 {
        state.complete(Some(leased_outcome(number)));
    }
    state.next_request(true);
    state.acknowledge(ack(1));
    state.complete(Some(leased_outcome(3)));

    let mut unacknowledged = state.take_unacknowledged();
    state.begin_stream();

    unacknowledged.sort_by(|a, b| a.outcome.name.cmp(&b.outcome.name));
    assert_eq!(unacknowledged, [leased_outcome(2), leased_outcome(3)]);
    assert_eq!(
        state.next_request(true),
        StreamRequest {
            credit: 4,
            ..StreamRequest::default()
        }
    );
    assert!(!state.is_drained(), "one is in flight");
    state.complete(None);
    assert!(state.is_drained());
}

#[test]
fn outcomes_of_other_sessions_are_reported_and_acknowledged() {
    let mut state = state(2);
    assert_eq!(
        state.spare_capacity(),
        6,
        "granted credit reserves capacity"
    );

    state.enqueue((0..6).map(leased_outcome));

    assert_eq!(state.spare_capacity(), 0);
    assert_eq!(state.next_request(true).outcomes.len(), 6);
    assert!(state.all_reported() && !state.is_drained());
    for number in 0..6 {
        state.acknowledge(ack(number));
    }
    assert!(state.is_drained());
}

#[test]
fn a_declined_notification_uses_credit_and_is_not_in_flight() {
    let mut state = state(2);
    state.decline(&notifications(2)).unwrap();
    assert!(state.is_drained());
    assert_eq!(
        state.decline(&notifications(1)),
        Err(CreditExceeded { sent: 1, credit: 0 })
    );
}

#[test]
fn no_credit_is_granted_while_not_accepting() {
    let mut state = state(2);
    state.accept(&notifications(1)).unwrap();
    assert!(!state.all_reported());
    state.complete(Some(leased_outcome(1)));

    let request = state.next_request(false);

    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert!(!state.has_request(false));
    assert!(state.all_reported() && !state.is_drained());
    state.acknowledge(ack(1));
    assert!(state.is_drained());
}

#[test]
fn credit_is_limited_for_a_core_that_acknowledges_nothing() {
    let mut state = state(2);
    let mut sent = 0;
    let mut granted = 2;
    while granted > 0 {
        state.accept(&notifications(granted)).unwrap();
        for _ in 0..granted {
            sent += 1;
            state.complete(Some(leased_outcome(sent)));
        }
        granted = state.next_request(true).credit as usize;
    }
    assert_eq!(sent, 8);

    state.acknowledge(ack(1));
    assert_eq!(state.next_request(true).credit, 1);
}

#[test]
fn a_message_contains_a_limited_number_of_outcomes() {
    let mut state = state(300);
    state.accept(&notifications(300)).unwrap();
    for number in 0..300 {
        state.complete(Some(leased_outcome(number)));
    }
    let sizes: Vec<_> = (0..4)
        .map(|_| state.next_request(true).outcomes.len())
        .collect();
    assert_eq!(sizes, [128, 128, 44, 0]);
}

#[test]
fn a_new_limit_applies_to_the_next_credit() {
    let mut state = state(2);
    state.set_limit(5);
    assert_eq!(state.next_request(true).credit, 3);

    state.set_limit(1);
    state.accept(&notifications(5)).unwrap();
    for number in 0..4 {
        state.complete(Some(leased_outcome(number)));
        state.acknowledge(ack(number));
        assert_eq!(state.next_request(true).credit, 0);
    }
    state.complete(Some(leased_outcome(4)));
    state.acknowledge(ack(4));
    assert_eq!(state.next_request(true).credit, 1);
}

#[test]
fn a_panicked_send_frees_its_capacity() {
    let mut state = state(1);
    state.accept(&notifications(1)).unwrap();
    state.complete(None);
    assert_eq!(state.next_request(true).credit, 1);
    assert!(state.all_reported());
}
