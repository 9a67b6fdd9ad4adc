//! The requests that the benchmark sends.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request,
    header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, HOST},
};
use serde_json::{Value, json};

pub(crate) type Body = Full<Bytes>;

/// The scope of a shop's tokens, as in a form.
pub(crate) const SHOP_SCOPE: &str = "deliveries%20tasks";

pub(crate) fn get(path: &str, authorization: &str) -> Request<Body> {
    Request::get(path)
        .header(HOST, "localhost")
        .header(AUTHORIZATION, authorization)
        .body(Body::default())
        .unwrap()
}

/// A page, as a browser requests it.
pub(crate) fn page(path: &str) -> Request<Body> {
    Request::get(path)
        .header(HOST, "localhost")
        .header(ACCEPT, "text/html,*/*;q=0.8")
        .header(ACCEPT_ENCODING, "gzip, deflate, br, zstd")
        .header(ACCEPT_LANGUAGE, "fr")
        .body(Body::default())
        .unwrap()
}

/// The completion of a task by its id.
pub(crate) fn complete(authorization: &str, task: &str) -> Request<Body> {
    Request::put(format!("/api/tasks/{task}/done"))
        .header(HOST, "localhost")
        .header(AUTHORIZATION, authorization)
        .body(Body::default())
        .unwrap()
}

pub(crate) fn token(credentials: &str, scope: &str) -> Request<Body> {
    Request::post("/oauth2/token")
        .header(HOST, "localhost")
        .header(AUTHORIZATION, credentials)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(format!(
            "grant_type=client_credentials&scope={scope}"
        )))
        .unwrap()
}

pub(crate) fn calculate(authorization: &str) -> Request<Body> {
    let body = json!({"dropoff": dropoff()});
    post(authorization, "/api/retail_prices/calculate", &body)
}

/// A create with addresses as text, which the platform has seen before.
pub(crate) fn create(authorization: &str) -> Request<Body> {
    let body = json!({
        "pickup": {"address": "44 Rue de Rivoli, 75004 Paris"},
        "dropoff": dropoff(),
    });
    post(authorization, "/api/deliveries", &body)
}

pub(crate) fn create_webhook(authorization: &str) -> Request<Body> {
    let body = json!({"event": "delivery.completed", "url": "http://127.0.0.1:9/"});
    post(authorization, "/api/webhooks", &body)
}

fn dropoff() -> Value {
    json!({"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"})
}

fn post(authorization: &str, path: &str, body: &Value) -> Request<Body> {
    Request::post(path)
        .header(HOST, "localhost")
        .header(AUTHORIZATION, authorization)
        .header(CONTENT_TYPE, "application/ld+json")
        .body(Body::from(body.to_string()))
        .unwrap()
}
