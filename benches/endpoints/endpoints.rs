//! The endpoints that are measured.

use hyper::{Request, http::HeaderValue};

use crate::{
    load::IDEMPOTENCY_KEY,
    platform::Platform,
    requests::{Body, SHOP_SCOPE, calculate, create, get, page, token},
};

/// The endpoint that creates deliveries.
pub(crate) const CREATE: &str = "`POST /api/deliveries`";

/// Likewise, each with an idempotency key.
pub(crate) const CREATE_WITH_KEY: &str = "`POST /api/deliveries` with a key";

/// An endpoint and the requests to send to it, in turn.
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<Request<Body>>,
}

impl Endpoint {
    /// All of them, with deliveries to read.
    pub(crate) async fn all(platform: &Platform) -> Vec<Self> {
        let authorization = &platform.authorization;
        let (mut tasks, mut pages) = (Vec::new(), Vec::new());
        for _ in 0..30 {
            let delivery = platform.fetch(create(authorization)).await;
            tasks.push(delivery["dropoff"]["@id"].as_str().unwrap().to_owned());
            // A program to compare with may be of before tracking pages.
            if let Some(url) = delivery["trackingUrl"].as_str() {
                let (_, token) = url.split_once("/t/").unwrap();
                pages.push(page(&format!("/t/{token}")));
            }
        }
        let mut with_key = create(authorization);
        let key = HeaderValue::from_static("another for each request");
        with_key.headers_mut().insert(IDEMPOTENCY_KEY, key);
        let get = |path: &str| get(path, authorization);
        let endpoint = |name, requests| Self { name, requests };
        let mut endpoints = vec![
            endpoint(
                "`GET /api/tasks/{id}`",
                tasks.iter().map(|task| get(task)).collect(),
            ),
            endpoint(
                "`POST /oauth2/token`",
                vec![token(&platform.credentials, SHOP_SCOPE)],
            ),
            endpoint(
                "`POST /api/retail_prices/calculate`",
                vec![calculate(authorization)],
            ),
            endpoint(
                "`GET /api/time_slots/choices`",
                vec![get("/api/time_slots/choices")],
            ),
            endpoint("`GET /api/deliveries` (30)", platform.lists.clone()),
            endpoint(CREATE, vec![create(authorization)]),
            endpoint(CREATE_WITH_KEY, vec![with_key]),
        ];
        if !pages.is_empty() {
            endpoints.push(endpoint("`GET /t/{token}`", pages));
        }
        endpoints
    }
}
