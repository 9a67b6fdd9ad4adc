//! A price is a promise: `"retailPrice": "<@id>"` of an order is charged exactly that, once.

use std::time::Duration;

use futures_util::future::join_all;
use hyper::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{CALCULATE, fixed_price, order};
use crate::harness::{
    Answer, ApiClient, Platform, Twin,
    assertions::{assert_error, assert_violations, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";
const ASSERT: &str = "/api/deliveries/assert";

on_both_databases! {
    /// "The delivery is charged exactly that", whatever the price list says by then; without a
    /// promise, by the list in force.
    async fn a_delivery_is_charged_what_it_was_promised(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 499))
            .await;
        let promise = promise(&client, &order()).await;
        let strict = fixed_price("EUR", 2000, 1999) + "\n[packages]\nXL = {}\n";
        operator.apply_price_list(&platform.store, &strict).await;
        platform.advance(SignedDuration::from_secs(14 * 60 + 59));

        let preview = json_ld(&client.post(ASSERT, at_price(&order(), promise.as_str())).await, 200);
        let promised = client.create_delivery(at_price(&order(), promise.as_str())).await;
        let other = client.create_delivery(order()).await;

        let price = |amount, tax, promise| json!({
            "amount": amount,
            "currency": "EUR",
            "tax": { "amount": tax, "included": true },
            "retailPrice": promise,
        });
        assert_eq!(preview["price"], price(499, 83, Some(&promise)));
        assert_eq!(promised["price"], price(499, 83, Some(&promise)));
        assert_eq!(other["price"], price(1999, 333, None));
        for delivery in [&promised, &other] {
            let read = client.get(delivery["@id"].as_str().unwrap()).await;
            assert_eq!(json_ld(&read, 200), *delivery);
        }
    }

    /// "Expired, used, another store's, or for a different payload: its own error code each."
    async fn a_promise_is_kept_once(platform: &Platform) {
        let client = platform.client().await;
        let promise = promise(&client, &order()).await;

        let delivery = client.create_delivery(at_price(&order(), promise.as_str())).await;

        for path in [DELIVERIES, ASSERT] {
            let again = client.post(path, at_price(&order(), promise.as_str())).await;
            assert_refusal(&again, "price_used");
            let detail = again.json["detail"].as_str().unwrap();
            assert!(detail.contains(delivery["@id"].as_str().unwrap()), "{detail}");
        }
        // It is given up with its delivery, not given back.
        client.delete(delivery["@id"].as_str().unwrap()).await.expect(204);
        let again = client.post(DELIVERIES, at_price(&order(), promise.as_str())).await;
        assert_refusal(&again, "price_used");
        assert_eq!(count(&client).await, 1);
        assert_eq!(client.get(&promise).await.status, 200);
    }

    async fn an_expired_promise_is_not_kept(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let short = fixed_price("EUR", 2000, 499).replace("15 minutes", "90 seconds");
        operator.apply_price_list(&platform.store, &short).await;
        let promise = promise(&client, &order()).await;
        platform.advance(SignedDuration::from_secs(90));
        let mut wrong = at_price(&order(), promise.as_str());
        wrong["dropoff"]["before"] = json!("no time at all");

        for path in [DELIVERIES, ASSERT] {
            let late = client.post(path, at_price(&order(), promise.as_str())).await;
            assert_refusal(&late, "price_expired");
            // What else is wrong is said with it.
            let answer = client.post(path, wrong.clone()).await;
            assert_violations(&answer, &["dropoff.before", "retailPrice"]);
        }
        assert_eq!(count(&client).await, 0);
        assert_error(&client.get(&promise).await, 404);
    }

    /// "A forged, altered or foreign promise is never honoured", and all are told alike.
    async fn a_promise_nobody_gave_is_not_kept(platform: &Platform) {
        let client = platform.client().await;
        let own = promise(&client, &order()).await;
        let other = platform.client_of_a_new_store().await;
        let mut messages = Vec::new();

        let mut forged: Vec<_> = ["", "/", "/api/retail_prices/", "/api/retail_prices/AAAA"]
            .map(str::to_owned)
            .to_vec();
        forged.push(own.replace("/api/retail_prices/", "/api/deliveries/"));
        forged.extend(altered(&own));
        for promise in forged {
            let answer = client.post(DELIVERIES, at_price(&order(), promise.as_str())).await;
            assert_violations(&answer, &["retailPrice"]);
            messages.push(answer.json["violations"].clone());
        }
        let foreign = other.post(DELIVERIES, at_price(&order(), own.as_str())).await;
        assert_violations(&foreign, &["retailPrice"]);
        messages.push(foreign.json["violations"].clone());

        messages.dedup();
        assert_eq!(messages.len(), 1, "{messages:?}");
        let number = client.post(DELIVERIES, at_price(&order(), json!(5))).await;
        assert_violations(&number, &["retailPrice"]);
        assert_eq!((count(&client).await, count(&other).await), (0, 0));
    }

    /// "`price_mismatch` naming what differs."
    async fn a_promise_is_for_what_was_priced_and_nothing_else(platform: &Platform) {
        let client = platform.client().await;
        let mut priced = order();
        priced["dropoff"]["weight"] = json!(1000);
        let promise = promise(&client, &priced).await;
        let cases: [(&str, Value, &str); 11] = [
            ("/dropoff/address/latLng", json!([48.8558, 2.3561]), "dropoff.address"),
            ("/dropoff/address/streetAddress", json!("50 Rue de Rivoli"), "dropoff.address"),
            ("/dropoff/address/postalCode", json!("75004"), "dropoff.address"),
            ("/pickup/address/latLng", json!([48.8567, 2.3530]), "pickup.address"),
            ("/dropoff/before", json!("2020-04-03 13:01"), "dropoff.before"),
            ("/dropoff/after", json!("2020-04-03 12:00"), "dropoff.after"),
            ("/pickup/before", json!("2020-04-03 12:00"), "pickup.before"),
            ("/dropoff/weight", json!(1001), "dropoff.weight"),
            ("/dropoff/weight", Value::Null, "dropoff.weight"),
            ("/dropoff/packages", json!([{ "type": "XL", "quantity": 1 }]), "dropoff.packages"),
            ("/pickup/tags", json!(["cold"]), "pickup.tags"),
        ];

        for (member, value, path) in cases {
            let mut other = priced.clone();
            set(&mut other, member, value);
            for resource in [DELIVERIES, ASSERT] {
                let answer = client.post(resource, at_price(&other, promise.as_str())).await;
                assert_violations(&answer, &[path]);
                assert_eq!(answer.json["code"], "price_mismatch", "{member}");
            }
        }
        let mut slot = priced.clone();
        set(&mut slot, "/dropoff/timeSlot", json!("2020-04-03 12:45-13:00"));
        let answer = client.post(DELIVERIES, at_price(&slot, promise.as_str())).await;
        assert_violations(&answer, &["dropoff.timeSlot"]);

        // Shops often know whom to ask for only after the price.
        for (member, value) in [
            ("/dropoff/address/contactName", json!("Ada")),
            ("/dropoff/address/telephone", json!("0612345678")),
            ("/dropoff/address/description", json!("2nd floor")),
            ("/dropoff/comments", json!("Ring twice")),
            ("/dropoff/metadata", json!({ "order": "42" })),
        ] {
            set(&mut priced, member, value);
        }
        client.create_delivery(at_price(&priced, promise.as_str())).await;
        assert_eq!(count(&client).await, 1);
    }

    /// The same payload is the same order, though "tomorrow" has become another day by then.
    async fn relative_times_are_read_as_when_the_price_was_calculated(platform: &Platform) {
        platform.advance(SignedDuration::from_mins(12 * 60 + 50));
        let client = platform.client().await;
        let mut order = order();
        for (before, expected) in [
            ("tomorrow 13:00", "2020-04-03T13:00:00+02:00"),
            ("in 2 hours", "2020-04-03T02:04:00+02:00"),
        ] {
            order["dropoff"]["before"] = json!(before);
            let promise = promise(&client, &order).await;
            platform.advance(SignedDuration::from_mins(14));

            let promised = client.create_delivery(at_price(&order, promise.as_str())).await;
            let other = client.create_delivery(order.clone()).await;

            assert_eq!(promised["dropoff"]["before"], expected);
            assert_ne!(other["dropoff"]["before"], expected);
            assert_eq!(promised["price"]["retailPrice"], json!(promise));
        }
    }

    /// A repeat under the same `Idempotency-Key` is the same order, not a second use.
    async fn an_order_that_is_repeated_under_its_key_keeps_its_promise(platform: &Platform) {
        let client = platform.client().await;
        let promise = promise(&client, &order()).await;
        let order = at_price(&order(), promise.as_str()).to_string();
        let send = async || {
            let request = client.request(Method::POST, DELIVERIES);
            let request = request.header("idempotency-key", "order 42");
            client.send(request, order.clone()).await
        };

        let first = json_ld(&send().await, 201);
        let again = json_ld(&send().await, 201);

        assert_eq!(again, first);
        assert_eq!(first["price"]["retailPrice"], json!(promise));
        assert_eq!(count(&client).await, 1);
    }

    async fn one_of_many_that_claim_a_promise_at_once_has_it(platform: &Platform) {
        let client = platform.client().await;
        let promise = promise(&client, &order()).await;

        let clients = vec![client.clone(); 64];

        assert_one_has(&promise, &clients).await;
    }
}

