//! `warnings`: what is valid in a request that creates or validates a delivery, and may be a mistake.

use geocoding::Precision;
use serde_json::{Value, json};

use super::{draft, draft_with};
use crate::harness::{Database, Mismatches, Platform, assertions::json_ld};

const ASSERT: &str = "/api/deliveries/assert";

fn warning(path: &str, message: &str, code: &str) -> Value {
    json!({ "propertyPath": path, "message": message, "code": code })
}

/// That of a distance for which the demo shop has no rule.
fn unpriced() -> Value {
    let bounds = [3, 5, 10, 20];
    let rules = bounds.map(|km| format!("Up to {km} km: distance <= {km}000 is false"));
    let message = format!("the delivery has no price: {}", rules.join("; "));
    warning("", &message, "price_not_calculated")
}

fn far(kilometers: u32) -> Value {
    let message = format!("is {kilometers} km from the pickup, in a straight line");
    warning("dropoff.address", &message, "far_away")
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
            warning("dropof", "is ignored: there is no such member; did you mean dropoff?", "unknown_member"),
            warning("dropoff.weigth", "is ignored: there is no such member; did you mean weight?", "unknown_member"),
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

    /// So a client sees why another one is missing.
    async fn a_misspelt_member_is_named_in_an_error_too(platform: &Platform) {
        let client = platform.client().await;
        let similar = |path, name| {
            let message = format!("is ignored: there is no such member; did you mean {name}?");
            json!([warning(path, &message, "unknown_member")])
        };
        let slot = json!({"dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "timeslot": "2020-04-02 12:00-14:00"}});
        let mut mismatches = Mismatches::default();

        for (path, body, member, name, violation) in [
            ("/api/deliveries", json!({"dropOff": {}}), "dropOff", "dropoff", "dropoff"),
            ("/api/retail_prices/calculate", slot, "dropoff.timeslot", "timeSlot", "dropoff.before"),
            ("/api/webhooks", json!({"events": "delivery.completed", "url": "http://127.0.0.1:9/"}), "events", "event", "event"),
        ] {
            let response = client.post(path, body).await;
            mismatches.check_error(path, &response, 400);
            mismatches.check_eq(path, response.violation_paths(), vec![violation]);
            mismatches.check_eq(path, &response.json["warnings"], &similar(member, name));
        }
        mismatches.assert_none();
    }

    /// With its own code and explanation each; the next request is of 2 April.
    async fn what_is_accepted_and_looks_wrong_causes_a_warning(platform: &Platform) {
        let client = platform.client().await;
        let zero = warning(
            "dropoff.address.latLng",
            "is latitude 0, longitude 0, often sent for an unknown location",
            "zero_point",
        );
        let not_offered = warning(
            "dropoff.timeSlot",
            "the slot 2020-12-25 03:00-04:00 is not offered: the store offers no slot with this start and end; the next available slot is 2020-04-02 12:00-14:00",
            "slot_not_offered",
        );
        let postcode = warning(
            "dropoff.address",
            "was found with the postcode 75004, not 75001",
            "other_postcode",
        );
        let mut mismatches = Mismatches::default();

        for (dropoff, expected) in [
            (json!({"address": {"latLng": [40.7484, -73.9857]}}), json!([unpriced(), far(5832)])),
            (json!({"address": {"latLng": [0, 0]}}), json!([zero, unpriced(), far(5439)])),
            (json!({"timeSlot": "2020-12-25 03:00-04:00"}), json!([not_offered])),
            (json!({"address": "48 Rue de Rivoli, 75001 Paris"}), json!([postcode])),
            (json!({"timeSlot": "2020-04-02 12:00-14:00"}), Value::Null),
        ] {
            let mut draft = draft();
            for (member, value) in dropoff.as_object().unwrap() {
                draft["dropoff"][member] = value.clone();
            }
            for (path, status) in [(ASSERT, 200), ("/api/deliveries", 201)] {
                let response = json_ld(&client.post(path, draft.clone()).await, status);
                mismatches.check_eq(&dropoff, &response["warnings"], &expected);
            }
        }
        mismatches.assert_none();
    }

    /// A degree of latitude is 111.195 km.
    async fn a_dropoff_is_far_away_beyond_200_kilometers_unless_the_store_has_a_service_area(platform: &Platform) {
        let client = platform.client().await;
        let at = |latitude: f64| json!({ "latLng": [latitude, 2.3522] });
        let warnings = async |latitude| {
            let mut draft = draft_with("pickup", json!({ "address": at(47.0) }));
            draft["dropoff"]["address"] = at(latitude);
            let preview = json_ld(&client.post(ASSERT, draft.clone()).await, 200);
            let created = json_ld(&client.post("/api/deliveries", draft).await, 201);
            assert_eq!(created["warnings"], preview["warnings"]);
            preview["warnings"].clone()
        };

        // 199.996 km and 200.007 km.
        assert_eq!(warnings(48.7986).await, json!([unpriced()]));
        assert_eq!(warnings(48.7987).await, json!([unpriced(), far(200)]));
        assert_eq!(warnings(50.0).await, json!([unpriced(), far(334)]));

        let set = ["stores", "set", &platform.store, "--service-area=48.8566,2.3522,900km"];
        platform.run_delivery(&set).await;
        for latitude in [48.7986, 48.7987, 50.0] {
            assert_eq!(warnings(latitude).await, json!([unpriced()]), "{latitude}");
        }
    }

    /// `GET /api/stores/{id}` says so.
    async fn a_store_can_refuse_what_otherwise_causes_a_warning(platform: &Platform) {
        let client = platform.client().await;
        let store = format!("/api/{}", platform.store);
        let refused = async || client.get(&store).await.expect(200)["refusedWarnings"].clone();
        let mut far = draft();
        far["dropoff"]["address"] = json!({"latLng": [40.7484, -73.9857]});
        assert_eq!(refused().await, json!([]));

        let set = ["stores", "set", &platform.store, "--unpriced=refuse"];
        assert_eq!(platform.run_delivery_json(&set).await["unpriced"], "refuse");

        assert_eq!(refused().await, json!(["price_not_calculated"]));
        let mut calculated = client.post("/api/retail_prices/calculate", far.clone()).await;
        for path in [ASSERT, "/api/deliveries"] {
            let mut response = client.post(path, far.clone()).await;
            let code = response.json["code"].as_str();
            assert_eq!((response.status, code), (400, Some("price_not_calculated")));
            for json in [&mut response.json, &mut calculated.json] {
                json["requestId"] = Value::Null;
            }
            assert_eq!(response.json, calculated.json, "{path}");
        }
        client.create_delivery(draft()).await;

        let set = ["stores", "set", &platform.store, "--unpriced=accept"];
        platform.run_delivery(&set).await;
        assert_eq!(refused().await, json!([]));
        client.create_delivery(far).await;
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
            (json!({ "timeSlot": "2020-04-02 12:00-14:00", "before": "yesterday" }), Value::Null),
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
