//! Invalid values for each field of a draft: a violation at the field's property path.

use serde_json::{Deserializer, Value, json};

use super::draft_with;
use crate::harness::{Database, Mismatches, Platform};

/// Property paths, each with invalid values.
const INVALID: &str = r#"
pickup                          "x" "" 5 true [{}]
dropoff                         null "x" "" 5 true [] [{}]
dropoff.address                 null "" "  " "\u200b\u202a" 5 true [] {}
dropoff.address                 {"streetAddress":""} {"streetAddress":null} {"contactName":"Jane"}
dropoff.address                 {"streetAddress":"\ufeff"} {"streetAddress":"\u2060 \u00ad"}
dropoff.address.streetAddress   5 true [] {} ["x"]
dropoff.address.description     5 true [] {} ["x"]
dropoff.address.contactName     5 true [] {} ["x"]
dropoff.address.name            5 true [] {} ["x"]
dropoff.address.postalCode      5 true [] {} ["x"]
dropoff.address.addressLocality 5 true [] {} ["x"]
dropoff.address.addressCountry  5 true [] {} ["x"] "ZZZ" "France" "F" "12"
dropoff.weight                  "x" -1 1.5 1e30 true [] {}
dropoff.comments                5 true [] {} ["x"]
dropoff.tags                    5 true {} [1] [null] [[]]
dropoff.metadata                "x" 5 true [1] {"a":1} {"a":{}} {"a":[]}
dropoff.packages                "x" 5 true {} [1] ["XL"] [null] [[]] [{}]
dropoff.packages                [{"type":"XL"}] [{"quantity":1}] [{"type":1,"quantity":1}]
dropoff.packages                [{"type":"","quantity":1}] [{"type":null,"quantity":null}]
dropoff.packages                [{"type":"\u200b","quantity":1}]
dropoff.packages                [{"type":"XL","quantity":0}] [{"type":"XL","quantity":-1}]
dropoff.packages                [{"type":"XL","quantity":1.5}] [{"type":"XL","quantity":"2"}]
dropoff.packages                [{"type":"XL","quantity":99999999999}]
dropoff.after                   5 true [] {} ["x"] "soon"
dropoff.doneAfter               5 true [] {} ["x"] "soon"
dropoff.before                  null "" "   " "\u200e" 5 true [] {} ["x"]
dropoff.before                  "soon" "at" "next" "+" "in hours" "13" "25:00" "tomorrow 13:60" "\u0000"
dropoff.before                  "2020-13-01 10:00" "2020-04-31 10:00 x" "2020-04-03T25:00:00Z"
dropoff.before                  "2020-04-03 10:00-11:00" "." "UTC" "+02:00" "2h" "1h30" ".5 hours"
dropoff.before                  "15 min before 18:00" "2 days before friday" "tomorrow morning"
dropoff.before                  "2020-04-03T10:00:00+99:00" "tomorrow 10:00 +2" "half past five"
dropoff.before                  "2020-04-03T10:00:00Z/2020-04-03T11:00:00Z"
dropoff.timeSlot                5 true [] {} ["x"] "soon" "/" "a/b" "12:00-14:00" "\u0000" "/api/time_slots/x"
dropoff.timeSlot                "2020-04-03" "2020-04-03 12:00" "tomorrow 10:00-11:00"
dropoff.timeSlot                "2020-04-03 14:00-12:00" "2020-04-03 12:00-12:00"
dropoff.timeSlot                "2020-04-03 25:00-26:00" "2020-04-03 12:60-13:00"
dropoff.timeSlot                "2020-04-03 24:30-25:00" "2020-04-03 12:00-14:00 or so"
dropoff.timeSlot                "2020-02-30 10:00-11:00" "2020-13-01 10:00-11:00"
dropoff.timeSlot                "2020-04-03T10:00:00Z" "2020-04-03T10:00:00Z/"
dropoff.timeSlot                "/2020-04-03T10:00:00Z"
dropoff.timeSlot                "2020-04-03T11:00:00Z/2020-04-03T10:00:00Z"
dropoff.timeSlot                "2020-04-03T10:00:00Z/2020-04-03T10:00:00Z"
dropoff.timeSlot                "2020-04-03T10:00:00Z/2020-04-03T11:00:00Z/2020-04-03T12:00:00Z"
"#;

