//! Prices and deliveries: a price is given only for an acceptable delivery, and a rejected delivery
//! does not use its quote.

use serde_json::{Value, json};

use super::{CALCULATE, draft, fixed_price, price_list};
use crate::harness::{
    ApiClient, Platform, Response,
    assertions::{assert_violations, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";
const ASSERT: &str = "/api/deliveries/assert";
const SLOTS: &str = "name = \"Tour\"\nopening_hours = [\"Mo-Su 12:00-14:00\", \"Mo-Su 14:00-17:00\"]\n\
                     interval = \"2 days\"\ncapacity = 1\n";

fn with(member: &str, value: Value) -> Value {
    let mut draft = draft();
    let (parent, name) = member.rsplit_once('/').unwrap();
    draft.pointer_mut(parent).unwrap()[name] = value;
    draft
}

fn in_slot(slot: &str) -> Value {
    let mut draft = draft();
    draft["dropoff"]["timeSlot"] = json!(slot);
    draft["dropoff"].as_object_mut().unwrap().remove("before");
    draft
}

/// The responses to calculating, asserting and creating a draft.
async fn responses(client: &ApiClient, draft: &Value) -> [Response; 3] {
    [
        client.post(CALCULATE, draft.clone()).await,
        client.post(ASSERT, draft.clone()).await,
        client.post(DELIVERIES, draft.clone()).await,
    ]
}

on_both_databases! {
    /// Calculate, assert and create report the same violations. For service areas see
    /// `deliveries::service_area`.
    async fn no_price_is_given_for_a_draft_that_create_rejects(platform: &Platform) {
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, SLOTS).await;
        let strict = fixed_price("EUR", 2000, 499) + "\n[packages]\nXL = {}\n";
        operator.apply_price_list(&platform.store, &strict).await;
        let client = platform.client().await;
        let full = in_slot("2020-04-03 12:00-14:00");
        client.create_delivery(full.clone()).await;
        client.create_delivery(with("/externalReference", json!("Order 42"))).await;

        let mut several = with("/dropoff/weight", json!(-1));
        several["pickup"]["weight"] = json!(100_000_001);
        several["dropoff"]["packages"] = json!([{ "type": "XXL", "quantity": 1 }]);
        several["dropoff"]["before"] = json!("no time at all");
        let unknown_address = json!("1 Rue de Nulle Part, 75004 Paris");
        for (rejected, paths) in [
            (full, &["dropoff.timeSlot"][..]),
            (in_slot("2020-04-03 12:30-13:30"), &["dropoff.timeSlot"]),
            (with("/dropoff/address", unknown_address), &["dropoff.address"]),
            (with("/dropoff/weight", json!(-1)), &["dropoff.weight"]),
            (with("/dropoff/weight", json!(1e30)), &["dropoff.weight"]),
            (
                several,
                &[
                    "dropoff.before",
                    "dropoff.packages[0].type",
                    "dropoff.weight",
                    "pickup.weight",
                ],
            ),
        ] {
            let responses = responses(&client, &rejected).await;
            for response in &responses {
                let mut violated = response.violation_paths();
                violated.sort_unstable();
                assert_eq!(violated, paths, "{}", response.json);
                assert_eq!(response.json["violations"], responses[0].json["violations"]);
            }
        }
        for response in responses(&client, &with("/externalReference", json!("Order 42"))).await {
            assert_eq!(json_ld(&response, 409)["code"], "external_reference_taken");
        }
    }

    /// If no rule of the price list matches or the sum is invalid, the delivery is created without
    /// a price, and calculating returns an error with the reason.
    async fn a_delivery_without_a_price_is_still_created(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let rule = |when: &str, price: i64| {
            format!("[[rule]]\nname = \"{price}\"\nwhen = \"{when}\"\nprice = {price}\n")
        };
        for (rules, reason) in [
            (rule("distance < 1", 499), "distance < 1 is false"),
            (
                rule("true", i64::MAX) + &rule("true", 1),
                "true is true, but the amount is too large",
            ),
            (
                rule("true", 499) + &rule("true", -500),
                "true is true, but the sum is below zero",
            ),
        ] {
            let definition = price_list("EUR", 2000, "sum", &rules);
            operator.apply_price_list(&platform.store, &definition).await;

            let [calculated, asserted, created] = responses(&client, &draft()).await;

            let body = json_ld(&calculated, 400);
            assert_eq!(body["code"], "price_not_calculated");
            let last = body["calculation"].as_array().unwrap().last().unwrap();
            assert_eq!(last["reason"], reason);
            assert_eq!(json_ld(&asserted, 200)["price"], Value::Null);
            assert_eq!(json_ld(&created, 201)["price"], Value::Null);
        }
    }

    /// The use of a quote is recorded in the transaction that creates the delivery: with the
    /// delivery or not at all.
    async fn a_rejected_delivery_does_not_use_its_quote(platform: &Platform) {
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, SLOTS).await;
        let list = |amount| fixed_price("EUR", 2000, amount);
        operator.apply_price_list(&platform.store, &list(499)).await;
        let client = platform.client().await;
        client.create_delivery(with("/externalReference", json!("Order 42"))).await;
        let draft = in_slot("2020-04-03 14:00-17:00");
        let quote = client.post(CALCULATE, draft.clone()).await.expect(200);
        operator.apply_price_list(&platform.store, &list(1999)).await;
        let draft_at_quote = |reference: &str| {
            let mut draft = draft.clone();
            draft["retailPrice"] = quote["@id"].clone();
            draft["externalReference"] = json!(reference);
            draft
        };

        // Rejected when the delivery is inserted, after the quote was used and the slot booked.
        let rejected = client.post(DELIVERIES, draft_at_quote("Order 42")).await;
        assert_eq!(json_ld(&rejected, 409)["code"], "external_reference_taken");
        let created = client.create_delivery(draft_at_quote("Order 43")).await;
        assert_eq!(created["price"]["amount"], 499, "{created}");

        // The quote is used now; the slot, which is full too, is reported first.
        let again = client.post(DELIVERIES, draft_at_quote("Order 44")).await;
        assert_violations(&again, &["dropoff.timeSlot"]);
    }
}
