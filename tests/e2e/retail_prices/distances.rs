//! How far it is: by a router where one is configured, by the straight line otherwise, and it is
//! said which.

use core_service::routing::Fallback;
use serde_json::{Value, json};

use super::{CALCULATE, far_order, order};
use crate::harness::{
    ApiClient, Database, Platform, RoutingServer,
    assertions::{assert_violations, json_ld},
};

const NO_ROUTE: &str = r#"{"code":"NoRoute","message":"Impossible route between points"}"#;

async fn platform(router: &RoutingServer, fallback: Fallback) -> Platform {
    Platform::start_with(Database::sqlite(), |settings| {
        settings.router.osrm_url = Some(router.url.parse().unwrap());
        settings.router.osrm_fallback = fallback;
    })
    .await
}

async fn distance(client: &ApiClient, order: Value) -> Value {
    let price = json_ld(&client.post(CALCULATE, order).await, 200);
    json!([
        price["distance"],
        price["duration"],
        price["distanceSource"]
    ])
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
    for path in [CALCULATE, "/api/deliveries/assert", "/api/deliveries"] {
        let answer = client.post(path, far_order()).await;
        assert_violations(&answer, &["dropoff.address"]);
    }
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_router_a_strict_platform_asks_to_try_again() {
    let router = RoutingServer::start(1.0, 1.0).await;
    router.answer(200, "<html>Welcome</html>");
    let platform = platform(&router, Fallback::Refuse).await;
    let client = platform.client().await;

    for path in [CALCULATE, "/api/deliveries/assert", "/api/deliveries"] {
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
