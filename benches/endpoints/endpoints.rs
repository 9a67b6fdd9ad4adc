//! The requests that are measured.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use serde_json::{Value, json};

use crate::platform::Platform;

pub(crate) type Body = Full<Bytes>;

/// The endpoint that creates deliveries.
pub(crate) const CREATE: &str = "`POST /api/deliveries`";

/// An endpoint and the requests to send to it, in turn.
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<Request<Body>>,
}

impl Endpoint {
    /// All of them, with deliveries to read.
    pub(crate) async fn all(platform: &Platform) -> Vec<Self> {
        let mut tasks = Vec::new();
        for _ in 0..30 {
            let delivery = platform.fetch(create(platform)).await;
            tasks.push(delivery["dropoff"]["@id"].as_str().unwrap().to_owned());
        }
        let get = |path: &str| get(path, &platform.authorization);
        let endpoint = |name, requests| Self { name, requests };
        vec![
            endpoint(
                "`GET /api/tasks/{id}`",
                tasks.iter().map(|task| get(task)).collect(),
            ),
            endpoint("`POST /oauth2/token`", vec![token(platform)]),
            endpoint(
                "`POST /api/retail_prices/calculate`",
                vec![calculate(platform)],
            ),
            endpoint(
                "`GET /api/time_slots/choices`",
                vec![get("/api/time_slots/choices")],
            ),
            endpoint("`GET /api/deliveries` (30)", vec![get("/api/deliveries")]),
            endpoint(CREATE, vec![create(platform)]),
        ]
    }
}

pub(crate) fn get(path: &str, authorization: &str) -> Request<Body> {
    Request::get(path)
        .header(HOST, "localhost")
        .header(AUTHORIZATION, authorization)
        .body(Body::default())
        .unwrap()
}

pub(crate) fn token(platform: &Platform) -> Request<Body> {
    Request::post("/oauth2/token")
        .header(HOST, "localhost")
        .header(AUTHORIZATION, &platform.credentials)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(
            "grant_type=client_credentials&scope=deliveries%20tasks",
        ))
        .unwrap()
}

fn calculate(platform: &Platform) -> Request<Body> {
    let body = json!({"dropoff": dropoff()});
    post(platform, "/api/retail_prices/calculate", &body)
}

/// A create with addresses as text, which the platform has seen before.
pub(crate) fn create(platform: &Platform) -> Request<Body> {
    let body = json!({
        "pickup": {"address": "44 Rue de Rivoli, 75004 Paris"},
        "dropoff": dropoff(),
    });
    post(platform, "/api/deliveries", &body)
}

pub(crate) fn create_webhook(platform: &Platform) -> Request<Body> {
    let body = json!({"event": "delivery.completed", "url": "http://127.0.0.1:9/"});
    post(platform, "/api/webhooks", &body)
}

fn dropoff() -> Value {
    json!({"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"})
}

fn post(platform: &Platform, path: &str, body: &Value) -> Request<Body> {
    Request::post(path)
        .header(HOST, "localhost")
        .header(AUTHORIZATION, &platform.authorization)
        .header(CONTENT_TYPE, "application/ld+json")
        .body(Body::from(body.to_string()))
        .unwrap()
}
