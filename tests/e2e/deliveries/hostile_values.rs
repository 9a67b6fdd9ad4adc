//! Values that are sound JSON and no mistake of type: characters and numbers that break careless
//! programs.

use serde_json::{Value, json};

use super::order_with;
use crate::harness::{Answer, Database, Faults, Platform};

on_both_databases! {
    async fn hostile_text_is_kept_to_the_letter_or_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let mut faults = Faults::default();

        for text in [
            "a\u{0}b",
            "\u{0}",
            "a\u{1}\u{8}\u{1b}[31mb",
            "a\u{7f}b",
            "a\r\nb",
            "\u{202e}txt.exe\u{202c}",
            "\u{feff}a\u{fffe}\u{ffff}\u{10ffff}",
            "Z\u{351}\u{36b}\u{343}\u{36a}",
            "'; DROP TABLE deliveries; --",
            "<script>alert(1)</script>",
            "${jndi:ldap://example.test/a} {{7*7}} %s%n",
            "\\u0000 \\ \" \u{2028}\u{2029} /",
            "👩‍👩‍👧‍👦🏳️‍🌈",
        ] {
            let written = json!(text);
            for (path, body) in [
                ("/comments", order_with("dropoff.comments", written.clone())),
                ("/tags/0", order_with("dropoff.tags", json!([text]))),
                ("/metadata/note", order_with("dropoff.metadata", json!({ "note": text }))),
                ("/address/description", order_with("dropoff.address.description", written.clone())),
                ("/address/contactName", order_with("dropoff.address.contactName", written.clone())),
                ("/address/name", order_with("dropoff.address.name", written.clone())),
                ("/address/streetAddress", order_with("dropoff.address.streetAddress", written.clone())),
            ] {
                let case = format!("{path} {written}");
                let answer = client.post("/api/deliveries", body).await;
                kept_or_refused(&mut faults, &case, &answer, path, &written);
            }
            let body = order_with("dropoff.metadata", json!({ text: "a" }));
            let answer = client.post("/api/deliveries", body).await;
            let case = format!("a key of metadata {written}");
            match answer.status {
                201 => faults.equal(case, &answer.json["dropoff"]["metadata"], &json!({ text: "a" })),
                _ => faults.violations(case, &answer, &["dropoff.metadata"]),
            }
        }

        faults.none();
    }
}

/// A rule for which every number of an order is added up.
const ADDING_PRICE_LIST: &str = r#"
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
async fn numbers_at_the_end_of_their_range_are_added_up_or_are_violations() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    operator
        .apply_price_list(&platform.store, ADDING_PRICE_LIST)
        .await;
    let client = platform.client().await;
    let mut faults = Faults::default();

    for weight in [0_u64, 1, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        for quantity in [
            1_u64,
            1000,
            u64::from(u32::MAX),
            u64::from(u32::MAX) + 1,
            u64::MAX,
        ] {
            let packages = json!(vec![json!({ "type": "XL", "quantity": quantity }); 20]);
            let mut body = order_with("dropoff.weight", json!(weight));
            body["dropoff"]["packages"] = packages.clone();
            body["pickup"] = json!({ "weight": weight, "packages": packages });
            for path in ["/api/deliveries", "/api/retail_prices/calculate"] {
                let case = format!("{path}: {weight} g, {quantity} packages");
                let answer = client.post(path, body.clone()).await;
                let is_bounded = answer.status < 300 || answer.status == 400;
                faults.holds(
                    case,
                    is_bounded,
                    format!("{} {}", answer.status, answer.json),
                );
            }
        }
    }

    faults.none();
    platform.stop().await;
}

fn kept_or_refused(faults: &mut Faults, case: &str, answer: &Answer, path: &str, written: &Value) {
    if answer.status == 201 {
        let kept = answer.json["dropoff"].pointer(path).unwrap_or(&Value::Null);
        faults.equal(case, kept, written);
        return;
    }
    let member = path
        .trim_start_matches('/')
        .trim_end_matches("/0")
        .trim_end_matches("/note");
    let property = format!("dropoff.{}", member.replace('/', "."));
    faults.violations(case, answer, &[&property]);
}
