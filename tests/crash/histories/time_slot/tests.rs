//! Handwritten histories of a time slot with a capacity of two.

use serde_json::json;

use super::{
    super::{
        answer::Rejection,
        linearizability::{
            Operation,
            by_hand::{assert_linearizable, assert_not_linearizable, known, unknown},
        },
    },
    CAPACITY,
    Command::{self, Assert, Create, List},
    DEFINITION, Response, Slot,
};

fn slot() -> Slot {
    Slot("2021-01-01T12:00:00Z/2021-01-01T13:00:00Z".to_owned())
}

fn created(iri: &str) -> Response {
    Response::Created(iri.to_owned())
}

fn cancel(iri: &str) -> Command {
    Command::Cancel(iri.to_owned())
}

/// The slot is full.
fn refused() -> Response {
    refused_because("full, its capacity of 2 is booked")
}

fn refused_because(message: &str) -> Response {
    let violation = json!({
        "propertyPath": "dropoff.timeSlot",
        "code": "time_slot_refused",
        "message": message,
    });
    Response::Rejected(Rejection {
        status: 400,
        code: "time_slot_refused".to_owned(),
        body: json!({ "violations": [violation] }).to_string(),
    })
}

fn listed(iris: &[&str]) -> Response {
    Response::Listed(iris.iter().map(ToString::to_string).collect())
}

/// Two deliveries, from 1 to 4.
fn full() -> Vec<Operation<Slot>> {
    vec![
        known(1..=2, Create, created("a")),
        known(3..=4, Create, created("b")),
    ]
}

#[test]
fn the_model_has_the_definitions_capacity() {
    assert!(DEFINITION.contains(&format!("\ncapacity = {CAPACITY}\n")));
}

#[test]
fn a_third_booking_exceeds_a_capacity_of_two() {
    let mut history = full();
    history.push(known(5..=6, Create, refused()));
    history.push(known(7..=8, Assert, refused()));
    assert_linearizable(&slot(), &history);
    for (time, command, response) in [
        (9..=10, Create, created("c")),
        (9..=10, Assert, Response::Accepted),
        (1..=10, Create, created("c")),
    ] {
        history.push(known(time, command, response));
        assert_not_linearizable(&slot(), &history);
        history.pop();
    }
}

#[test]
fn a_refusal_for_another_reason_is_an_error() {
    let mut history = full();
    history.push(known(5..=6, Create, refused_because("closed")));
    assert_not_linearizable(&slot(), &history);
}

#[test]
fn a_refusal_while_there_is_capacity_is_an_error() {
    let history = |time| {
        let mut history = full();
        history.push(known(time, Create, refused()));
        history
    };
    assert_not_linearizable(&slot(), &history(2..=2));
    assert_linearizable(&slot(), &history(2..=4));
    let mut released = history(8..=9);
    released.push(known(5..=6, cancel("a"), Response::Cancelled));
    assert_not_linearizable(&slot(), &released);
    released.push(known(7..=9, Create, created("c")));
    assert_linearizable(&slot(), &released);
}

#[test]
fn a_cancellation_releases_one_booking_once() {
    let mut history = full();
    history.push(known(5..=6, cancel("a"), Response::Cancelled));
    history.push(known(7..=8, cancel("a"), Response::Cancelled));
    history.push(known(9..=10, Create, created("c")));
    history.push(known(11..=12, List, listed(&["c", "b"])));
    assert_linearizable(&slot(), &history);
    history.push(known(13..=14, Create, created("d")));
    assert_not_linearizable(&slot(), &history);
}

#[test]
fn a_creation_without_a_response_books_late_or_never() {
    let mut history = full();
    history.push(unknown(1, Create));
    assert_linearizable(&slot(), &history);
    history.push(known(5..=6, cancel("a"), Response::Cancelled));
    history.push(known(7..=8, Assert, Response::Accepted));
    assert_linearizable(&slot(), &history);
    history.push(known(9..=10, Create, refused()));
    assert_linearizable(&slot(), &history);
    history.push(known(11..=12, List, listed(&["b", "c"])));
    assert_linearizable(&slot(), &history);
    history.push(known(13..=14, cancel("c"), Response::Cancelled));
    history.push(known(15..=16, Create, refused()));
    assert_not_linearizable(&slot(), &history);
}

#[test]
fn a_list_shows_exactly_the_deliveries_that_are_booked() {
    let list = |iris: &[&str]| {
        let mut history = full();
        history.push(known(5..=6, List, listed(iris)));
        history
    };
    assert_linearizable(&slot(), &list(&["b", "a"]));
    for iris in [&["a"][..], &["a", "b", "c"], &["a", "c"], &["a", "a"]] {
        assert_not_linearizable(&slot(), &list(iris));
    }
}

/// The list names "c", which is not the delivery of the creation without a response.
#[test]
fn a_delivery_listed_before_its_own_response_is_not_that_of_another_creation() {
    let mut history = vec![
        unknown(1, Create),
        known(2..=9, Create, created("c")),
        known(3..=4, List, listed(&["c"])),
        known(5..=6, cancel("c"), Response::Cancelled),
    ];
    assert_linearizable(&slot(), &history);
    history.push(known(10..=11, List, listed(&["c"])));
    assert_not_linearizable(&slot(), &history);
}
