//! `warnings`: what is valid in a request that creates or validates a delivery, and may be a mistake.

use geocoding::Precision;
use serde_json::{Value, json};

use super::{draft, draft_with};
use crate::harness::{Database, Mismatches, Platform, assertions::json_ld};

const ASSERT: &str = "/api/deliveries/assert";

fn warning(path: &str, message: &str, code: &str) -> Value {
    json!({ "propertyPath": path, "message": message, "code": code })
}

on_both_databases! {
    /// A repeated request gets them again.
    async fn the_warnings_of_a_request_are_in_its_response_only(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft["dropof"] = json!({});
        draft["dropoff"]["weigth"] = json!(1500);
        draft["dropoff"]["doneBefore"] = json!("2020-04-02 10:59");
        draft["dropoff"].as_object_mut().unwrap().remove("before");
        let expected = json!([
            warning("dropof", "is ignored: there is no such member", "unknown_member"),
            warning("dropoff.weigth", "is ignored: there is no such member", "unknown_member"),
            warning(
                "dropoff.doneBefore",
                "is in the past: it ended at 2020-04-02T10:59:00+02:00",
                "past_time",
            ),
        ]);

        let preview = json_ld(&client.post(ASSERT, draft.clone()).await, 200);
        let create = || client.post_with_key("/api/deliveries", "1", &draft);
        let created = create().await.expect(201);
        let repeated = create().await.expect(201);

        assert_eq!(preview["warnings"], expected);
        assert_eq!(created["warnings"], expected);
        assert_eq!(repeated, created);
        let mut stored = json_ld(&client.get(created["@id"].as_str().unwrap()).await, 200);
        assert_eq!(stored.get("warnings"), None);
        stored["warnings"] = expected;
        assert_eq!(stored, created);
    }

    async fn a_requested_time_in_the_past_causes_a_warning(platform: &Platform) {
        let client = platform.client().await;
        let past = |path, time| json!([warning(path, &format!("is in the past: it ended at 2020-04-02T{time}:00+02:00"), "past_time")]);
        let partly = |path, time| json!([warning(path, &format!("is partly in the past: it began at 2020-04-02T{time}:00+02:00"), "past_time")]);
        let mut mismatches = Mismatches::default();

        // It is 11:00.
        for (task, expected) in [
            (json!({ "before": "11:00" }), Value::Null),
            (json!({ "before": "11:01" }), Value::Null),
            (json!({ "before": "10:59" }), past("dropoff.before", "10:59")),
            (json!({ "before": "-1h" }), past("dropoff.before", "10:00")),
            (json!({ "before": "11:01", "after": "10:00" }), partly("dropoff.after", "10:00")),
            (json!({ "before": "12:00", "doneAfter": "10:00" }), partly("dropoff.doneAfter", "10:00")),
            (json!({ "timeSlot": "2020-04-02 09:00-10:59" }), past("dropoff.timeSlot", "10:59")),
            (json!({ "timeSlot": "2020-04-02 10:00-12:00" }), partly("dropoff.timeSlot", "10:00")),
            (json!({ "timeSlot": "2020-04-02 10:00-12:00", "after": "11:30" }), Value::Null),
            (json!({ "timeSlot": "2020-04-02 11:00-12:00", "before": "yesterday" }), Value::Null),
        ] {
            let case = task.to_string();
            let mut dropoff = task;
            dropoff["address"] = json!("48 Rue de Rivoli, 75004 Paris");
            let preview = json_ld(&client.post(ASSERT, json!({ "dropoff": dropoff })).await, 200);
            mismatches.check_eq(case, &preview["warnings"], &expected);
        }
        let mut both = draft_with("pickup", json!({ "timeSlot": "2020-04-02 09:00-10:00" }));
        both["dropoff"]["before"] = json!("10:30");
        let preview = json_ld(&client.post(ASSERT, both).await, 200);
        let paths: Vec<_> = preview["warnings"].as_array().unwrap().iter().map(|one| &one["propertyPath"]).collect();
        mismatches.check_eq("both tasks", json!(paths), json!(["pickup.timeSlot", "dropoff.before"]));
        mismatches.assert_none();
    }
}

/// By default, an address needs a house number; `--address-precision` accepts less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_found_only_in_part_and_accepted_causes_a_warning() {
    let mut mismatches = Mismatches::default();
    for (precision, address, expected) in [
        (Precision::Locality, "48 Rue de Rivoli, 75004 Paris", None),
        (
            Precision::Interpolated,
            "50 Rue de Rivoli, 75004 Paris",
            None,
        ),
        (
            Precision::Interpolated,
            "48 Rue de Rivoli",
            Some("no town is given: the town nearest to the store was chosen"),
        ),
        (
            Precision::Street,
            "Rue de Rivoli, Paris",
            Some("only the street was found, not the house number"),
        ),
        (
            Precision::Locality,
            "75004 Paris",
            Some("only the town was found, not the street"),
        ),
    ] {
        let platform = Platform::start_with(Database::sqlite(), |settings| {
            settings.geocoding.address_precision = precision;
        })
        .await;
        let client = platform.client().await;
        let mut draft = draft_with("dropoff.address", json!(address));
        draft["pickup"] = json!({ "address": { "streetAddress": address } });

        let preview = json_ld(&client.post(ASSERT, draft).await, 200);

        let expected = expected.map_or(Value::Null, |message| {
            let of = |path| warning(path, message, "vague_address");
            json!([of("pickup.address"), of("dropoff.address")])
        });
        mismatches.check_eq(address, &preview["warnings"], &expected);
        platform.stop().await;
    }
    mismatches.assert_none();
}
