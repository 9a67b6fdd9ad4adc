//! `externalReference`: what a store calls its delivery, and no two of its deliveries.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{order, order_with};
use crate::harness::{
    Answer, Platform, Twin,
    assertions::{assert_violations, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";

fn named(reference: &str) -> Value {
    order_with("externalReference", json!(reference))
}

/// Says who has the reference, in a member for programs and in words.
#[track_caller]
fn assert_taken(answer: &Answer, reference: &str, by: &Value) {
    let body = json_ld(answer, 409);
    let iri = by["@id"].as_str().unwrap();
    assert_eq!(body["code"], "external_reference_taken");
    assert_eq!(body["existing"], iri);
    assert_eq!(
        body["hydra:description"],
        format!("the external reference {reference:?} is that of {iri}")
    );
}

on_both_databases! {
    /// "`externalReference` on a delivery, unique per store: a second one → 409 with the IRI of
    /// the existing", also for one that is only asserted, and though it is cancelled.
    async fn a_store_calls_no_two_deliveries_by_one_name(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client().await;

        let first = client.create_delivery(named(" Order 42 ")).await;
        let second = client.post(DELIVERIES, named("Order 42")).await;
        let asserted = other.post("/api/deliveries/assert", named("Order 42")).await;
        let nameless = [client.create_delivery(order()).await, client.create_delivery(order()).await];
        let free = client.post("/api/deliveries/assert", named("order 42")).await.expect(200);
        let another_case = client.create_delivery(named("order 42")).await;
        client.delete(first["@id"].as_str().unwrap()).await.expect(204);
        let after_cancelling = client.post(DELIVERIES, named("Order 42")).await;

        assert_eq!(first["externalReference"], "Order 42");
        let read = client.get(first["@id"].as_str().unwrap()).await.expect(200);
        assert_eq!(read["externalReference"], "Order 42");
        for taken in [&second, &asserted, &after_cancelling] {
            assert_taken(taken, "Order 42", &first);
        }
        for nameless in nameless {
            assert_eq!(nameless["externalReference"], Value::Null);
        }
        for named in [free, another_case] {
            assert_eq!(named["externalReference"], "order 42");
        }
    }

    async fn a_delivery_is_found_by_its_name(platform: &Platform) {
        let client = platform.client().await;
        let mut first = client.create_delivery(named("a b&c/é")).await;
        client.create_delivery(named("another")).await;

        let path = "/api/deliveries?externalReference=a+b%26c%2F%C3%A9";
        let found = json_ld(&client.get(path).await, 200);
        let none = client.get("/api/deliveries?externalReference=a").await.expect(200);

        first.as_object_mut().unwrap().remove("@context");
        assert_eq!(found["hydra:member"], json!([first]));
        assert_eq!(found["hydra:view"]["@id"], path);
        assert_eq!(none["hydra:member"], json!([]));
    }

    async fn another_store_may_use_the_same_name(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let elsewhere = json!({
            "pickup": {"address": {"streetAddress": "A", "latLng": [48.85, 2.35]}},
            "dropoff": named("42")["dropoff"],
            "externalReference": "42",
        });

        client.create_delivery(named("42")).await;
        let theirs = other.create_delivery(elsewhere).await;

        assert_eq!(theirs["externalReference"], "42");
        let found = other.get("/api/deliveries?externalReference=42").await.expect(200);
        assert_eq!(found["hydra:member"][0]["id"], theirs["id"]);
        assert_eq!(found["hydra:member"].as_array().unwrap().len(), 1);
    }

    async fn a_name_that_cannot_be_one_is_a_violation(platform: &Platform) {
        let client = platform.client().await;

        for wrong in [json!(42), json!(["a"]), json!("x".repeat(201)), json!("a\u{1}b")] {
            let order = order_with("externalReference", wrong);
            let answer = client.post(DELIVERIES, order).await;
            assert_violations(&answer, &["externalReference"]);
        }
        for absent in [json!(null), json!(""), json!("  ")] {
            let order = order_with("externalReference", absent);
            let delivery = client.create_delivery(order).await;
            assert_eq!(delivery["externalReference"], Value::Null);
        }
        client.create_delivery(named(&"é".repeat(200))).await;
    }

    async fn of_many_who_want_a_name_at_once_one_gets_it(platform: &Platform) {
        let client = platform.client().await;

        let answers = join_all((0..32).map(|_| client.post(DELIVERIES, named("42")))).await;

        assert_one(&answers);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_want_a_name_at_two_cores_one_gets_it() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let clients = [twins[0].client().await, twins[1].client().await];

    for name in ["a", "b", "c"] {
        let asked = (0..32).map(|turn| clients[turn % 2].post(DELIVERIES, named(name)));
        assert_one(&join_all(asked).await);
    }

    for twin in twins {
        twin.stop().await;
    }
}

#[track_caller]
fn assert_one(answers: &[Answer]) {
    let (created, taken): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(created.len(), 1);
    let reference = created[0].json["externalReference"].as_str().unwrap();
    for taken in taken {
        assert_taken(taken, reference, &created[0].json);
    }
}
