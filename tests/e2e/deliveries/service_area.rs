//! A store's service area: a circle, or a zone.

use serde_json::{Value, json};

use super::draft_with;
use crate::harness::{
    ApiClient, Platform,
    all_in_one::stderr,
    assertions::assert_violations,
    definitions::{Definitions, zone},
};

/// An address inside the service area, and one 4.6 km away.
const NEAR: &str = "48 Rue de Rivoli, 75004 Paris";
const FAR: &str = "99 Avenue des Champs-Élysées, 75008 Paris";
/// West, south, east, north: around `NEAR`, and around `FAR`.
const MARAIS: [f64; 4] = [2.34, 48.84, 2.37, 48.86];
const ETOILE: [f64; 4] = [2.28, 48.86, 2.32, 48.88];

/// Sets the demo store's service area and returns it as the command prints it.
async fn set_service_area(platform: &Platform, area: &str) -> Value {
    let store = platform.store.strip_prefix("stores/").unwrap();
    let area = format!("--service-area={area}");
    let store = platform
        .run_delivery_json(&["stores", "set", store, &area])
        .await;
    store["service_area"].clone()
}

/// The violation of a draft, which must be the same for create, assert and calculate.
async fn violation(client: &ApiClient, draft: &Value) -> (String, String, String) {
    let mut found = Vec::new();
    for path in [
        "/api/deliveries",
        "/api/deliveries/assert",
        "/api/retail_prices/calculate",
    ] {
        let response = client.post(path, draft.clone()).await;
        let violations = &response.json["violations"];
        assert_violations(
            &response,
            &[violations[0]["propertyPath"].as_str().unwrap_or_default()],
        );
        found.push(violations[0].clone());
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    let text = |member: &str| found[0][member].as_str().unwrap().to_owned();
    (text("propertyPath"), text("message"), text("code"))
}

async fn assert_accepted(client: &ApiClient, draft: &Value) {
    for (path, status) in [
        ("/api/deliveries/assert", 200),
        ("/api/retail_prices/calculate", 200),
        ("/api/deliveries", 201),
    ] {
        client.post(path, draft.clone()).await.expect(status);
    }
}

fn draft_to(address: Value) -> Value {
    draft_with("dropoff.address", address)
}

fn at(latitude: f64, longitude: f64) -> Value {
    json!({ "streetAddress": "By the river", "latLng": [latitude, longitude] })
}

/// Like [`at`], with schema.org's `geo`.
fn geo(latitude: f64, longitude: f64) -> Value {
    let geo = json!({ "latitude": latitude, "longitude": longitude });
    json!({ "streetAddress": "By the river", "geo": geo })
}

on_both_databases! {
    async fn an_address_outside_a_circle_is_a_violation_that_names_the_distance(platform: &Platform) {
        let client = platform.client().await;

        assert_eq!(
            set_service_area(platform, "48.8554,2.3596,2km").await,
            json!({ "center": [48.8554, 2.3596], "radius_meters": 2000 })
        );

        assert_accepted(&client, &draft_to(json!(NEAR))).await;
        let (path, message, code) = violation(&client, &draft_to(json!(FAR))).await;
        assert_eq!(path, "dropoff.address");
        assert_eq!(
            message,
            format!("found {FAR}, which is 4.6 km away: the store delivers within 2 km")
        );
        assert_eq!(code, "outside_service_area");

        assert_eq!(set_service_area(platform, "anywhere").await, Value::Null);
        assert_accepted(&client, &draft_to(json!(FAR))).await;
    }

    async fn an_address_outside_a_zone_is_a_violation_also_for_pickups(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let client = platform.client().await;

        assert_eq!(set_service_area(platform, "zone:Marais").await, json!({ "zone": "Marais" }));

        // The default pickup at the store's own address is outside, which is always allowed.
        assert_accepted(&client, &draft_to(json!(NEAR))).await;
        assert_accepted(&client, &draft_to(at(48.85, 2.35))).await;
        assert_accepted(&client, &draft_to(geo(48.85, 2.35))).await;
        let outside = "is outside of \"Marais\", where the store delivers";
        for (address, path, message) in [
            (json!(FAR), "address", format!("found {FAR}, which {outside}")),
            (at(48.87, 2.3), "address.latLng", outside.to_owned()),
            (geo(48.87, 2.3), "address.geo", outside.to_owned()),
        ] {
            for task in ["dropoff", "pickup"] {
                let mut draft = draft_to(json!(NEAR));
                draft[task]["address"] = address.clone();
                assert_eq!(
                    violation(&client, &draft).await,
                    (format!("{task}.{path}"), message.clone(), "outside_service_area".to_owned())
                );
            }
        }
    }

    async fn an_operators_address_search_for_a_store_reports_the_same_violation(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        set_service_area(platform, "zone:Marais").await;
        let store = format!("--store={}", platform.store);

        let near = platform.run_delivery_json(&["addresses", "search", NEAR, &store]).await;
        assert_eq!(near["found"]["address"], NEAR);
        let search = ["addresses", "search", FAR, &store];
        let far = platform.run_delivery_output(&search).await;
        assert_eq!(far.status.code(), Some(1));
        assert_eq!(
            stderr(&far),
            format!("found {FAR}, which is outside of \"Marais\", where the store delivers\n")
        );
    }

    async fn swapped_coordinates_are_a_violation_that_names_the_swap(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let client = platform.client().await;

        for area in ["anywhere", "48.8554,2.3596,2km", "zone:Marais"] {
            set_service_area(platform, area).await;
            for (address, path) in [
                (at(2.35, 48.85), "dropoff.address.latLng"),
                (geo(2.35, 48.85), "dropoff.address.geo"),
            ] {
                assert_eq!(
                    violation(&client, &draft_to(address)).await,
                    (
                        path.to_owned(),
                        "latitude 2.35 and longitude 48.85 seem swapped: that is far from where \
                         the store delivers, and latitude 48.85, longitude 2.35 is not"
                            .to_owned(),
                        "invalid_point".to_owned()
                    )
                );
            }
        }
    }

    async fn a_service_area_follows_changes_of_its_zone(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(&zone("Town", MARAIS)).await.unwrap();
        let client = platform.client().await;
        set_service_area(platform, "zone:Town").await;
        assert_eq!(violation(&client, &draft_to(json!(FAR))).await.0, "dropoff.address");

        definitions.apply_zones(&zone("Town", ETOILE)).await.unwrap();
        assert_accepted(&client, &draft_to(json!(FAR))).await;
        assert_eq!(violation(&client, &draft_to(json!(NEAR))).await.0, "dropoff.address");

        // Applying other zones keeps this one.
        definitions.apply_zones(&zone("Port", MARAIS)).await.unwrap();
        assert_accepted(&client, &draft_to(json!(FAR))).await;
    }

    async fn an_invalid_service_area_is_rejected_and_changes_nothing(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let store = platform.store.strip_prefix("stores/").unwrap();
        let created = platform
            .run_delivery_json(&["stores", "create", "--name=Shop", "--service-area=zone:Marais"])
            .await;
        assert_eq!(created["service_area"], json!({ "zone": "Marais" }));
        let area = set_service_area(platform, "5km").await;
        assert_eq!(area, json!({ "center": null, "radius_meters": 5000 }));

        for (invalid, status, expected) in [
            ("zone:marais", 1, "--service-area: there is no zone \"marais\": apply it first\n"),
            ("1m", 1, "--service-area: a radius of 1 m is out of range; give 100 m to 1000 km\n"),
            ("zone:", 2, "zone:NAME"),
            ("far", 2, "zone:NAME"),
        ] {
            let argument = format!("--service-area={invalid}");
            for command in [&["stores", "create", "--name=X"][..], &["stores", "set", store]] {
                let arguments = [command, &[&argument]].concat();
                let rejected = platform.run_delivery_output(&arguments).await;
                assert_eq!(rejected.status.code(), Some(status), "{argument}");
                assert!(stderr(&rejected).contains(expected), "{}", stderr(&rejected));
            }
        }
        let shown = platform.run_delivery_json(&["stores", "show", store]).await;
        assert_eq!(shown["service_area"], area);
        assert_eq!(platform.run_delivery_json(&["stores", "list"]).await.as_array().unwrap().len(), 2);
    }
}
