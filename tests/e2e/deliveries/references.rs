//! `externalReference`: unique among a store's deliveries.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{draft, draft_with};
use crate::harness::{
    Platform, Response,
    assertions::{assert_violations, json_ld},
    definitions::PRICE_LIST,
};

const DELIVERIES: &str = "/api/deliveries";
const ASSERT: &str = "/api/deliveries/assert";

fn draft_with_reference(reference: &str) -> Value {
    draft_with("externalReference", json!(reference))
}

/// Checks that the error names the existing delivery in `existing` and in its description.
#[track_caller]
fn assert_taken(response: &Response, reference: &str, existing: &Value) {
    let body = json_ld(response, 409);
    let iri = existing["@id"].as_str().unwrap();
    assert_eq!(body["code"], "external_reference_taken");
    assert_eq!(body["existing"], iri);
    assert_eq!(
        body["hydra:description"],
        format!("the external reference {reference:?} is already used by {iri}")
    );
}

on_both_databases! {
    /// A second delivery with the same reference is rejected with 409 and the IRI of the existing
    /// delivery, by create and by assert, even if the existing one is cancelled.
    async fn an_external_reference_is_unique_in_its_store(platform: &Platform) {
        let client = platform.client().await;
        let same_store = platform.client().await;

        let first = client.create_delivery(draft_with_reference(" Order 42 ")).await;
        let second = client.post(DELIVERIES, draft_with_reference("Order 42")).await;
        let asserted = same_store.post(ASSERT, draft_with_reference("Order 42")).await;
        let without_reference = [client.create_delivery(draft()).await, client.create_delivery(draft()).await];
        let free = client.post(ASSERT, draft_with_reference("order 42")).await.expect(200);
        let another_case = client.create_delivery(draft_with_reference("order 42")).await;
        client.delete(first["@id"].as_str().unwrap()).await.expect(204);
        let after_cancelling = client.post(DELIVERIES, draft_with_reference("Order 42")).await;

        assert_eq!(first["externalReference"], "Order 42");
        let read = client.get(first["@id"].as_str().unwrap()).await.expect(200);
        assert_eq!(read["externalReference"], "Order 42");
        for taken in [&second, &asserted, &after_cancelling] {
            assert_taken(taken, "Order 42", &first);
        }
        for delivery in without_reference {
            assert_eq!(delivery["externalReference"], Value::Null);
        }
        for delivery in [free, another_case] {
            assert_eq!(delivery["externalReference"], "order 42");
        }
    }

    async fn a_delivery_is_found_by_its_external_reference(platform: &Platform) {
        let client = platform.client().await;
        let mut first = client.create_delivery(draft_with_reference("a b&c/é")).await;
        client.create_delivery(draft_with_reference("another")).await;

        let path = "/api/deliveries?externalReference=a+b%26c%2F%C3%A9";
        let found = json_ld(&client.get(path).await, 200);
        let none = client.get("/api/deliveries?externalReference=a").await.expect(200);

        first.as_object_mut().unwrap().remove("@context");
        assert_eq!(found["hydra:member"], json!([first]));
        assert_eq!(found["hydra:view"]["@id"], path);
        assert_eq!(none["hydra:member"], json!([]));
    }

    /// Neither assert nor calculate nor create finds a reference of another store.
    async fn another_store_may_use_the_same_external_reference(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let store = operator.create_store("Another shop").await;
        operator.apply_price_list(&store, PRICE_LIST).await;
        let credentials = operator.create_client(&store, &["deliveries"]).await;
        let other = platform.client_for(&credentials, &["deliveries"]).await;
        let elsewhere = json!({
            "pickup": {"address": {"streetAddress": "A", "latLng": [48.85, 2.35]}},
            "dropoff": draft_with_reference("42")["dropoff"],
            "externalReference": "42",
        });

        client.create_delivery(draft_with_reference("42")).await;
        let asserted = other.post("/api/deliveries/assert", elsewhere.clone()).await.expect(200);
        let price = other.post("/api/retail_prices/calculate", elsewhere.clone()).await.expect(200);
        let other_delivery = other.create_delivery(elsewhere).await;

        assert_eq!(asserted["externalReference"], "42");
        assert_eq!(price["amount"], 499);
        assert_eq!(other_delivery["externalReference"], "42");
        let found = other.get("/api/deliveries?externalReference=42").await.expect(200);
        assert_eq!(found["hydra:member"][0]["id"], other_delivery["id"]);
        assert_eq!(found["hydra:member"].as_array().unwrap().len(), 1);
    }

    async fn an_invalid_external_reference_is_a_violation(platform: &Platform) {
        let client = platform.client().await;

        for invalid in [json!(42), json!(["a"]), json!("x".repeat(201)), json!("a\u{1}b")] {
            let draft = draft_with("externalReference", invalid);
            let response = client.post(DELIVERIES, draft).await;
            assert_violations(&response, &["externalReference"]);
        }
        for absent in [json!(null), json!(""), json!("  ")] {
            let draft = draft_with("externalReference", absent);
            let delivery = client.create_delivery(draft).await;
            assert_eq!(delivery["externalReference"], Value::Null);
        }
        client.create_delivery(draft_with_reference(&"é".repeat(200))).await;
    }

    async fn only_one_of_concurrent_creates_with_the_same_reference_succeeds(platform: &Platform) {
        let client = platform.client().await;

        let responses = join_all((0..32).map(|_| client.post(DELIVERIES, draft_with_reference("42")))).await;

        assert_one_created(&responses);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_concurrent_creates_on_two_cores_with_the_same_reference_succeeds() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let clients = [platforms[0].client().await, platforms[1].client().await];

    for reference in ["a", "b", "c"] {
        let requests = (0..32)
            .map(|index| clients[index % 2].post(DELIVERIES, draft_with_reference(reference)));
        assert_one_created(&join_all(requests).await);
    }

    Platform::stop_both(platforms).await;
}

#[track_caller]
fn assert_one_created(responses: &[Response]) {
    let (created, taken): (Vec<_>, Vec<_>) = responses
        .iter()
        .partition(|response| response.status == 201);
    assert_eq!(created.len(), 1);
    let reference = created[0].json["externalReference"].as_str().unwrap();
    for taken in taken {
        assert_taken(taken, reference, &created[0].json);
    }
}
