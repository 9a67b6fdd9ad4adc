//! A slot as the `timeSlot` of a task.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CHOICES, LUNCH_AND_AFTERNOON, definition};
use crate::harness::{Platform, assertions::assert_violations};

on_both_databases! {
    /// `timeSlot`: "a date followed by a time range, `<YYYY-MM-DD> <HH:MM>-<HH:MM>`; or an ISO
    /// 8601 time interval […] (UTC, as returned by the time slot choices endpoint)". It "can be
    /// used as the `timeSlot` of a task"; it overrides `before`, and `""` or null is absent.
    async fn a_delivery_is_created_in_a_slot_of_either_format(platform: &Platform) {
        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, &definition(LUNCH_AND_AFTERNOON, "2 days", ""))
            .await;
        let client = platform.client().await;
        let lunch = ["2020-04-03T12:00:00+02:00", "2020-04-03T14:00:00+02:00"];

        for (dropoff, window) in [
            (json!({ "timeSlot": "2020-04-03 12:00-14:00" }), lunch),
            (
                json!({ "timeSlot": "2020-04-03T10:00:00Z/2020-04-03T12:00:00Z" }),
                lunch,
            ),
            (
                json!({ "timeSlot": "2020-04-03T12:00:00+02:00/2020-04-03T14:00:00+02:00" }),
                lunch,
            ),
            (
                json!({ "timeSlot": "2020-04-03T10:00:00.000Z/2020-04-03T12:00:00.000Z" }),
                lunch,
            ),
            (
                json!({ "timeSlot": "2020-04-03 12:00-14:00", "before": "2020-04-05 09:00" }),
                lunch,
            ),
            // Deliveries are not restricted to the offered slots by default.
            (
                json!({ "timeSlot": "2020-04-08 03:17-03:18" }),
                ["2020-04-08T03:17:00+02:00", "2020-04-08T03:18:00+02:00"],
            ),
            // The time zone is the store's, in winter too.
            (
                json!({ "timeSlot": "2020-12-03 12:00-14:00" }),
                ["2020-12-03T12:00:00+01:00", "2020-12-03T14:00:00+01:00"],
            ),
            (
                json!({ "timeSlot": "", "before": "2020-04-03 14:00" }),
                ["2020-04-03T13:45:00+02:00", lunch[1]],
            ),
            (
                json!({ "timeSlot": null, "before": "2020-04-03 14:00" }),
                ["2020-04-03T13:45:00+02:00", lunch[1]],
            ),
        ] {
            let delivery = client.create_delivery(draft_with(&dropoff)).await;
            assert_eq!(window_of(&delivery["dropoff"]), window, "{dropoff}");
            let task = client
                .get(delivery["dropoff"]["@id"].as_str().unwrap())
                .await
                .expect(200);
            assert_eq!(window_of(&task), window, "{dropoff}");
        }
        for choice in client.get(CHOICES).await.expect(200)["choices"]
            .as_array()
            .unwrap()
        {
            let (start, end) = choice["value"].as_str().unwrap().split_once('/').unwrap();
            let delivery = client
                .create_delivery(draft_with(&json!({ "timeSlot": choice["value"] })))
                .await;
            let instants =
                window_of(&delivery["dropoff"]).map(|time| time.parse::<Timestamp>().unwrap());
            assert_eq!(
                instants,
                [start, end].map(|time| time.parse::<Timestamp>().unwrap())
            );
        }
    }

    /// Any other value is a violation of `timeSlot`.
    async fn a_slot_of_another_format_is_rejected(platform: &Platform) {
        let client = platform.client().await;

        for slot in [
            json!("2020-04-03"),
            json!("12:00-14:00"),
            json!("tomorrow 12:00-14:00"),
            json!("2020-04-03 14:00-12:00"),
            json!("2020-04-03 12:00-12:00"),
            json!("2020-04-03 24:30-25:00"),
            json!("2020-04-03 12:60-14:00"),
            json!("2020-02-30 12:00-14:00"),
            json!("2020-13-01 12:00-14:00"),
            json!("1999-04-03 12:00-14:00"),
            json!("2031-04-03 12:00-14:00"),
            json!("2020-04-03 12:00-14:00 or so"),
            json!("2020-04-03T12:00:00Z/2020-04-03T10:00:00Z"),
            json!("2020-04-03T10:00:00Z/2020-04-03T10:00:00Z"),
            json!("2020-04-03T10:00:00Z/"),
            json!("/2020-04-03T10:00:00Z"),
            json!("2020-04-03T10:00:00Z"),
            json!("2020-04-03T10:00:00Z/2020-04-03T12:00:00Z/2020-04-03T14:00:00Z"),
            json!("/api/time_slots/1"),
            json!(12),
            json!(true),
            json!(["2020-04-03 12:00-14:00"]),
            json!({ "start": "2020-04-03T10:00:00Z" }),
            json!("x".repeat(10_000)),
        ] {
            for dropoff in [
                json!({ "timeSlot": slot }),
                json!({ "timeSlot": slot, "before": "2020-04-03 13:00" }),
            ] {
                let response = client.post("/api/deliveries", draft_with(&dropoff)).await;
                let shown: String = slot.to_string().chars().take(80).collect();
                assert_eq!(
                    (response.status, response.violation_paths()),
                    (400, vec!["dropoff.timeSlot"]),
                    "{shown}: {}",
                    response.json
                );
                assert_violations(&response, &["dropoff.timeSlot"]);
            }
        }
        for absent in [
            json!({ "timeSlot": "" }),
            json!({ "timeSlot": null }),
            json!({}),
        ] {
            let response = client.post("/api/deliveries", draft_with(&absent)).await;
            assert_violations(&response, &["dropoff.before"]);
        }
    }
}

fn draft_with(times: &Value) -> Value {
    let mut dropoff = json!({ "address": "48 Rue de Rivoli, 75004 Paris" });
    for (member, value) in times.as_object().unwrap() {
        dropoff[member] = value.clone();
    }
    json!({ "dropoff": dropoff })
}

fn window_of(task: &Value) -> [&str; 2] {
    [&task["after"], &task["before"]].map(|time| time.as_str().unwrap())
}
