//! A price is a binding quote: a delivery with `"retailPrice": "<@id>"` is charged exactly that, once.

use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{CALCULATE, draft, fixed_price};
use crate::harness::{
    ApiClient, Platform, Response,
    assertions::{assert_error, assert_violations, json_ld},
    token, wait_for_price,
};

const DELIVERIES: &str = "/api/deliveries";
const ASSERT: &str = "/api/deliveries/assert";

on_both_databases! {
    /// Also after the price list changed. Without a quote, the current list applies.
    async fn a_delivery_is_charged_its_quoted_price(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 499))
            .await;
        let quote = quote(&client, &draft()).await;
        let current = fixed_price("EUR", 2000, 1999) + "\n[packages]\nXL = {}\n";
        operator.apply_price_list(&platform.store, &current).await;
        platform.advance(SignedDuration::from_secs(14 * 60 + 59));

        let preview = json_ld(&client.post(ASSERT, with_quote(&draft(), quote.as_str())).await, 200);
        let quoted = client.create_delivery(with_quote(&draft(), quote.as_str())).await;
        let other = client.create_delivery(draft()).await;

        let price = |amount, tax, quote| json!({
            "amount": amount,
            "currency": "EUR",
            "tax": { "amount": tax, "included": true },
            "retailPrice": quote,
        });
        assert_eq!(preview["price"], price(499, 83, Some(&quote)));
        assert_eq!(quoted["price"], price(499, 83, Some(&quote)));
        assert_eq!(other["price"], price(1999, 333, None));
        for delivery in [&quoted, &other] {
            let read = client.get(delivery["@id"].as_str().unwrap()).await;
            assert_eq!(json_ld(&read, 200), *delivery);
        }
    }

    async fn a_quote_is_used_once(platform: &Platform) {
        let client = platform.client().await;
        let quote = quote(&client, &draft()).await;

        let delivery = client.create_delivery(with_quote(&draft(), quote.as_str())).await;

        for path in [DELIVERIES, ASSERT] {
            let again = client.post(path, with_quote(&draft(), quote.as_str())).await;
            assert_conflict(&again, "price_used");
            let detail = again.json["detail"].as_str().unwrap();
            assert!(detail.contains(delivery["@id"].as_str().unwrap()), "{detail}");
        }
        // Cancelling the delivery does not release the quote.
        client.delete(delivery["@id"].as_str().unwrap()).await.expect(204);
        let again = client.post(DELIVERIES, with_quote(&draft(), quote.as_str())).await;
        assert_conflict(&again, "price_used");
        assert_eq!(count(&client).await, 1);
        assert_eq!(client.get(&quote).await.status, 200);
    }

    async fn an_expired_quote_is_rejected(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let short = fixed_price("EUR", 2000, 499).replace("15 minutes", "90 seconds");
        operator.apply_price_list(&platform.store, &short).await;
        let quote = quote(&client, &draft()).await;
        platform.advance(SignedDuration::from_secs(90));
        let mut invalid = with_quote(&draft(), quote.as_str());
        invalid["dropoff"]["before"] = json!("no time at all");

        for path in [DELIVERIES, ASSERT] {
            let expired = client.post(path, with_quote(&draft(), quote.as_str())).await;
            assert_conflict(&expired, "price_expired");
            // Other violations are reported with it.
            let response = client.post(path, invalid.clone()).await;
            assert_violations(&response, &["dropoff.before", "retailPrice"]);
        }
        assert_eq!(count(&client).await, 0);
        assert_error(&client.get(&quote).await, 404);
    }

    /// All get the same message.
    async fn a_forged_or_foreign_quote_is_rejected(platform: &Platform) {
        let client = platform.client().await;
        let own = quote(&client, &draft()).await;
        let other = platform.new_store_client().await;
        let mut messages = Vec::new();

        let mut forged: Vec<_> = ["", "/", "/api/retail_prices/", "/api/retail_prices/AAAA"]
            .map(str::to_owned)
            .to_vec();
        forged.push(own.replace("/api/retail_prices/", "/api/deliveries/"));
        forged.extend(altered(&own));
        for quote in forged {
            let response = client.post(DELIVERIES, with_quote(&draft(), quote.as_str())).await;
            assert_violations(&response, &["retailPrice"]);
            messages.push(response.json["violations"].clone());
        }
        let foreign = other.post(DELIVERIES, with_quote(&draft(), own.as_str())).await;
        assert_violations(&foreign, &["retailPrice"]);
        messages.push(foreign.json["violations"].clone());

        messages.dedup();
        assert_eq!(messages.len(), 1, "{messages:?}");
        let number = client.post(DELIVERIES, with_quote(&draft(), json!(5))).await;
        assert_violations(&number, &["retailPrice"]);
        assert_eq!((count(&client).await, count(&other).await), (0, 0));
    }

    /// A price that is calculated again is the current one; a forged quote is rejected as by
    /// `assert`, together with the other violations.
    async fn a_quote_in_a_calculation_does_not_set_its_price(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let own = quote(&client, &draft()).await;
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 1999))
            .await;

        let again = client.post(CALCULATE, with_quote(&draft(), own.as_str())).await.expect(200);
        assert_eq!(again["amount"], 1999);
        assert_ne!(again["@id"], json!(own));
        client.create_delivery(with_quote(&draft(), own.as_str())).await;
        client.post(CALCULATE, with_quote(&draft(), own.as_str())).await.expect(200);
        platform.advance(SignedDuration::from_mins(15));
        client.post(CALCULATE, with_quote(&draft(), own.as_str())).await.expect(200);

        let other = platform.new_store_client().await;
        let foreign = other.post(CALCULATE, with_quote(&draft(), own.as_str())).await;
        assert_violations(&foreign, &["retailPrice"]);
        let forged = ["bogus", "", "/api/retail_prices/AAAA", "/api/deliveries/1"];
        for quote in forged.into_iter().map(str::to_owned).chain(altered(&own)) {
            let mut body = with_quote(&draft(), quote);
            for (before, paths) in [
                ("2020-04-04 13:00", &["retailPrice"][..]),
                ("no time at all", &["dropoff.before", "retailPrice"]),
            ] {
                body["dropoff"]["before"] = json!(before);
                let [calculated, asserted] =
                    [client.post(CALCULATE, body.clone()).await, client.post(ASSERT, body.clone()).await];
                assert_violations(&calculated, paths);
                assert_eq!(calculated.json["violations"], asserted.json["violations"]);
            }
        }
    }

    /// Another draft is rejected with `price_mismatch` and a violation for each difference.
    async fn a_quote_is_valid_only_for_the_priced_draft(platform: &Platform) {
        let client = platform.client().await;
        let mut priced = draft();
        priced["dropoff"]["weight"] = json!(1000);
        let quote = quote(&client, &priced).await;
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
                let response = client.post(resource, with_quote(&other, quote.as_str())).await;
                assert_violations(&response, &[path]);
                assert_eq!(response.json["code"], "price_mismatch", "{member}");
            }
        }
        let mut slot = priced.clone();
        set(&mut slot, "/dropoff/timeSlot", json!("2020-04-03 12:45-13:00"));
        let response = client.post(DELIVERIES, with_quote(&slot, quote.as_str())).await;
        assert_violations(&response, &["dropoff.timeSlot"]);

        // Members that do not affect the price may change after quoting.
        for (member, value) in [
            ("/dropoff/address/contactName", json!("Ada")),
            ("/dropoff/address/telephone", json!("0612345678")),
            ("/dropoff/address/description", json!("2nd floor")),
            ("/dropoff/comments", json!("Ring twice")),
            ("/dropoff/metadata", json!({ "order": "42" })),
        ] {
            set(&mut priced, member, value);
        }
        client.create_delivery(with_quote(&priced, quote.as_str())).await;
        assert_eq!(count(&client).await, 1);
    }

    /// The end of its window follows from the dropoff and the route.
    async fn a_pickup_with_only_a_start_is_no_difference_of_its_own(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft["pickup"]["after"] = json!("2020-04-03 10:00");
        let quote = quote(&client, &draft).await;
        draft["dropoff"]["address"]["latLng"] = json!([48.8558, 2.3561]);

        let response = client.post(DELIVERIES, with_quote(&draft, quote.as_str())).await;

        assert_violations(&response, &["dropoff.address"]);
    }

    async fn a_pickup_whose_end_is_left_out_is_a_difference_beside_others(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft["pickup"]["before"] = json!("2020-04-03 11:00");
        let quote = quote(&client, &draft).await;
        draft["pickup"].as_object_mut().unwrap().remove("before");
        draft["dropoff"]["weight"] = json!(1000);

        let response = client.post(DELIVERIES, with_quote(&draft, quote.as_str())).await;

        assert_violations(&response, &["pickup.before", "dropoff.weight"]);
    }

    /// The same payload is the same draft, even if "tomorrow" is another day by then.
    async fn relative_times_are_resolved_as_of_the_quote(platform: &Platform) {
        platform.advance(SignedDuration::from_mins(12 * 60 + 50));
        let client = platform.client().await;
        let mut draft = draft();
        for (before, expected) in [
            ("tomorrow 13:00", "2020-04-03T13:00:00+02:00"),
            ("in 2 hours", "2020-04-03T02:04:00+02:00"),
        ] {
            draft["dropoff"]["before"] = json!(before);
            let quote = quote(&client, &draft).await;
            platform.advance(SignedDuration::from_mins(14));

            let quoted = client.create_delivery(with_quote(&draft, quote.as_str())).await;
            let other = client.create_delivery(draft.clone()).await;

            assert_eq!(quoted["dropoff"]["before"], expected);
            assert_ne!(other["dropoff"]["before"], expected);
            assert_eq!(quoted["price"]["retailPrice"], json!(quote));
        }
    }

    /// A replay by `Idempotency-Key` is not a second use.
    async fn a_replay_of_a_created_delivery_keeps_its_quote(platform: &Platform) {
        let client = platform.client().await;
        let quote = quote(&client, &draft()).await;
        let draft = with_quote(&draft(), quote.as_str());
        let send = || client.post_with_key(DELIVERIES, "order 42", &draft);

        let first = json_ld(&send().await, 201);
        let again = json_ld(&send().await, 201);

        assert_eq!(again, first);
        assert_eq!(first["price"]["retailPrice"], json!(quote));
        assert_eq!(count(&client).await, 1);
    }

    async fn of_concurrent_deliveries_with_one_quote_one_is_created(platform: &Platform) {
        let client = platform.client().await;
        let quote = quote(&client, &draft()).await;

        let clients = vec![client.clone(); 64];

        assert_one_created(&quote, &clients).await;
    }
}