/// As above, with two cores over one database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_that_claim_a_promise_at_two_cores_has_it() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let [first, second] = &twins;
    let (first, second) = tokio::join!(first.client(), second.client());
    let promise = promise(&first, &order()).await;

    let clients: Vec<_> = (0..32)
        .flat_map(|_| [first.clone(), second.clone()])
        .collect();

    assert_one_has(&promise, &clients).await;
    for twin in twins {
        twin.stop().await;
    }
}

/// What is applied at one core prices at once what is created at any other; prices that are only
/// told follow within a second. A promise is kept whichever list it came from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_applied_at_one_core_is_in_force_at_another() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let [first, second] = &twins;
    let (here, there) = tokio::join!(first.client(), second.client());
    let operator = first.operator().await;
    let apply = |amount| {
        let (operator, store) = (&operator, &first.store);
        async move {
            let list = fixed_price("EUR", 2000, amount);
            operator.apply_price_list(store, &list).await;
        }
    };

    apply(499).await;
    assert_eq!(told(&here).await, 499);
    until_told(&there, 499).await;
    let promised = promise(&there, &order()).await;
    apply(1999).await;

    assert_eq!(told(&here).await, 1999);
    assert_eq!(charged(&there, &order()).await, 1999);
    assert_eq!(charged(&there, &at_price(&order(), promised)).await, 499);
    until_told(&there, 1999).await;
    for twin in twins {
        twin.stop().await;
    }
}

