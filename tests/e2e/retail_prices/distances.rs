//! Distances: from the configured router or, otherwise, the straight line; with their source.

use core_service::Fallback;
use serde_json::{Value, json};

use super::{CALCULATE, draft, far_draft};
use crate::harness::{
    ApiClient, Database, Platform, UpstreamServer,
    assertions::{assert_violations, json_ld},
};

const ASSERT: &str = "/api/deliveries/assert";
const NO_ROUTE: &str = r#"{"code":"NoRoute","message":"Impossible route between points"}"#;

async fn platform(router: &UpstreamServer, fallback: Fallback) -> Platform {
    platform_on(Database::sqlite(), router, fallback).await
}

async fn platform_on(database: Database, router: &UpstreamServer, fallback: Fallback) -> Platform {
    Platform::start_with(database, |settings| {
        settings.router.osrm_url = Some(router.url.parse().unwrap());
        settings.router.osrm_fallback = fallback;
    })
    .await
}

async fn distance(client: &ApiClient, draft: Value) -> Value {
    distance_of(&json_ld(&client.post(CALCULATE, draft).await, 200))
}

/// Distance, duration and source of a price or a delivery.
fn distance_of(resource: &Value) -> Value {
    json!([
        resource["distance"],
        resource["duration"],
        resource["distanceSource"]
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn distances_are_from_the_router_and_straight_lines_while_it_is_unavailable() {
    let router = UpstreamServer::start_router(1886.3, 260.6).await;
    let platform = platform(&router, Fallback::StraightLine).await;
    let client = platform.client().await;

    let known = json!([1886, 261, "osrm"]);
    assert_eq!(distance(&client, draft()).await, known);
    let delivery = client.create_delivery(draft()).await;
    assert_eq!(delivery["distance"], 1886);
    assert_eq!(
        router.requests(),
        ["/route/v1/bike/2.35300,48.85660;2.35510,48.85580?overview=false"]
    );

    router.respond_with(500, "");
    // The route is cached.
    assert_eq!(distance(&client, draft()).await, known);
    let estimate = distance(&client, far_draft()).await;
    assert_eq!(estimate[2], "straight_line");
    assert!(estimate[0].as_u64().unwrap() > 8000, "{estimate}");

    router.respond_with(400, NO_ROUTE);
    for path in [CALCULATE, ASSERT, "/api/deliveries"] {
        let response = client.post(path, far_draft()).await;
        assert_violations(&response, &["dropoff.address"]);
    }
    platform.stop().await;
}

/// Also after the router is available again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_keeps_the_source_of_the_distance_it_is_charged_for() {
    for database in Database::each() {
        let router = UpstreamServer::start_router(1886.3, 260.6).await;
        router.respond_with(500, "");
        let platform = platform_on(database, &router, Fallback::StraightLine).await;
        let client = platform.client().await;

        let quote = client.post(CALCULATE, far_draft()).await.expect(200);
        let estimate = distance_of(&quote);
        assert_eq!(estimate[2], "straight_line");
        let asserted = client.post(ASSERT, far_draft()).await.expect(200);
        assert_eq!(distance_of(&asserted), estimate);
        let estimated = client.create_delivery(far_draft()).await;
        assert_eq!(distance_of(&estimated), estimate);

        // The router is available again; the quoted distance stays.
        router.set_route(9123.4, 1234.5);
        let mut with_quote = far_draft();
        with_quote["retailPrice"] = quote["@id"].clone();
        let quoted = client.create_delivery(with_quote).await;
        assert_eq!(distance_of(&quoted), estimate);
        let known = client.create_delivery(far_draft()).await;
        assert_eq!(distance_of(&known), json!([9123, 1235, "osrm"]));
        for delivery in [&estimated, &quoted, &known] {
            let read = client.get(delivery["@id"].as_str().unwrap()).await;
            assert_eq!(json_ld(&read, 200), *delivery);
        }
        platform.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_fallback_an_unavailable_router_is_a_retryable_error() {
    let router = UpstreamServer::start_router(1.0, 1.0).await;
    router.respond_with(200, "<html>Welcome</html>");
    let platform = platform(&router, Fallback::Refuse).await;
    let client = platform.client().await;

    for path in [CALCULATE, ASSERT, "/api/deliveries"] {
        let response = client.post(path, draft()).await;
        let error = json_ld(&response, 503);
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&json!("unavailable"), &json!(true))
        );
        assert_eq!(response.header("retry-after"), "1");
    }

    // After repeated failures the circuit breaker stays open for ten seconds.
    router.respond_with(500, "");
    let mut delays = Vec::new();
    for _ in 0..6 {
        let response = client.post(CALCULATE, draft()).await;
        json_ld(&response, 503);
        delays.push(response.header("retry-after").parse::<u32>().unwrap());
    }
    assert!((2..=10).contains(&delays[5]), "{delays:?}");
    platform.stop().await;
}