/// With two cores on one database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_deliveries_on_two_cores_with_one_quote_one_is_created() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let [first, second] = &platforms;
    let (first, second) = tokio::join!(first.client(), second.client());
    let quote = quote(&first, &draft()).await;

    let clients: Vec<_> = (0..32)
        .flat_map(|_| [first.clone(), second.clone()])
        .collect();

    assert_one_created(&quote, &clients).await;
    Platform::stop_both(platforms).await;
}

/// A list applied on one core immediately prices deliveries created on another; calculated prices
/// follow within a second. A quote of the previous list stays valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_list_applied_on_one_core_takes_effect_on_another() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let [first, second] = &platforms;
    let (first_client, second_client) = tokio::join!(first.client(), second.client());
    let operator = first.operator().await;
    let apply = |amount| {
        let (operator, store) = (&operator, &first.store);
        async move {
            let list = fixed_price("EUR", 2000, amount);
            operator.apply_price_list(store, &list).await;
        }
    };

    apply(499).await;
    assert_eq!(first_client.calculate(&draft()).await, 499);
    wait_for_price(&second_client, &draft(), 499).await;
    let quote = quote(&second_client, &draft()).await;
    apply(1999).await;

    assert_eq!(first_client.calculate(&draft()).await, 1999);
    assert_eq!(charged(&second_client, &draft()).await, 1999);
    assert_eq!(
        charged(&second_client, &with_quote(&draft(), quote)).await,
        499
    );
    wait_for_price(&second_client, &draft(), 1999).await;
    Platform::stop_both(platforms).await;
}

