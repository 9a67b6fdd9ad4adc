//! Handwritten histories of an idempotency key.

use super::{
    super::{
        answer::Rejection,
        linearizability::{
            Operation,
            by_hand::{assert_linearizable, assert_not_linearizable, known, unknown},
        },
    },
    Body::{self, RingOnce, RingTwice},
    Command::{Create, List},
    Created, IdempotencyKey, Response,
};

fn key() -> IdempotencyKey {
    IdempotencyKey {
        key: "order-1042".to_owned(),
        dropoff: "2021-01-01T00:00:00Z".to_owned(),
    }
}

/// A delivery with a body's comment.
fn created(iri: &str, body: Body) -> Response {
    Response::Created(Created {
        iri: iri.to_owned(),
        comments: body.comments().into(),
        body: format!("{iri} {body:?}"),
    })
}

fn listed(iris: &[&str]) -> Response {
    Response::Listed(iris.iter().map(ToString::to_string).collect())
}

fn reused() -> Response {
    Response::Rejected(Rejection {
        status: 422,
        code: "idempotency_key_reused".to_owned(),
        body: String::new(),
    })
}

#[test]
fn two_deliveries_created_with_one_key_are_an_error() {
    let creations = |second| {
        [
            known(1..=4, Create(RingOnce), created("a", RingOnce)),
            known(2..=3, Create(RingOnce), created(second, RingOnce)),
        ]
    };
    assert_linearizable(&key(), &creations("a"));
    assert_not_linearizable(&key(), &creations("b"));
}

#[test]
fn a_second_delivery_in_the_list_is_an_error_even_if_no_response_showed_it() {
    let list = |iris: &[&str]| {
        [
            unknown(1, Create(RingOnce)),
            known(2..=3, Create(RingOnce), created("a", RingOnce)),
            known(4..=5, List, listed(iris)),
        ]
    };
    assert_linearizable(&key(), &list(&["a"]));
    assert_not_linearizable(&key(), &list(&["a", "b"]));
    assert_not_linearizable(&key(), &list(&["b"]));
    assert_not_linearizable(&key(), &list(&[]));
}

#[test]
fn another_body_is_rejected_once_the_key_is_used_and_only_then() {
    let history = |second| {
        [
            known(1..=2, Create(RingOnce), created("a", RingOnce)),
            known(3..=4, Create(RingTwice), second),
        ]
    };
    assert_linearizable(&key(), &history(reused()));
    assert_not_linearizable(&key(), &history(created("a", RingOnce)));
    assert_not_linearizable(&key(), &history(created("b", RingTwice)));
    assert_not_linearizable(&key(), &[known(1..=2, Create(RingOnce), reused())]);
}

#[test]
fn the_response_has_the_comment_that_was_sent() {
    let other = [known(1..=2, Create(RingOnce), created("a", RingTwice))];
    assert_not_linearizable(&key(), &other);
}

#[test]
fn a_creation_without_a_response_uses_the_key_late_or_never() {
    let mut history: Vec<Operation<IdempotencyKey>> = vec![
        unknown(1, Create(RingOnce)),
        known(2..=3, List, listed(&[])),
    ];
    assert_linearizable(&key(), &history);
    history.push(known(4..=5, Create(RingTwice), created("b", RingTwice)));
    assert_linearizable(&key(), &history);
    history[2] = known(4..=5, Create(RingTwice), reused());
    assert_linearizable(&key(), &history);
    history.push(known(6..=7, List, listed(&["a"])));
    history.push(known(8..=9, Create(RingOnce), created("a", RingOnce)));
    assert_linearizable(&key(), &history);
    history.push(known(10..=11, List, listed(&[])));
    assert_not_linearizable(&key(), &history);
}
