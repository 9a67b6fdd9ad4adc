//! Messages about numbers, lists and keys: the same range everywhere, with the client's value.

use serde_json::{Value, json};

use super::draft_with;
use crate::harness::{Database, Mismatches, Platform, assertions::assert_violations};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_out_of_range_is_shown_with_the_range() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    let weight = |shown: &str| format!("must be from 0 to 100000000 (grams), not {shown}");
    let quantity = |shown: &str| format!("must be from 1 to 10000, not {shown}");
    let whole = |shown: &str| format!("must be a whole number, not {shown}");
    // Up to 64 bits, beyond them, and with an exponent.
    for (json, weight, quantity) in [
        ("-1", weight("-1"), quantity("-1")),
        ("100000001", weight("100000001"), quantity("100000001")),
        ("4294967296", weight("4294967296"), quantity("4294967296")),
        (
            "9223372036854775807",
            weight("9223372036854775807"),
            quantity("9223372036854775807"),
        ),
        (
            "18446744073709551615",
            weight("18446744073709551615"),
            quantity("18446744073709551615"),
        ),
        ("1e300", weight("1e+300"), quantity("1e+300")),
        ("1.5", whole("1.5"), whole("1.5")),
        ("\"2\"", whole("a string"), whole("a string")),
        ("true", whole("a boolean"), whole("a boolean")),
    ] {
        let value: Value = serde_json::from_str(json).unwrap();
        let packages = json!([{ "type": "XL", "quantity": value.clone() }]);
        for (member, path, value, expected) in [
            ("dropoff.weight", "dropoff.weight", value, weight),
            (
                "dropoff.packages",
                "dropoff.packages[0].quantity",
                packages,
                quantity,
            ),
        ] {
            let response = client
                .post("/api/deliveries", draft_with(member, value))
                .await;
            mismatches.check_violations(format!("{member} {json}"), &response, &[path]);
            let message = &response.json["violations"][0]["message"];
            mismatches.check_eq(format!("{member} {json}"), message, &json!(expected));
        }
    }
    let range = "is required: a whole number from 1 to 10000";
    for (package, message) in [
        (json!({ "type": "XL" }), range),
        (json!({ "type": "XL", "quantity": null }), range),
        (json!({ "quantity": 1 }), "is required"),
        (json!({ "type": " ", "quantity": 1 }), "is required"),
    ] {
        let case = package.to_string();
        let body = draft_with("dropoff.packages", json!([package]));
        let response = client.post("/api/deliveries", body).await;
        mismatches.check_violations(&case, &response, &["dropoff.packages[0]"]);
        let violations = &response.json["violations"];
        mismatches.check_eq(&case, &violations[0]["message"], &json!(message));
        mismatches.check_eq(case, violations.as_array().map(Vec::len), Some(1));
    }
    let zero = draft_with("dropoff.packages", json!([{ "type": "XL", "quantity": 0 }]));
    let response = client.post("/api/deliveries", zero).await;
    let message = &response.json["violations"][0]["message"];
    mismatches.check_eq("quantity 0", message, &json!(quantity("0")));

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_too_long_is_named_with_its_length() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let entries: serde_json::Map<_, _> = (0..51).map(|n| (format!("key{n}"), json!("x"))).collect();

    for (path, value, message) in [
        (
            "dropoff.packages",
            json!(vec![json!({ "type": "XL", "quantity": 1 }); 101]),
            "must be at most 100 packages, not 101",
        ),
        (
            "dropoff.tags",
            json!(vec!["x"; 51]),
            "must be at most 50 tags, not 51",
        ),
        (
            "dropoff.metadata",
            json!(entries),
            "must be at most 50 members, not 51",
        ),
    ] {
        let response = client
            .post("/api/deliveries", draft_with(path, value))
            .await;
        assert_violations(&response, &[path]);
        assert_eq!(response.json["violations"][0]["message"], message);
    }
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_metadata_cannot_forge_a_line_of_the_description() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;

    for (breaks, shown) in [
        ("\n", "\\n"),
        ("\r\n", "\\r\\n"),
        ("\u{85}", "\\u{85}"),
        ("\u{2028}", "\\u{2028}"),
        ("\u{0}", "\\u{0}"),
    ] {
        // For an invalid value the gateway reports the violation, for an invalid key core does.
        for value in [json!("x"), json!(5)] {
            let key = format!("a{breaks}dropoff.address");
            let body = draft_with("dropoff.metadata", json!({ &*key: value, "b": 5 }));

            let response = client.post("/api/deliveries", body).await;

            let path = format!("dropoff.metadata.a{shown}dropoff.address");
            let expected: &[&str] = match (breaks, value.is_string()) {
                // A valid key.
                ("\u{2028}", true) => &["dropoff.metadata.b"],
                _ => &[&path, "dropoff.metadata.b"],
            };
            assert_violations(&response, expected);
            let description = response.json["hydra:description"].as_str().unwrap();
            assert_eq!(description.lines().count(), expected.len(), "{description}");
            assert!(!description.contains(['\u{85}', '\u{2028}', '\0', '\r']));
        }
    }
    platform.stop().await;
}
