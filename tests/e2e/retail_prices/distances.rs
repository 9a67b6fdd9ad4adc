//! How far it is: by a router where one is configured, by the straight line otherwise, and it is
//! said which.

use core_service::routing::Fallback;
use serde_json::{Value, json};

use super::{CALCULATE, far_order, order};
use crate::harness::{
    ApiClient, Database, Platform, RoutingServer,
    assertions::{assert_violations, json_ld},
};

const ASSERT: &str = "/api/deliveries/assert";
const NO_ROUTE: &str = r#"{"code":"NoRoute","message":"Impossible route between points"}"#;

async fn platform(router: &RoutingServer, fallback: Fallback) -> Platform {
    platform_on(Database::sqlite(), router, fallback).await
}

async fn platform_on(database: Database, router: &RoutingServer, fallback: Fallback) -> Platform {
    Platform::start_with(database, |settings| {
        settings.router.osrm_url = Some(router.url.parse().unwrap());
        settings.router.osrm_fallback = fallback;
    })
    .await
}

async fn distance(client: &ApiClient, order: Value) -> Value {
    of(&json_ld(&client.post(CALCULATE, order).await, 200))
}

/// How far it is, of a price or of a delivery.
fn of(told: &Value) -> Value {
    json!([told["distance"], told["duration"], told["distanceSource"]])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_says_how_far_it_is_and_the_straight_line_while_it_is_away() {
    let router = RoutingServer::start(1886.3, 260.6).await;
    let platform = platform(&router, Fallback::StraightLine).await;
    let client = platform.client().await;

    let known = json!([1886, 261, "osrm"]);
    assert_eq!(distance(&client, order()).await, known);
    let delivery = client.create_delivery(order()).await;
    assert_eq!(delivery["distance"], 1886);
    assert_eq!(
        router.questions(),
        ["/route/v1/bike/2.35300,48.85660;2.35510,48.85580?overview=false"]
    );

    router.answer(500, "");
    assert_eq!(distance(&client, order()).await, known);
    let estimate = distance(&client, far_order()).await;
    assert_eq!(estimate[2], "straight_line");
    assert!(estimate[0].as_u64().unwrap() > 8000, "{estimate}");

    router.answer(400, NO_ROUTE);
    for path in [CALCULATE, ASSERT, "/api/deliveries"] {
        let answer = client.post(path, far_order()).await;
        assert_violations(&answer, &["dropoff.address"]);
    }
    platform.stop().await;
}

/// "Falling back to the straight line is visible", and stays so: whoever was charged by an
/// estimate can see it on the delivery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_keeps_whose_distance_it_is_charged_by() {
    for database in [Some(Database::sqlite()), Database::postgres()] {
        let Some(database) = database else { continue };
        let router = RoutingServer::start(1886.3, 260.6).await;
        router.answer(500, "");
        let platform = platform_on(database, &router, Fallback::StraightLine).await;
        let client = platform.client().await;

        let promise = client.post(CALCULATE, far_order()).await.expect(200);
        let estimate = of(&promise);
        assert_eq!(estimate[2], "straight_line");
        let asserted = client.post(ASSERT, far_order()).await.expect(200);
        assert_eq!(of(&asserted), estimate);
        let estimated = client.create_delivery(far_order()).await;
        assert_eq!(of(&estimated), estimate);

        // The router is back, and what was promised stays.
        router.knows(9123.4, 1234.5);
        let mut at_price = far_order();
        at_price["retailPrice"] = promise["@id"].clone();
        let promised = client.create_delivery(at_price).await;
        assert_eq!(of(&promised), estimate);
        let known = client.create_delivery(far_order()).await;
        assert_eq!(of(&known), json!([9123, 1235, "osrm"]));
        for delivery in [&estimated, &promised, &known] {
            let read = client.get(delivery["@id"].as_str().unwrap()).await;
            assert_eq!(json_ld(&read, 200), *delivery);
        }
        platform.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_router_a_strict_platform_asks_to_try_again() {
    let router = RoutingServer::start(1.0, 1.0).await;
    router.answer(200, "<html>Welcome</html>");
    let platform = platform(&router, Fallback::Refuse).await;
    let client = platform.client().await;

    for path in [CALCULATE, ASSERT, "/api/deliveries"] {
        let answer = client.post(path, order()).await;
        let error = json_ld(&answer, 503);
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&json!("unavailable"), &json!(true))
        );
        assert_eq!(answer.header("retry-after"), "1");
    }

    // A router that fails again and again is left alone for ten seconds; so is this platform.
    router.answer(500, "");
    let mut delays = Vec::new();
    for _ in 0..6 {
        let answer = client.post(CALCULATE, order()).await;
        json_ld(&answer, 503);
        delays.push(answer.header("retry-after").parse::<u32>().unwrap());
    }
    assert!((2..=10).contains(&delays[5]), "{delays:?}");
    platform.stop().await;
}