async fn charged(client: &ApiClient, draft: &Value) -> i64 {
    let delivery = client.create_delivery(draft.clone()).await;
    delivery["price"]["amount"].as_i64().unwrap()
}

async fn assert_one_created(quote: &str, clients: &[ApiClient]) {
    let draft = with_quote(&draft(), quote);
    let responses = join_all(
        clients
            .iter()
            .map(|client| client.post(DELIVERIES, draft.clone())),
    )
    .await;

    let (created, rejected): (Vec<_>, Vec<_>) = responses
        .iter()
        .partition(|response| response.status == 201);
    assert_eq!(created.len(), 1, "{responses:?}");
    for response in rejected {
        assert_conflict(response, "price_used");
    }
    assert_eq!(count(&clients[0]).await, 1);
}

/// The `@id` of a draft's price.
async fn quote(client: &ApiClient, draft: &Value) -> String {
    let price = client.post(CALCULATE, draft.clone()).await.expect(200);
    price["@id"].as_str().unwrap().to_owned()
}

/// The draft with a quote.
fn with_quote(draft: &Value, quote: impl Into<Value>) -> Value {
    let mut draft = draft.clone();
    draft["retailPrice"] = quote.into();
    draft
}

/// Copies of a quote's IRI, each with one character of its token changed.
fn altered(quote: &str) -> Vec<String> {
    let start = "/api/retail_prices/".len();
    (start..quote.len())
        .step_by(17)
        .map(|index| token::altered(quote, index))
        .collect()
}

fn set(draft: &mut Value, member: &str, value: Value) {
    let (parent, name) = member.rsplit_once('/').unwrap();
    draft.pointer_mut(parent).unwrap()[name] = value;
}

async fn count(client: &ApiClient) -> usize {
    let page = client.get(DELIVERIES).await.expect(200);
    page["hydra:member"].as_array().unwrap().len()
}

#[track_caller]
fn assert_conflict(response: &Response, code: &str) {
    assert_error(response, 409);
    assert_eq!(response.json["code"], code, "{}", response.json);
}
