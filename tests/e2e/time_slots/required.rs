//! `slots`: which times of a dropoff a store accepts.

use serde_json::{Value, json};

use super::{LUNCH_AND_AFTERNOON, definition};
use crate::harness::{ApiClient, Platform};

/// The times of a dropoff: a choice, a window that is not offered, a `before`.
const OFFERED: &str = r#"{"timeSlot": "2020-04-03 12:00-14:00"}"#;
const OTHER: &str = r#"{"timeSlot": "2020-04-03 12:30-14:00"}"#;
const BEFORE: &str = r#"{"before": "2020-04-03 13:00"}"#;

const REQUIRED: &str = "is required: the store delivers in the slots that it offers; the next \
     available slot is 2020-04-02 12:00-14:00";
const NOT_OFFERED: &str = "the slot 2020-04-03 12:30-14:00 is not offered: the store offers no \
     slot with this start and end; the next available slot is 2020-04-03 14:00-17:00";

on_both_databases! {
    /// `any` accepts every time, `offered` only choices as `timeSlot` but any `before`, `required`
    /// only choices; a capacity implies `offered`. `GET /api/stores/{id}` says so.
    async fn a_store_accepts_the_times_that_its_time_slot_permits(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let store = format!("/api/{}", platform.store);

        for (setting, other, before) in [
            ("slots = \"any\"", None, None),
            ("slots = \"offered\"", Some(NOT_OFFERED), None),
            ("capacity = 10", Some(NOT_OFFERED), None),
            ("slots = \"required\"", Some(NOT_OFFERED), Some(REQUIRED)),
            ("slots = \"required\"\ncapacity = 10", Some(NOT_OFFERED), Some(REQUIRED)),
        ] {
            let definition = definition(LUNCH_AND_AFTERNOON, "2 days", setting);
            operator.apply_time_slot(&platform.store, &definition).await;

            for (times, rejection) in [(OFFERED, None), (OTHER, other), (BEFORE, before)] {
                let expected: Vec<_> = rejection.into_iter().collect();
                assert_eq!(rejections(&client, &draft_with(times)).await, expected, "{setting} {times}");
            }
            let refused: Vec<_> = other.map(|_| "slot_not_offered").into_iter().collect();
            let read = client.get(&store).await.expect(200);
            assert_eq!(read["refusedWarnings"], json!(refused), "{setting}");
        }
    }

    async fn a_store_that_refuses_other_slots_and_no_price_names_both_warnings(platform: &Platform) {
        let operator = platform.operator().await;
        let definition = definition(LUNCH_AND_AFTERNOON, "2 days", "slots = \"offered\"");
        operator.apply_time_slot(&platform.store, &definition).await;
        let set = ["stores", "set", &platform.store, "--unpriced=refuse"];
        platform.run_delivery(&set).await;

        let path = format!("/api/{}", platform.store);
        let store = platform.client().await.get(&path).await.expect(200);

        assert_eq!(store["refusedWarnings"], json!(["slot_not_offered", "price_not_calculated"]));
    }

    async fn a_required_slot_is_reported_with_other_violations_and_not_required_of_a_pickup(
        platform: &Platform
    ) {
        let operator = platform.operator().await;
        let definition = definition(LUNCH_AND_AFTERNOON, "2 days", "slots = \"required\"");
        operator.apply_time_slot(&platform.store, &definition).await;
        let client = platform.client().await;

        let paths = async |draft: &Value| {
            let response = client.post("/api/deliveries", draft.clone()).await;
            let paths = response.violation_paths();
            paths.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&draft_with("{}")).await,
            ["dropoff.before", "dropoff.timeSlot"]
        );
        for unreadable in [r#"{"timeSlot": "noon"}"#, r#"{"timeSlot": "noon", "before": "2020-04-03 13:00"}"#] {
            assert_eq!(paths(&draft_with(unreadable)).await, ["dropoff.timeSlot"]);
        }
        // The pickup may have a `before`.
        let mut draft = draft_with(OFFERED);
        draft["pickup"] = json!({ "before": "2020-04-03 11:00" });
        client.create_delivery(draft.clone()).await;
        draft["pickup"] = json!({ "timeSlot": "2020-04-03 09:00-11:00" });
        assert_eq!(paths(&draft).await, ["pickup.timeSlot"]);
    }
}

/// The violations of a draft, the same for calculating, asserting and creating.
async fn rejections(client: &ApiClient, draft: &Value) -> Vec<&'static str> {
    let mut all = Vec::new();
    for path in [
        "/api/retail_prices/calculate",
        "/api/deliveries/assert",
        "/api/deliveries",
    ] {
        let response = client.post(path, draft.clone()).await;
        let messages: Vec<_> = match response.json["violations"].as_array() {
            None => Vec::new(),
            Some(violations) => violations
                .iter()
                .map(|violation| {
                    assert_eq!(violation["propertyPath"], "dropoff.timeSlot");
                    let message = violation["message"].as_str().unwrap();
                    let code = if message == REQUIRED {
                        "time_slot_required"
                    } else {
                        "time_slot_refused"
                    };
                    assert_eq!(violation["code"], code);
                    [REQUIRED, NOT_OFFERED]
                        .into_iter()
                        .find(|known| *known == message)
                        .expect(message)
                })
                .collect(),
        };
        let accepted = matches!(response.status, 200 | 201);
        assert_eq!(accepted, messages.is_empty(), "{}", response.json);
        all.push(messages);
    }
    assert!(all.iter().all(|messages| *messages == all[0]), "{all:?}");
    all.swap_remove(0)
}

fn draft_with(times: &str) -> Value {
    let mut dropoff: Value = serde_json::from_str(times).unwrap();
    dropoff["address"] = json!("48 Rue de Rivoli, 75004 Paris");
    json!({ "dropoff": dropoff })
}
