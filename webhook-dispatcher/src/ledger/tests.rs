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

fn recorded(number: usize) -> Recorded {
    Recorded {
        name: format!("notifications/{number}"),
        lease_token: format!("lease-{number}"),
    }
}

fn report(number: usize) -> Report {
    Report {
        outcome: outcome(number),
        until: None,
    }
}

/// A ledger on a stream, its whole limit granted.
fn ledger(limit: usize) -> Ledger {
    let mut ledger = Ledger::new(limit);
    assert_eq!(ledger.next_request(true).credit as usize, limit);
    ledger
}

#[test]
fn credit_comes_back_with_the_outcome() {
    let mut ledger = ledger(3);
    assert!(!ledger.has_request(true));

    ledger.take(&notifications(2)).unwrap();
    assert!(!ledger.has_request(true));
    ledger.finish(Some(report(1)));

    assert_eq!(
        ledger.next_request(true),
        StreamRequest {
            credit: 1,
            outcomes: vec![outcome(1)],
            ..StreamRequest::default()
        }
    );
    assert!(!ledger.has_request(true));
}

#[test]
fn more_than_the_credit_is_refused_whole() {
    let mut ledger = ledger(3);
    ledger.take(&notifications(2)).unwrap();
    assert_eq!(
        ledger.take(&notifications(2)),
        Err(CreditExceeded { sent: 2, credit: 1 })
    );
    assert_eq!(ledger.take(&notifications(1)), Ok(()));
}

#[test]
fn without_a_stream_the_unconfirmed_is_given_back_and_the_next_counts_what_is_in_flight() {
    let mut ledger = ledger(5);
    ledger.take(&notifications(4)).unwrap();
    for number in 1..=2 {
        ledger.finish(Some(report(number)));
    }
    ledger.next_request(true);
    ledger.record(recorded(1));
    ledger.finish(Some(report(3)));

    let mut unconfirmed = ledger.give_back();
    ledger.begin_stream();

    unconfirmed.sort_by(|one, other| one.outcome.name.cmp(&other.outcome.name));
    assert_eq!(unconfirmed, [report(2), report(3)]);
    assert_eq!(
        ledger.next_request(true),
        StreamRequest {
            credit: 4,
            ..StreamRequest::default()
        }
    );
    assert!(!ledger.is_settled(), "one is in flight");
    ledger.finish(None);
    assert!(ledger.is_settled());
}

#[test]
fn what_others_sent_is_reported_and_confirmed_as_ones_own() {
    let mut ledger = ledger(2);
    assert_eq!(ledger.room(), 6, "what credit may bring has its place");

    ledger.adopt((0..6).map(report));

    assert_eq!(ledger.room(), 0);
    assert_eq!(ledger.next_request(true).outcomes.len(), 6);
    assert!(ledger.is_reported() && !ledger.is_settled());
    for number in 0..6 {
        ledger.record(recorded(number));
    }
    assert!(ledger.is_settled());
}

#[test]
fn what_is_declined_uses_credit_and_is_not_in_flight() {
    let mut ledger = ledger(2);
    ledger.decline(&notifications(2)).unwrap();
    assert!(ledger.is_settled());
    assert_eq!(
        ledger.decline(&notifications(1)),
        Err(CreditExceeded { sent: 1, credit: 0 })
    );
}

#[test]
fn nothing_is_granted_while_not_accepting() {
    let mut ledger = ledger(2);
    ledger.take(&notifications(1)).unwrap();
    assert!(!ledger.is_reported());
    ledger.finish(Some(report(1)));

    let request = ledger.next_request(false);

    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert!(!ledger.has_request(false));
    assert!(ledger.is_reported() && !ledger.is_settled());
    ledger.record(recorded(1));
    assert!(ledger.is_settled());
}

#[test]
fn a_core_that_records_nothing_gets_no_endless_credit() {
    let mut ledger = ledger(2);
    let mut sent = 0;
    let mut granted = 2;
    while granted > 0 {
        ledger.take(&notifications(granted)).unwrap();
        for _ in 0..granted {
            sent += 1;
            ledger.finish(Some(report(sent)));
        }
        granted = ledger.next_request(true).credit as usize;
    }
    assert_eq!(sent, 8);

    ledger.record(recorded(1));
    assert_eq!(ledger.next_request(true).credit, 1);
}

#[test]
fn a_message_holds_a_bounded_number_of_outcomes() {
    let mut ledger = ledger(300);
    ledger.take(&notifications(300)).unwrap();
    for number in 0..300 {
        ledger.finish(Some(report(number)));
    }
    let sizes: Vec<_> = (0..4)
        .map(|_| ledger.next_request(true).outcomes.len())
        .collect();
    assert_eq!(sizes, [128, 128, 44, 0]);
}

#[test]
fn a_new_limit_holds_for_what_is_granted_next() {
    let mut ledger = ledger(2);
    ledger.set_limit(5);
    assert_eq!(ledger.next_request(true).credit, 3);

    ledger.set_limit(1);
    ledger.take(&notifications(5)).unwrap();
    for number in 0..4 {
        ledger.finish(Some(report(number)));
        ledger.record(recorded(number));
        assert_eq!(ledger.next_request(true).credit, 0);
    }
    ledger.finish(Some(report(4)));
    ledger.record(recorded(4));
    assert_eq!(ledger.next_request(true).credit, 1);
}

#[test]
fn a_lost_send_gives_its_place_back() {
    let mut ledger = ledger(1);
    ledger.take(&notifications(1)).unwrap();
    ledger.finish(None);
    assert_eq!(ledger.next_request(true).credit, 1);
    assert!(ledger.is_reported());
}
