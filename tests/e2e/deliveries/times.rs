//! The time window of a task: `timeSlot`, `after`, `before` and their defaults ("Task description").

use jiff::{SignedDuration, tz::TimeZone};
use proto::{AddressDraft, CreateStoreRequest};
use serde_json::json;

use super::{draft, draft_with, elapsed};
use crate::harness::{Database, Mismatches, Platform};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_time_members_are_read_if_the_new_ones_are_absent() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let address = "48 Rue de Rivoli, 75004 Paris";
    let mut mismatches = Mismatches::default();

    for (case, times, after, before) in [
        (
            "old names alone",
            json!({ "doneAfter": "tomorrow 12:00", "doneBefore": "tomorrow 13:00" }),
            "12:00",
            "13:00",
        ),
        (
            "both",
            json!({
                "after": "tomorrow 10:00", "doneAfter": "tomorrow 12:00",
                "before": "tomorrow 11:00", "doneBefore": "tomorrow 13:00",
            }),
            "10:00",
            "11:00",
        ),
        (
            "null new names",
            json!({
                "after": null, "doneAfter": "tomorrow 12:00",
                "before": null, "doneBefore": "tomorrow 13:00",
            }),
            "12:00",
            "13:00",
        ),
        (
            "one of each",
            json!({ "after": "tomorrow 12:00", "doneBefore": "tomorrow 13:00" }),
            "12:00",
            "13:00",
        ),
    ] {
        let mut dropoff = times;
        dropoff["address"] = json!(address);
        let response = client
            .post("/api/deliveries", json!({ "dropoff": dropoff }))
            .await;

        mismatches.check_eq(case, response.status, 201);
        let dropoff = &response.json["dropoff"];
        for (member, time) in [
            ("after", after),
            ("doneAfter", after),
            ("before", before),
            ("doneBefore", before),
        ] {
            let expected = format!("2020-04-03T{time}:00+02:00");
            mismatches.check_eq(case, &dropoff[member], &json!(expected));
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pickup_without_a_time_must_end_the_travel_time_before_the_dropoff() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for pickup in [
        json!(null),
        json!({}),
        json!({ "address": "101 Rue de la Paix, Paris" }),
        json!({ "address": "45 Rue d'Ulm", "timeSlot": "", "before": null }),
    ] {
        for (member, value) in [
            ("before", json!("tomorrow 13:00")),
            ("timeSlot", json!("2020-04-03 11:00-13:00")),
        ] {
            let case = format!("{pickup} {member}");
            let mut body = draft_with(&format!("dropoff.{member}"), value);
            body["pickup"] = pickup.clone();
            let response = client.post("/api/deliveries", body).await;

            mismatches.check_eq(&case, response.status, 201);
            let created = &response.json;
            let travel = created["duration"].as_i64().map(SignedDuration::from_secs);
            let between = elapsed(&created["pickup"]["before"], &created["dropoff"]["before"]);
            mismatches.check_eq(&case, between, travel);
            let window = elapsed(&created["pickup"]["after"], &created["pickup"]["before"]);
            mismatches.check_eq(case, window, Some(SignedDuration::from_mins(15)));
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

/// "Zone: the store's, else the platform's, for reading times and for writing them."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_read_and_written_in_the_stores_time_zone_or_else_the_platforms() {
    let new_york = "America/New_York";
    let platform = Platform::start(Database::sqlite()).await;
    assert_new_york_times(&platform, Some(new_york)).await;
    platform.stop().await;
    let new_york_platform = Platform::start_with(Database::sqlite(), |settings| {
        settings.platform.timezone = TimeZone::get(new_york).unwrap();
    })
    .await;
    assert_new_york_times(&new_york_platform, None).await;
    new_york_platform.stop().await;
}

async fn assert_new_york_times(platform: &Platform, store_time_zone: Option<&str>) {
    let operator = platform.operator().await;
    let store = operator
        .create_store_with(CreateStoreRequest {
            display_name: "New York shop".to_owned(),
            time_zone: store_time_zone.map(str::to_owned),
            default_address: Some(AddressDraft {
                street_address: Some("45 Rue d'Ulm, Paris".to_owned()),
                ..AddressDraft::default()
            }),
            ..CreateStoreRequest::default()
        })
        .await;
    let scopes = ["deliveries", "tasks"];
    let credentials = operator.create_client(&store, &scopes).await;
    let client = platform.client_for(&credentials, &scopes).await;
    let mut mismatches = Mismatches::default();

    for (member, value, expected) in [
        ("before", "2020-04-03 13:00", "2020-04-03T13:00:00-04:00"),
        ("before", "2000-01-01 00:00", "2000-01-01T00:00:00-05:00"),
        (
            "before",
            "2020-04-03T13:00:00Z",
            "2020-04-03T09:00:00-04:00",
        ),
        // It is 05:00 in New York.
        ("before", "today 13:00", "2020-04-02T13:00:00-04:00"),
        ("before", "+2 hours", "2020-04-02T07:00:00-04:00"),
        (
            "timeSlot",
            "2020-04-03 11:00-13:00",
            "2020-04-03T13:00:00-04:00",
        ),
    ] {
        let response = client
            .post(
                "/api/deliveries",
                draft_with(&format!("dropoff.{member}"), json!(value)),
            )
            .await;
        mismatches.check_eq(value, response.status, 201);
        mismatches.check_eq(value, &response.json["dropoff"]["before"], &json!(expected));
        let created_at = &response.json["dropoff"]["createdAt"];
        mismatches.check_eq(value, created_at, &json!("2020-04-02T05:00:00-04:00"));
    }
    // The year 2000 in UTC and in Paris, still 1999 in New York.
    let draft = draft_with("dropoff.before", json!("2000-01-01T04:59:59Z"));
    let response = client.post("/api/deliveries", draft).await;
    mismatches.check_eq(
        "an instant of 1999",
        &response.json["violations"],
        &json!([{
            "propertyPath": "dropoff.before",
            "message": "was read as 1999-12-31T23:59:59-05:00[America/New_York]; must be from \
                        2000-01-01 in America/New_York to ten years from now",
            "code": "absurd_time",
        }]),
    );

    mismatches.assert_none();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contradictory_or_out_of_range_times_are_violations_and_past_times_are_not() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    // Valid times are from the year 2000 to ten years from now, 2030-04-02.
    for time in [
        "2019-01-01 10:00",
        "2000-01-01 00:00",
        "today 08:00",
        "2030-04-01 12:00",
    ] {
        let response = client
            .post("/api/deliveries", draft_with("dropoff.before", json!(time)))
            .await;
        mismatches.check_eq(time, response.status, 201);
    }
    for out_of_range in [
        "1999-12-31 12:00",
        "1970-01-01T00:00:00Z",
        "2030-04-03 12:00",
        "9999-12-31 23:59",
        "+4000 days",
        "+9999999999 hours",
        "+99999999999999999999999999 hours",
        "in 9223372036854775807 hours",
    ] {
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.before", json!(out_of_range)),
            )
            .await;
        mismatches.check_violations(out_of_range, &response, &["dropoff.before"]);
    }
    for out_of_range in [
        "1999-12-31 10:00-11:00",
        "2031-04-03 10:00-11:00",
        "2031-04-03T10:00:00Z/2031-04-03T11:00:00Z",
    ] {
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.timeSlot", json!(out_of_range)),
            )
            .await;
        mismatches.check_violations(out_of_range, &response, &["dropoff.timeSlot"]);
    }
    for after in ["tomorrow 13:00", "tomorrow 14:00", "2020-05-01 10:00"] {
        for member in ["after", "doneAfter"] {
            let path = format!("dropoff.{member}");
            let case = format!("{member} {after}");
            let response = client
                .post("/api/deliveries", draft_with(&path, json!(after)))
                .await;
            mismatches.check_violations(case, &response, &[&path]);
        }
    }
    for (member, late) in [
        ("before", "tomorrow 13:01"),
        ("before", "2020-05-01 10:00"),
        ("doneBefore", "tomorrow 13:01"),
        ("timeSlot", "2020-04-03 12:00-14:00"),
    ] {
        let mut body = draft();
        body["pickup"] = json!({ member: late });
        let response = client.post("/api/deliveries", body).await;
        let case = format!("pickup {member} {late}");
        mismatches.check_violations(case, &response, &[&format!("pickup.{member}")]);
    }
    // A route so long that the derived pickup time is out of range: accepted or a violation, never
    // a server error.
    let mut body = draft_with("dropoff.before", json!("2000-01-02 00:00"));
    body["dropoff"]["address"] = json!({ "streetAddress": "Antipodes", "latLng": [-48.8, -177.6] });
    let response = client.post("/api/deliveries", body).await;
    mismatches.check(
        "antipodes",
        [201, 400].contains(&response.status),
        response.status,
    );

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_of_a_time_says_what_would_be_right() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for (path, value, message) in [
        (
            "dropoff.before",
            "soon",
            "not understood: \"soon\"; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h",
        ),
        (
            "dropoff.before",
            "1999-12-31 23:59",
            "was read as 1999-12-31T23:59:00+01:00[Europe/Paris]; \
             must be from 2000-01-01 in Europe/Paris to ten years from now",
        ),
        (
            "dropoff.timeSlot",
            "/api/time_slots/x",
            "\"/api/time_slots/x\" is not a time slot: send the value of one of the choices \
             of GET /api/time_slots/choices",
        ),
        (
            "dropoff.after",
            "tomorrow 13:00",
            "must be earlier than the task's end, 2020-04-03T13:00:00+02:00",
        ),
        (
            "pickup.before",
            "tomorrow 13:01",
            "must not be later than the dropoff's end, 2020-04-03T13:00:00+02:00",
        ),
    ] {
        let mut body = draft();
        let (task, member) = path.split_once('.').unwrap();
        body[task][member] = json!(value);
        let response = client.post("/api/deliveries", body).await;

        mismatches.check_violations(value, &response, &[path]);
        let found = &response.json["violations"][0]["message"];
        mismatches.check_eq(value, found, &json!(message));
    }
    // The end of a pickup without a time is derived, so its violation shows it.
    let mut body = draft();
    body["pickup"] = json!({ "after": "tomorrow 13:00" });
    let response = client.post("/api/deliveries", body).await;
    let message = response.json["violations"][0]["message"].to_string();
    let case = "the derived end of the pickup";
    mismatches.check_violations(case, &response, &["pickup.after"]);
    mismatches.check(case, message.contains("end, 2020-04-03T1"), message);

    mismatches.assert_none();
    platform.stop().await;
}
