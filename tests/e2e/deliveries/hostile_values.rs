//! Valid JSON of the right type with unusual characters and extreme numbers.

use serde_json::{Value, json};

use super::draft_with;
use crate::harness::{Database, Mismatches, Platform, Response};

on_both_databases! {
    async fn unusual_text_is_stored_unchanged_or_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let mut mismatches = Mismatches::default();

        for text in [
            "a\u{0}b",
            "\u{0}",
            "a\u{1}\u{8}\u{1b}[31mb",
            "a\u{7f}b",
            "a\r\nb",
            "\u{202e}txt.exe\u{202c}",
            "\u{202a}a\u{202b}b\u{202c} \u{2068}c\u{2069}",
            "\u{feff}a\u{fffe}\u{ffff}\u{10ffff}",
            "Z\u{351}\u{36b}\u{343}\u{36a}",
            "'; DROP TABLE deliveries; --",
            "<script>alert(1)</script>",
            "${jndi:ldap://example.test/a} {{7*7}} %s%n",
            "\\u0000 \\ \" \u{2028}\u{2029} /",
            "👩‍👩‍👧‍👦🏳️‍🌈",
        ] {
            let value = json!(text);
            for (path, body) in [
                ("/comments", draft_with("dropoff.comments", value.clone())),
                ("/tags/0", draft_with("dropoff.tags", json!([text]))),
                ("/metadata/note", draft_with("dropoff.metadata", json!({ "note": text }))),
                ("/address/description", draft_with("dropoff.address.description", value.clone())),
                ("/address/contactName", draft_with("dropoff.address.contactName", value.clone())),
                ("/address/name", draft_with("dropoff.address.name", value.clone())),
                ("/address/streetAddress", draft_with("dropoff.address.streetAddress", value.clone())),
            ] {
                let case = format!("{path} {value}");
                let response = client.post("/api/deliveries", body).await;
                check_stored_or_violation(&mut mismatches, &case, &response, path, &value);
            }
            let body = draft_with("dropoff.metadata", json!({ text: "a" }));
            let response = client.post("/api/deliveries", body).await;
            let case = format!("a key of metadata {value}");
            match response.status {
                201 => mismatches.check_eq(case, &response.json["dropoff"]["metadata"], &json!({ text: "a" })),
                _ => mismatches.check_violations(case, &response, &["dropoff.metadata"]),
            }
        }

        mismatches.assert_none();
    }
}

/// A price list that sums over every number of a draft.
const SUMMING_PRICE_LIST: &str = r#"
currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "sum"

[packages]
XL = { volume = 8 }

[[rule]]
name = "Heavy"
when = "weight >= 0"
price = { step = "distance", amount = 450, every = 2500, above = 2000 }

[[rule]]
name = "Many"
when = "count(packages, \"XL\") > 0"
price = { per_package = "XL", amount = 1240, from = 2, then = 420 }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extreme_numbers_are_summed_or_are_violations() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    operator
        .apply_price_list(&platform.store, SUMMING_PRICE_LIST)
        .await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for weight in [0_u64, 1, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        for quantity in [
            1_u64,
            1000,
            u64::from(u32::MAX),
            u64::from(u32::MAX) + 1,
            u64::MAX,
        ] {
            let packages = json!(vec![json!({ "type": "XL", "quantity": quantity }); 20]);
            let mut body = draft_with("dropoff.weight", json!(weight));
            body["dropoff"]["packages"] = packages.clone();
            body["pickup"] = json!({ "weight": weight, "packages": packages });
            for path in ["/api/deliveries", "/api/retail_prices/calculate"] {
                let case = format!("{path}: {weight} g, {quantity} packages");
                let response = client.post(path, body.clone()).await;
                let is_expected = response.status < 300 || response.status == 400;
                mismatches.check(
                    case,
                    is_expected,
                    format!("{} {}", response.status, response.json),
                );
            }
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

fn check_stored_or_violation(
    mismatches: &mut Mismatches,
    case: &str,
    response: &Response,
    path: &str,
    value: &Value,
) {
    if response.status == 201 {
        let stored = response.json["dropoff"]
            .pointer(path)
            .unwrap_or(&Value::Null);
        mismatches.check_eq(case, stored, value);
        return;
    }
    let member = path
        .trim_start_matches('/')
        .trim_end_matches("/0")
        .trim_end_matches("/note");
    let property = format!("dropoff.{}", member.replace('/', "."));
    mismatches.check_violations(case, response, &[&property]);
}
