//! A store's service area: a circle, or a zone.

use serde_json::{Value, json};

use super::order_with;
use crate::harness::{
    ApiClient, Platform,
    all_in_one::stderr,
    assertions::assert_violations,
    definitions::{Definitions, zone},
};

/// A string in reach, and one four kilometres away.
const NEAR: &str = "48 Rue de Rivoli, 75004 Paris";
const FAR: &str = "99 Avenue des Champs-Élysées, 75008 Paris";
/// West, south, east, north: around `NEAR`, and around `FAR`.
const MARAIS: [f64; 4] = [2.34, 48.84, 2.37, 48.86];
const ETOILE: [f64; 4] = [2.28, 48.86, 2.32, 48.88];

/// Where the demo shop delivers from now on, as the operator is told.
async fn set(platform: &Platform, area: &str) -> Value {
    let store = platform.store.strip_prefix("stores/").unwrap();
    let area = format!("--service-area={area}");
    let set = platform
        .delivery_json(&["stores", "set", store, &area])
        .await;
    set["service_area"].clone()
}

/// The violation of an order, which is the same whether it is created, asserted or priced.
async fn violation(client: &ApiClient, order: &Value) -> (String, String, String) {
    let mut told = Vec::new();
    for path in [
        "/api/deliveries",
        "/api/deliveries/assert",
        "/api/retail_prices/calculate",
    ] {
        let answer = client.post(path, order.clone()).await;
        let violations = &answer.json["violations"];
        assert_violations(
            &answer,
            &[violations[0]["propertyPath"].as_str().unwrap_or_default()],
        );
        told.push(violations[0].clone());
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
    let text = |member: &str| told[0][member].as_str().unwrap().to_owned();
    (text("propertyPath"), text("message"), text("code"))
}

async fn is_accepted(client: &ApiClient, order: &Value) {
    for (path, status) in [
        ("/api/deliveries/assert", 200),
        ("/api/retail_prices/calculate", 200),
        ("/api/deliveries", 201),
    ] {
        client.post(path, order.clone()).await.expect(status);
    }
}

fn to(address: Value) -> Value {
    order_with("dropoff.address", address)
}

fn at(latitude: f64, longitude: f64) -> Value {
    json!({ "streetAddress": "By the river", "latLng": [latitude, longitude] })
}

/// As [`at`], in schema.org's words.
fn geo(latitude: f64, longitude: f64) -> Value {
    let geo = json!({ "latitude": latitude, "longitude": longitude });
    json!({ "streetAddress": "By the river", "geo": geo })
}

on_both_databases! {
    async fn outside_of_a_circle_is_a_violation_that_says_how_far(platform: &Platform) {
        let client = platform.client().await;

        assert_eq!(
            set(platform, "48.8554,2.3596,2km").await,
            json!({ "center": [48.8554, 2.3596], "radius_meters": 2000 })
        );

        is_accepted(&client, &to(json!(NEAR))).await;
        let (path, message, code) = violation(&client, &to(json!(FAR))).await;
        assert_eq!(path, "dropoff.address");
        assert_eq!(
            message,
            format!("found {FAR}, which is 4.6 km away: the store delivers within 2 km")
        );
        assert_eq!(code, "outside_service_area");

        assert_eq!(set(platform, "anywhere").await, Value::Null);
        is_accepted(&client, &to(json!(FAR))).await;
    }

    async fn outside_of_a_zone_is_a_violation_for_pickups_as_well(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let client = platform.client().await;

        assert_eq!(set(platform, "zone:Marais").await, json!({ "zone": "Marais" }));

        // The pickup, at the store's own address, is outside: that is always good.
        is_accepted(&client, &to(json!(NEAR))).await;
        is_accepted(&client, &to(at(48.85, 2.35))).await;
        is_accepted(&client, &to(geo(48.85, 2.35))).await;
        let outside = "is outside of \"Marais\", where the store delivers";
        for (address, path, message) in [
            (json!(FAR), "address", format!("found {FAR}, which {outside}")),
            (at(48.87, 2.3), "address.latLng", outside.to_owned()),
            (geo(48.87, 2.3), "address.geo", outside.to_owned()),
        ] {
            for task in ["dropoff", "pickup"] {
                let mut order = to(json!(NEAR));
                order[task]["address"] = address.clone();
                assert_eq!(
                    violation(&client, &order).await,
                    (format!("{task}.{path}"), message.clone(), "outside_service_area".to_owned())
                );
            }
        }
    }

    async fn an_operator_who_looks_an_address_up_for_a_store_is_told_the_same(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        set(platform, "zone:Marais").await;
        let store = format!("--store={}", platform.store);

        let near = platform.delivery_json(&["addresses", "search", NEAR, &store]).await;
        assert_eq!(near["found"]["address"], NEAR);
        let search = ["addresses", "search", FAR, &store];
        let far = platform.delivery_as(&platform.operator_client, &search).await;
        assert_eq!(far.status.code(), Some(1));
        assert_eq!(
            stderr(&far),
            format!("found {FAR}, which is outside of \"Marais\", where the store delivers\n")
        );
    }

    async fn a_pair_that_is_in_the_area_the_other_way_round_is_told_so(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let client = platform.client().await;

        for area in ["anywhere", "48.8554,2.3596,2km", "zone:Marais"] {
            set(platform, area).await;
            for (address, path) in [
                (at(2.35, 48.85), "dropoff.address.latLng"),
                (geo(2.35, 48.85), "dropoff.address.geo"),
            ] {
                assert_eq!(
                    violation(&client, &to(address)).await,
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

    async fn an_area_is_its_zone_wherever_that_is_moved_to(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        definitions.apply_zones(&zone("Town", MARAIS)).await.unwrap();
        let client = platform.client().await;
        set(platform, "zone:Town").await;
        assert_eq!(violation(&client, &to(json!(FAR))).await.0, "dropoff.address");

        definitions.apply_zones(&zone("Town", ETOILE)).await.unwrap();
        is_accepted(&client, &to(json!(FAR))).await;
        assert_eq!(violation(&client, &to(json!(NEAR))).await.0, "dropoff.address");

        // What does not speak of it leaves it there: no zone in use can be lost.
        definitions.apply_zones(&zone("Port", MARAIS)).await.unwrap();
        is_accepted(&client, &to(json!(FAR))).await;
    }

    async fn an_area_that_is_none_is_refused_and_changes_nothing(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let store = platform.store.strip_prefix("stores/").unwrap();
        let created = platform
            .delivery_json(&["stores", "create", "--name=Shop", "--service-area=zone:Marais"])
            .await;
        assert_eq!(created["service_area"], json!({ "zone": "Marais" }));
        let area = set(platform, "5km").await;
        assert_eq!(area, json!({ "center": null, "radius_meters": 5000 }));

        for (wrong, status, told) in [
            ("zone:marais", 1, "--service-area: there is no zone \"marais\": apply it first\n"),
            ("1m", 1, "--service-area: 1 m is no radius; it is from 100 m to 1000 km\n"),
            ("zone:", 2, "zone:NAME"),
            ("far", 2, "zone:NAME"),
        ] {
            let wrong = format!("--service-area={wrong}");
            for command in [&["stores", "create", "--name=X"][..], &["stores", "set", store]] {
                let arguments = [command, &[&wrong]].concat();
                let refused = platform.delivery_as(&platform.operator_client, &arguments).await;
                assert_eq!(refused.status.code(), Some(status), "{wrong}");
                assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
            }
        }
        let shown = platform.delivery_json(&["stores", "show", store]).await;
        assert_eq!(shown["service_area"], area);
        assert_eq!(platform.delivery_json(&["stores", "list"]).await.as_array().unwrap().len(), 2);
    }
}
