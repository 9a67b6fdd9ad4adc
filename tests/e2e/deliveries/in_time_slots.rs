//! Deliveries in a time slot: its two formats, and what it implies ("Task description").

use jiff::Timestamp;
use serde_json::{Value, json};

use super::draft_with;
use crate::harness::{Database, Mismatches, Platform, iri};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_slot_is_a_date_and_a_time_range_or_an_iso_8601_interval_and_overrides_before() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let choices = client.get("/api/time_slots/choices").await.expect(200);
    let zoned = |instant: &str| {
        let instant: Timestamp = instant.parse().unwrap();
        let paris = instant.in_tz("Europe/Paris").unwrap();
        paris.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    };
    let noon_to_two = ("2020-04-03T12:00:00+02:00", "2020-04-03T14:00:00+02:00");
    let mut mismatches = Mismatches::default();

    let mut slots = [
        ("2020-04-03 12:00-14:00", noon_to_two),
        ("2020-04-03T10:00:00Z/2020-04-03T12:00:00Z", noon_to_two),
        (
            "2020-04-03T12:00:00+02:00/2020-04-03T14:00:00+02:00",
            noon_to_two,
        ),
        (
            "2020-04-03T10:00:00.000Z/2020-04-03T12:00:00.000Z",
            noon_to_two,
        ),
        (
            "2020-12-01 09:00-10:30",
            ("2020-12-01T09:00:00+01:00", "2020-12-01T10:30:00+01:00"),
        ),
        (
            "2019-04-03 12:00-14:00",
            ("2019-04-03T12:00:00+02:00", "2019-04-03T14:00:00+02:00"),
        ),
        // Deliveries are not restricted to the offered slots by default.
        (
            "2020-04-08 03:17-03:18",
            ("2020-04-08T03:17:00+02:00", "2020-04-08T03:18:00+02:00"),
        ),
    ]
    .map(|(slot, (start, end))| [slot, start, end].map(str::to_owned))
    .to_vec();
    slots.extend(choices["choices"].as_array().unwrap().iter().map(|choice| {
        let offered = choice["value"].as_str().unwrap();
        let (start, end) = offered.split_once('/').unwrap();
        [offered.to_owned(), zoned(start), zoned(end)]
    }));
    for [slot, start, end] in slots {
        for before in [None, Some("tomorrow 18:00"), Some("gibberish")] {
            let case = format!("{slot}, before {before:?}");
            let mut body = draft_with("dropoff.timeSlot", json!(slot));
            body["dropoff"]["before"] = json!(before);
            let response = client.post("/api/deliveries", body).await;

            if before == Some("gibberish") {
                // The specification does not say whether an invalid `before` that a time slot
                // overrides is rejected or ignored.
                mismatches.check(
                    &case,
                    [201, 400].contains(&response.status),
                    response.status,
                );
            } else {
                mismatches.check_eq(&case, response.status, 201);
                let dropoff = &response.json["dropoff"];
                let bounds = (&dropoff["after"], &dropoff["before"]);
                mismatches.check_eq(&case, bounds, (&json!(start), &json!(end)));
                let task = client.get(iri(dropoff)).await.expect(200);
                mismatches.check_eq(&case, (&task["after"], &task["before"]), bounds);
            }
        }
    }
    for (member, after) in [
        ("after", "2020-04-03T12:30:00+02:00"),
        ("doneAfter", "2020-04-03T12:30:00+02:00"),
        ("doneBefore", "2020-04-03T12:00:00+02:00"),
    ] {
        let mut body = draft_with("dropoff.timeSlot", json!("2020-04-03 12:00-14:00"));
        body["dropoff"][member] = json!("tomorrow 12:30");
        let response = client.post("/api/deliveries", body).await;
        mismatches.check_eq(member, response.status, 201);
        let dropoff = &response.json["dropoff"];
        let bounds = (&dropoff["after"], &dropoff["before"]);
        mismatches.check_eq(member, bounds, (&json!(after), &json!(noon_to_two.1)));
    }
    for absent in [json!(""), json!(null)] {
        let case = format!("timeSlot {absent}");
        let response = client
            .post("/api/deliveries", draft_with("dropoff.timeSlot", absent))
            .await;
        mismatches.check_eq(&case, response.status, 201);
        let dropoff = &response.json["dropoff"];
        let expected = ["2020-04-03T12:45:00+02:00", "2020-04-03T13:00:00+02:00"].map(Value::from);
        mismatches.check_eq(
            case,
            [&dropoff["after"], &dropoff["before"]],
            expected.each_ref(),
        );
    }

    mismatches.assert_none();
    platform.stop().await;
}
