//! Amounts, tax and errors.

use jiff::SignedDuration;
use proto::CreateStoreRequest;
use serde_json::{Value, json};
use tonic::Code;

use super::{
    CALCULATE, calculate_excluding_tax, draft, far_draft, fixed_price, price, price_list,
    retail_price,
};
use crate::harness::{
    Platform, UNKNOWN_ID,
    assertions::{assert_error, assert_violations, json_ld},
    definitions::{Definitions, assert_mistakes},
    token,
};

on_both_databases! {
    /// `tax = round_half_away_from_zero(gross − gross / (1 + rate))`, the rate in basis points.
    async fn tax_is_taken_from_the_total_once_and_rounded_half_away_from_zero(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let cases = [
            (2000, 499, 83),
            (2000, 500, 83),
            (2000, 699, 117),
            (2000, 1299, 217),
            (2000, 1500, 250),
            (2000, 1999, 333),
            (2000, 200, 33),
            (2000, 0, 0),
            (2000, 1_000_000_000, 166_666_667),
            (550, 499, 26),
            (0, 499, 0),
            // Exact halves.
            (10_000, 1, 1),
            (10_000, 3, 2),
        ];

        for (rate, amount, tax) in cases {
            operator
                .apply_price_list(&platform.store, &fixed_price("EUR", rate, amount))
                .await;
            let with_tax = price(&client.post(CALCULATE, draft()).await);
            let without_tax = price(&client.post(&calculate_excluding_tax(), draft()).await);

            let case = format!("{amount} at {rate}");
            assert_eq!(with_tax, retail_price(amount, "EUR", tax, true), "{case}");
            assert_eq!(
                without_tax,
                retail_price(amount - tax, "EUR", tax, false),
                "{case}"
            );
        }
    }

    /// "With the value `excluded`, the returned price is tax excluded. When absent, the price is
    /// tax included." `tax=included` or absent: included. Any other value: 400 violation `tax`.
    async fn a_price_includes_tax_unless_the_request_asks_for_it_excluded(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 499))
            .await;

        for (query, expected) in [
            ("", retail_price(499, "EUR", 83, true)),
            ("?tax=included", retail_price(499, "EUR", 83, true)),
            ("?tax=excluded", retail_price(416, "EUR", 83, false)),
        ] {
            let response = client.post(&format!("{CALCULATE}{query}"), draft()).await;
            assert_eq!(price(&response), expected, "{query}");
        }
        for query in [
            "?tax=none",
            "?tax=",
            "?tax",
            "?tax=EXCLUDED",
            "?tax=excluded&tax=included",
        ] {
            let response = client.post(&format!("{CALCULATE}{query}"), draft()).await;
            assert_violations(&response, &["tax"]);
        }
        let response = client.post(&format!("{CALCULATE}?Tax=excluded"), draft()).await;
        assert_violations(&response, &["Tax"]);
    }

    /// `amount` in the currency's minor units (ISO 4217 exponent: EUR 2, JPY 0), `currency` upper
    /// case.
    async fn an_amount_is_in_minor_units_of_the_stores_currency(platform: &Platform) {
        let operator = platform.operator().await;

        for (currency, amount, tax) in [("JPY", 499, 83), ("KWD", 1500, 250), ("USD", 200, 33)] {
            let store = operator
                .create_store_with(CreateStoreRequest {
                    display_name: format!("A shop that takes {currency}"),
                    currency_code: Some(currency.to_owned()),
                    ..CreateStoreRequest::default()
                })
                .await;
            let credentials = operator.create_client(&store, &["deliveries"]).await;
            operator
                .apply_price_list(&store, &fixed_price(currency, 2000, amount))
                .await;

            let client = platform.client_for(&credentials, &["deliveries"]).await;
            let response = client.post(CALCULATE, draft()).await;

            assert_eq!(price(&response), retail_price(amount, currency, tax, true));
        }
    }

    /// `strategy = "first"`: the first rule that matches; `"sum"`: all that match, taxed once.
    async fn the_price_is_that_of_the_first_matching_rule_or_the_sum_of_all(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let rules = "[[rule]]\nname = \"Near\"\nwhen = \"distance <= 3000.0\"\nprice = 499\n\n\
                     [[rule]]\nname = \"Far\"\nwhen = \"distance <= 100000\"\nprice = 699\n";

        for (strategy, near, far) in [
            ("first", (499, 83), (699, 117)),
            ("sum", (1198, 200), (699, 117)),
        ] {
            operator
                .apply_price_list(&platform.store, &price_list("EUR", 2000, strategy, rules))
                .await;

            for (draft, (amount, tax)) in [(draft(), near), (far_draft(), far)] {
                let response = client.post(CALCULATE, draft).await;
                assert_eq!(
                    price(&response),
                    retail_price(amount, "EUR", tax, true),
                    "{strategy}"
                );
            }
        }
    }

    /// `{ percent = 11500 }`: "of the running subtotal; 10000 neutral".
    async fn a_percentage_applies_to_the_running_subtotal(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let rule = |name: &str, price: &str| {
            format!("[[rule]]\nname = \"{name}\"\nwhen = \"distance >= 0\"\nprice = {price}\n\n")
        };

        for (prices, amount, tax) in [
            (&["500", "{ percent = 11500 }"][..], 575, 96),
            (&["500", "{ percent = 10000 }"], 500, 83),
            (&["500", "{ percent = 11500 }", "100"], 675, 113),
            (&["500", "100", "{ percent = 5000 }"], 300, 50),
        ] {
            let rules: String = prices
                .iter()
                .enumerate()
                .map(|(position, price)| rule(&format!("Rule {position}"), price))
                .collect();
            let definition = price_list("EUR", 2000, "sum", &rules);
            operator
                .apply_price_list(&platform.store, &definition)
                .await;

            let response = client.post(CALCULATE, draft()).await;

            assert_eq!(
                price(&response),
                retail_price(amount, "EUR", tax, true),
                "{prices:?}"
            );
        }
    }

    /// "No rule matches: 400 \"The delivery price could not be calculated.\" with `calculation`
    /// saying, rule by rule, why."
    async fn a_delivery_that_no_rule_matches_gets_an_error_with_the_reason_of_each_rule(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let unmatched = "[[rule]]\nname = \"Next door\"\nwhen = \"distance < 1\"\nprice = 499\n\n\
                      [[rule]]\nname = \"Abroad\"\nwhen = \"distance > 900000.0\"\nprice = 699\n";
        operator
            .apply_price_list(&platform.store, &price_list("EUR", 2000, "first", unmatched))
            .await;

        let response = client.post(CALCULATE, draft()).await;

        let rules = response.json["calculation"].as_array().unwrap().clone();
        assert_eq!(rules.len(), 2, "{}", response.json);
        for (rule, name) in rules.iter().zip(["Next door", "Abroad"]) {
            assert!(rule.to_string().contains(name), "{rule}");
        }
        let mut error = response;
        error.json.as_object_mut().unwrap().remove("calculation");
        assert_error(&error, 400);
        assert_eq!(
            error.json["hydra:description"],
            "The delivery price could not be calculated."
        );

        let without_price_list = platform.new_store_client().await;
        let response = without_price_list.post(CALCULATE, draft()).await;
        assert_eq!(
            (response.status, &response.json["hydra:description"]),
            (400, &json!("The delivery price could not be calculated."))
        );
        let no_list = json!([{
            "rule": "(no price list)",
            "matched": false,
            "reason": "the store has no price list",
            "amount": 0,
        }]);
        assert_eq!(response.json["calculation"], no_list);
        without_price_list.create_delivery(draft()).await;
    }

    /// "`@id` is `/api/retail_prices/<token>` […] it can be read again until it expires"; "a
    /// resource of another store answers 404, exactly like one that does not exist".
    async fn a_price_is_read_again_by_its_own_store_until_it_expires(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 499))
            .await;
        let calculated = json_ld(&client.post(CALCULATE, draft()).await, 200);
        let iri = calculated["@id"].as_str().unwrap();
        let altered = token::altered(iri, iri.len() - 20);

        // A stored price keeps only the matching rules of its calculation.
        let both = price_list(
            "EUR",
            2000,
            "sum",
            "[[rule]]\nname = \"Far\"\nwhen = \"distance > 5000\"\nprice = 900\n\
             [[rule]]\nname = \"All\"\nwhen = \"true\"\nprice = 499\n",
        );
        operator.apply_price_list(&platform.store, &both).await;
        let mut explained = json_ld(&client.post(CALCULATE, draft()).await, 200);
        let read = json_ld(&client.get(explained["@id"].as_str().unwrap()).await, 200);
        let rule = |rule: &str, matched, reason: &str, amount: i64| {
            json!({ "rule": rule, "matched": matched, "reason": reason, "amount": amount })
        };
        let matching = rule("All", true, "true is true", 499);
        assert_eq!(
            explained["calculation"],
            json!([rule("Far", false, "distance > 5000 is false", 0), matching])
        );
        explained["calculation"] = json!([matching]);
        assert_eq!(read, explained);

        // A quote is binding: a later price list does not change it.
        operator
            .apply_price_list(&platform.store, &fixed_price("EUR", 2000, 1999))
            .await;
        platform.advance(SignedDuration::from_secs(14 * 60 + 59));

        assert_eq!(json_ld(&client.get(iri).await, 200), calculated);
        assert_error(&other.get(iri).await, 404);
        assert_error(&client.get(&altered).await, 404);
        assert_error(&client.get("/api/retail_prices/nonsense").await, 404);
        platform.advance(SignedDuration::from_secs(2));
        assert_error(&client.get(iri).await, 404);
    }

    /// "Body: same shape as the delivery creation payload (a delivery with at least a dropoff)."
    async fn a_price_request_is_validated_like_a_delivery(platform: &Platform) {
        let client = platform.client().await;
        let before = "2020-04-03 13:00";
        let draft_to = |address: Value| json!({ "dropoff": { "address": address, "before": before } });

        for accepted in [
            draft(),
            draft_to(json!("48 Rue de Rivoli, 75004 Paris")),
            draft_to(json!({ "streetAddress": "Anywhere", "latLng": [48.8558, 2.3551] })),
            json!({ "pickup": null, "dropoff": draft()["dropoff"] }),
            json!({ "pickup": {}, "dropoff": draft()["dropoff"] }),
            json!({ "dropoff": {
                "address": "48 Rue de Rivoli, Paris",
                "timeSlot": "2020-04-03 12:00-14:00",
            } }),
        ] {
            for path in [CALCULATE, "/api/deliveries"] {
                let response = client.post(path, accepted.clone()).await;
                assert!(matches!(response.status, 200 | 201), "{accepted}: {response:?}");
            }
        }
        for (rejected, paths) in [
            (json!({}), &["dropoff"][..]),
            (
                json!({ "dropoff": { "before": "2020-04-03 13:00" } }),
                &["dropoff.address"],
            ),
            (
                json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris" } }),
                &["dropoff.before"],
            ),
            (
                draft_to(json!({ "latLng": [91, 2.3551] })),
                &["dropoff.address.latLng"],
            ),
            (
                json!({ "dropoff": {
                    "address": {
                        "streetAddress": "Anywhere",
                        "latLng": [48.8558, 2.3551],
                        "telephone": "none",
                    },
                    "before": "no time at all",
                } }),
                &["dropoff.address.telephone", "dropoff.before"],
            ),
        ] {
            for path in [CALCULATE, "/api/deliveries"] {
                assert_violations(&client.post(path, rejected.clone()).await, paths);
            }
        }
    }

    /// An invalid definition is rejected with one violation per mistake at `line:column`, and the
    /// current price list stays; only an operator may apply one.
    async fn an_invalid_price_list_is_rejected_and_the_current_one_stays(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        let shop = Definitions::as_client(platform, &platform.demo_client, &["deliveries", "tasks"]).await;
        let valid = fixed_price("EUR", 2000, 499);
        definitions
            .apply_price_list(&platform.store, &valid)
            .await
            .unwrap();

        for (definition, lines) in [
            (valid.replace("price = 499", "price = \"499\""), &["9"][..]),
            (valid.replace("distance >= 0", "distance >="), &["8"]),
            (valid.replace("distance >= 0", "distanse >= 0"), &["8"]),
            (valid.replace("\"first\"", "\"best\""), &["3"]),
            (valid.replace("\"EUR\"", "\"EURO\""), &["1"]),
            (valid.replace("price = 499", "price = -1"), &["9"]),
            (valid.replace("[[rule]]", "[[rule]"), &["6"]),
            (
                valid
                    .replace("2000", "-1")
                    .replace("price = 499", "price = -1"),
                &["2", "9"],
            ),
        ] {
            let rejected = definitions
                .apply_price_list(&platform.store, &definition)
                .await
                .expect_err(&definition);
            assert_mistakes(&rejected, lines, &definition);
        }
        let unknown = definitions
            .apply_price_list(&format!("stores/{UNKNOWN_ID}"), &valid)
            .await
            .unwrap_err();
        let forbidden = shop
            .apply_price_list(&platform.store, &valid)
            .await
            .unwrap_err();

        assert_eq!(
            (unknown.code(), forbidden.code()),
            (Code::NotFound, Code::PermissionDenied)
        );
        let response = platform.client().await.post(CALCULATE, draft()).await;
        assert_eq!(price(&response), retail_price(499, "EUR", 83, true));
    }
}