/// Property paths of strings with a length limit.
const STRINGS: [&str; 10] = [
    "dropoff.address",
    "dropoff.address.streetAddress",
    "dropoff.address.description",
    "dropoff.address.contactName",
    "dropoff.address.name",
    "dropoff.address.postalCode",
    "dropoff.address.addressLocality",
    "dropoff.before",
    "dropoff.timeSlot",
    "dropoff.comments",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_a_wrong_type_or_format_is_a_violation_at_its_path() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for line in INVALID.trim().lines() {
        let (path, values) = line.split_once(' ').unwrap();
        for value in Deserializer::from_str(values).into_iter::<Value>() {
            let invalid = value.unwrap();
            let case = format!("{path} {invalid}");
            let response = client
                .post("/api/deliveries", draft_with(path, invalid))
                .await;
            mismatches.check_violations(case, &response, &[path]);
        }
    }
    for invalid in [json!(5), json!([]), json!("soon")] {
        let case = format!("doneBefore {invalid}");
        let dropoff = json!({ "address": "48 Rue de Rivoli, Paris", "doneBefore": invalid });
        let body = json!({ "dropoff": dropoff });
        let response = client.post("/api/deliveries", body).await;
        mismatches.check_violations(case, &response, &["dropoff.doneBefore"]);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_over_its_length_limit_is_a_violation_that_names_the_limit() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let long = "x".repeat(100_000);
    let many = |item: Value| Value::Array(vec![item; 10_000]);
    let entries: serde_json::Map<_, _> = (0..10_000)
        .map(|number| (format!("key{number}"), json!("x")))
        .collect();
    let mut mismatches = Mismatches::default();

    let strings = STRINGS.map(|path| (path, json!(long)));
    let collections = [
        ("dropoff.tags", json!([long])),
        ("dropoff.tags", json!(long)),
        ("dropoff.tags", many(json!("x"))),
        ("dropoff.metadata", json!({ "a": long })),
        ("dropoff.metadata", json!({ &*long: "a" })),
        ("dropoff.metadata", json!(entries)),
        (
            "dropoff.packages",
            many(json!({ "type": "XL", "quantity": 1 })),
        ),
    ];
    for (path, value) in strings.into_iter().chain(collections) {
        let response = client
            .post("/api/deliveries", draft_with(path, value))
            .await;

        mismatches.check_violations(path, &response, &[path]);
        let message = response.json["violations"][0]["message"].to_string();
        let names_limit = message.contains(|letter: char| letter.is_ascii_digit());
        mismatches.check(path, names_limit, format!("{message} names no limit"));
    }
    // These messages name the format or the allowed values instead of a limit.
    for (path, value) in [
        ("dropoff.address.addressCountry", json!(long)),
        ("dropoff.packages", json!([{ "type": long, "quantity": 1 }])),
    ] {
        let response = client
            .post("/api/deliveries", draft_with(path, value))
            .await;
        mismatches.check_violations(path, &response, &[path]);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_violations_of_a_body_are_reported_at_once() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for (body, paths) in [
        (json!({}), &["dropoff"][..]),
        (json!({ "dropoff": null }), &["dropoff"]),
        (
            json!({ "dropoff": {} }),
            &["dropoff.address", "dropoff.before"],
        ),
        (
            json!({ "dropoff": { "address": null, "before": null } }),
            &["dropoff.address", "dropoff.before"],
        ),
        (
            json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris" } }),
            &["dropoff.before"],
        ),
        (
            json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "timeSlot": "" } }),
            &["dropoff.before"],
        ),
        (
            json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "timeSlot": null } }),
            &["dropoff.before"],
        ),
        (
            json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "timeSlot": "noon" } }),
            &["dropoff.timeSlot"],
        ),
        (
            json!({ "dropoff": { "before": "tomorrow 13:00" } }),
            &["dropoff.address"],
        ),
        (
            json!({ "pickup": 5, "dropoff": "x" }),
            &["pickup", "dropoff"],
        ),
        (
            // Wrong types, wrong formats and an unknown address together.
            json!({
                "pickup": { "address": "1 Nowhere Street, Atlantis", "before": "gibberish", "weight": "heavy" },
                "dropoff": {
                    "address": {
                        "streetAddress": "48 Rue de Rivoli, Paris", "telephone": "abc", "latLng": [1], "contactName": 5,
                    },
                    "before": [], "tags": 5, "metadata": "x", "packages": "x", "comments": {},
                },
            }),
            &[
                "pickup.address",
                "pickup.before",
                "pickup.weight",
                "dropoff.address.telephone",
                "dropoff.address.latLng",
                "dropoff.address.contactName",
                "dropoff.before",
                "dropoff.tags",
                "dropoff.metadata",
                "dropoff.packages",
                "dropoff.comments",
            ],
        ),
    ] {
        let response = client.post("/api/deliveries", body.clone()).await;
        mismatches.check_violations(body, &response, paths);
        let violated = response.violation_paths();
        let mut distinct = violated.clone();
        distinct.sort_unstable();
        distinct.dedup();
        mismatches.check_eq("distinct paths", violated.len(), distinct.len());
    }

    mismatches.assert_none();
    platform.stop().await;
}
