//! Handwritten histories of a quote.

use serde_json::json;

use super::{
    super::linearizability::{
        Operation,
        by_hand::{assert_linearizable, assert_not_linearizable, known, unknown},
    },
    Command::{self, Assert, Create, List},
    Quote, Rejection, Response, using_delivery,
};

const A: &str = "/api/deliveries/01932e5c-9f4a-7000-8000-00000000000a";
const B: &str = "/api/deliveries/01932e5c-9f4a-7000-8000-00000000000b";

fn quote() -> Quote {
    Quote {
        dropoff: "2021-01-01T00:00:00Z".to_owned(),
        iri: "/api/retail_prices/token".to_owned(),
        price: json!(499),
    }
}

fn created_at(delivery: &str, price: u32) -> Response {
    Response::Created {
        delivery: delivery.to_owned(),
        price: price.into(),
    }
}

fn created(delivery: &str) -> Response {
    created_at(delivery, 499)
}

fn rejection(code: &str, delivery: &str) -> Rejection {
    let detail = format!("the retail price was already used for {delivery}; calculate it again");
    Rejection {
        status: 409,
        code: code.to_owned(),
        body: json!({ "detail": detail }).to_string(),
    }
}

fn used(delivery: &str) -> Response {
    Response::Rejected(rejection("price_used", delivery))
}

fn listed(deliveries: &[&str]) -> Response {
    Response::Listed(deliveries.iter().map(ToString::to_string).collect())
}

#[test]
fn of_two_racing_creations_one_uses_the_quote() {
    let race = |second| {
        [
            known(1..=4, Create, created(A)),
            known(2..=3, Create, second),
        ]
    };
    assert_linearizable(&quote(), &race(used(A)));
    assert_not_linearizable(&quote(), &race(created(B)));
    assert_not_linearizable(&quote(), &race(used(B)));
}

#[test]
fn a_delivery_at_another_price_is_an_error() {
    assert_not_linearizable(&quote(), &[known(1..=2, Create, created_at(A, 1999))]);
}

#[test]
fn a_creation_without_a_response_uses_the_quote_late_or_never() {
    let mut history: Vec<Operation<Quote>> =
        vec![unknown(1, Create), known(2..=3, Assert, Response::Accepted)];
    assert_linearizable(&quote(), &history);
    history.push(known(4..=5, Create, created(B)));
    assert_linearizable(&quote(), &history);
    history[2] = known(4..=5, Create, used(A));
    assert_linearizable(&quote(), &history);
    history.push(known(6..=7, List, listed(&[A])));
    assert_linearizable(&quote(), &history);
    history.push(known(8..=9, Assert, Response::Accepted));
    assert_not_linearizable(&quote(), &history);
    assert_not_linearizable(&quote(), &history[1..4]);
}

#[test]
fn cancelling_does_not_release_a_quote() {
    let mut history = vec![
        known(1..=2, Create, created(A)),
        known(3..=4, Command::Cancel(A.to_owned()), Response::Cancelled),
        known(5..=6, Create, used(A)),
    ];
    assert_linearizable(&quote(), &history);
    history[2] = known(5..=6, Create, created(B));
    assert_not_linearizable(&quote(), &history);
}

#[test]
fn a_second_delivery_in_the_list_is_an_error_even_if_no_response_showed_it() {
    let history = |deliveries: &[&str]| {
        [
            unknown(1, Create),
            known(2..=3, Create, created(A)),
            known(4..=5, List, listed(deliveries)),
        ]
    };
    assert_linearizable(&quote(), &history(&[A]));
    assert_not_linearizable(&quote(), &history(&[A, B]));
    assert_not_linearizable(&quote(), &history(&[]));
}

#[test]
fn the_delivery_that_used_a_quote_is_read_from_the_rejection() {
    assert_eq!(
        using_delivery(&rejection("price_used", A)).as_deref(),
        Some(A)
    );
    assert_eq!(using_delivery(&rejection("price_expired", A)), None);
}
