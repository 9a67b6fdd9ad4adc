//! A store's service area.

use serde_json::{Value, json};

use super::order_with;
use crate::harness::all_in_one::{AllInOne, operator, operator_json, stderr};

/// A string in reach, and one five kilometres away.
const NEAR: &str = "48 Rue de Rivoli, 75004 Paris";
const FAR: &str = "99 Avenue des Champs-Élysées, 75008 Paris";

fn place(order: &Value, running: &AllInOne) -> Value {
    running.call("/api/deliveries", &["-d", &order.to_string()])
}

#[test]
fn outside_the_area_is_a_violation_that_says_how_far() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let running = AllInOne::start(data_dir, &[]);
    let store = running.text("/store");
    let set = |area: &str| {
        let area = format!("--service-area={area}");
        operator_json(data_dir, &["stores", "set", store, &area])["service_area"].clone()
    };
    let first = |answer: &Value| {
        let violation = &answer["violations"][0];
        (
            violation["propertyPath"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            violation["message"].as_str().unwrap_or_default().to_owned(),
        )
    };

    let area = set("48.8554,2.3596,2km");
    assert_eq!(
        area,
        json!({ "center": [48.8554, 2.3596], "radius_meters": 2000 })
    );
    let near = place(&order_with("dropoff.address", json!(NEAR)), &running);
    assert!(near["@id"].is_string(), "{near}");
    let far = place(&order_with("dropoff.address", json!(FAR)), &running);
    let (path, message) = first(&far);
    assert_eq!(path, "dropoff.address");
    assert!(
        message.ends_with("km away: the store delivers within 2 km"),
        "{message}"
    );
    let point = order_with("dropoff.address.latLng", json!([48.8738, 2.295]));
    assert_eq!(first(&place(&point, &running)).0, "dropoff.address.latLng");

    // Inside the area only the other way round.
    let swapped = order_with("dropoff.address.latLng", json!([2.3596, 48.8554]));
    let (path, message) = first(&place(&swapped, &running));
    assert_eq!(path, "dropoff.address.latLng");
    assert!(
        message.contains("[48.8554, 2.3596] is near it"),
        "{message}"
    );

    assert_eq!(set("anywhere"), Value::Null);
    let far = place(&order_with("dropoff.address", json!(FAR)), &running);
    assert!(far["@id"].is_string(), "{far}");
    let wrong = operator(data_dir, &["stores", "set", store, "--service-area=1m"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("--service-area"),
        "{}",
        stderr(&wrong)
    );
}