async fn told(client: &ApiClient) -> i64 {
    let price = client.post(CALCULATE, order()).await.expect(200);
    price["amount"].as_i64().unwrap()
}

/// Asks until the answer is the one expected; generous, as much else may run on this machine.
async fn until_told(client: &ApiClient, amount: i64) {
    let asking = async { while told(client).await != amount {} };
    tokio::time::timeout(Duration::from_secs(30), asking)
        .await
        .unwrap_or_else(|_| panic!("{amount} is never told"));
}

async fn charged(client: &ApiClient, order: &Value) -> i64 {
    let delivery = client.create_delivery(order.clone()).await;
    delivery["price"]["amount"].as_i64().unwrap()
}

async fn assert_one_has(promise: &str, clients: &[ApiClient]) {
    let order = at_price(&order(), promise);
    let answers = join_all(
        clients
            .iter()
            .map(|client| client.post(DELIVERIES, order.clone())),
    )
    .await;

    let (created, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(created.len(), 1, "{answers:?}");
    for answer in refused {
        assert_refusal(answer, "price_used");
    }
    assert_eq!(count(&clients[0]).await, 1);
}

/// The `@id` of an order's price.
async fn promise(client: &ApiClient, order: &Value) -> String {
    let price = client.post(CALCULATE, order.clone()).await.expect(200);
    price["@id"].as_str().unwrap().to_owned()
}

/// An order that is to cost what was promised.
fn at_price(order: &Value, promise: impl Into<Value>) -> Value {
    let mut order = order.clone();
    order["retailPrice"] = promise.into();
    order
}

/// A promise with each time one letter of its token another.
fn altered(promise: &str) -> Vec<String> {
    let start = "/api/retail_prices/".len();
    (start..promise.len())
        .step_by(17)
        .map(|at| {
            let letter = if promise.as_bytes()[at] == b'A' {
                "B"
            } else {
                "A"
            };
            format!("{}{letter}{}", &promise[..at], &promise[at + 1..])
        })
        .collect()
}

fn set(order: &mut Value, member: &str, value: Value) {
    let (parent, name) = member.rsplit_once('/').unwrap();
    order.pointer_mut(parent).unwrap()[name] = value;
}

async fn count(client: &ApiClient) -> usize {
    let page = client.get(DELIVERIES).await.expect(200);
    page["hydra:member"].as_array().unwrap().len()
}

#[track_caller]
fn assert_refusal(answer: &Answer, code: &str) {
    assert_error(answer, 409);
    assert_eq!(answer.json["code"], code, "{}", answer.json);
}
