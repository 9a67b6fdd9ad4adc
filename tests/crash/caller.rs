//! A REST client behind a load balancer, which tries the next gateway if a connection is refused
//! and retries nothing else. It sends nothing more to a gateway that shuts down, like a balancer
//! that polls `/readyz`: a connection that arrives when the listener closes is reset.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use delivery::Credentials;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER},
    http,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::failure::Failure;

/// Longer than the gateway's own timeout.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// How long an idle connection is kept. Shorter than the `--drain-grace` of a cluster's gateways:
/// else a gateway that shuts down closes a connection just as a request is sent on it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a gateway that shuts down is out of rotation. Longer than its `--drain-grace`.
const OUT_OF_ROTATION: Duration = Duration::from_secs(6);

const DELIVERIES: &str = "/api/deliveries";

#[derive(Clone)]
pub(crate) struct Caller {
    base_urls: Arc<[String]>,
    /// The number of requests so far, for round robin.
    requests: Arc<AtomicUsize>,
    /// When each gateway last asked to close the connection.
    closed: Arc<Mutex<Vec<Option<Instant>>>>,
    token: Arc<str>,
    /// Sent with each request but those for tokens.
    traceparent: Option<&'static str>,
    /// `Authorization` and form of a token request.
    credentials: Arc<(String, String)>,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Caller {
    /// A caller with a token for these scopes.
    pub(crate) async fn authorized(
        base_urls: &[String],
        credentials: &Credentials,
        scopes: &str,
    ) -> Self {
        let authorized = Self::try_authorized(base_urls, credentials, scopes).await;
        authorized.unwrap()
    }

    /// A caller with a token for these scopes, or why it got none.
    pub(crate) async fn try_authorized(
        base_urls: &[String],
        credentials: &Credentials,
        scopes: &str,
    ) -> Result<Self, Failure> {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("scope", scopes)
            .finish();
        let basic = format!("{}:{}", credentials.api_key, credentials.api_secret);
        let basic = format!("Basic {}", STANDARD.encode(basic));
        let mut caller = Self {
            base_urls: base_urls.into(),
            requests: Arc::default(),
            closed: Arc::new(Mutex::new(vec![None; base_urls.len()])),
            token: "".into(),
            traceparent: None,
            credentials: Arc::new((basic, form)),
            http: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .build_http(),
        };
        let issued = caller.request_token().await?;
        caller.token = issued["access_token"].as_str().unwrap().into();
        Ok(caller)
    }

    /// Requests another token.
    pub(crate) async fn request_token(&self) -> Result<Value, Failure> {
        let (basic, form) = &*self.credentials;
        self.fetch(|base_url| {
            Request::post(format!("{base_url}/oauth2/token"))
                .header(AUTHORIZATION, basic)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Full::new(Bytes::from(form.clone())))
                .unwrap()
        })
        .await
    }

    /// The same caller, without a load balancer.
    pub(crate) fn with_base_url(&self, base_url: &str) -> Self {
        Self {
            base_urls: [base_url.to_owned()].into(),
            closed: Arc::new(Mutex::new(vec![None])),
            ..self.clone()
        }
    }

    /// The status of a health check.
    pub(crate) async fn probe(&self, path: &str) -> u16 {
        let response = self.send(|base_url| {
            let request = Request::get(format!("{base_url}{path}"));
            request.body(Full::default()).unwrap()
        });
        let response = tokio::time::timeout(TIMEOUT, response).await;
        response.unwrap().unwrap().status().as_u16()
    }

    /// The same caller, with a W3C trace context.
    pub(crate) fn with_traceparent(&self, traceparent: &'static str) -> Self {
        Self {
            traceparent: Some(traceparent),
            ..self.clone()
        }
    }

    pub(crate) fn set_token(&mut self, token: &str) {
        self.token = token.into();
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Creates a delivery and returns it.
    pub(crate) async fn create_delivery(&self) -> Result<Value, Failure> {
        let draft = draft(&Uuid::now_v7().to_string());
        self.call(Method::POST, DELIVERIES, &draft).await
    }

    /// Creates a delivery with an idempotency key, which is also the comment for the courier, and
    /// returns it.
    pub(crate) async fn create_delivery_with_key(&self, key: &str) -> Result<Value, Failure> {
        self.post(DELIVERIES, &draft(key), Some(key)).await
    }

    /// Posts a body, with an idempotency key if there is one.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> Result<Value, Failure> {
        let body = Bytes::from(body.to_string());
        self.fetch(|base_url| {
            let mut request = self.request(&Method::POST, base_url, path);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            request.body(Full::new(body.clone())).unwrap()
        })
        .await
    }

    /// Cancels the delivery with this IRI.
    pub(crate) async fn cancel(&self, delivery: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, delivery, &Value::Null).await
    }

    /// The IRIs of all deliveries of the shop, as listed.
    pub(crate) async fn deliveries(&self) -> Result<Vec<String>, Failure> {
        let mut deliveries = Vec::new();
        let mut next = Some(format!("{DELIVERIES}?itemsPerPage=100"));
        while let Some(path) = next {
            let page = self.get(&path).await?;
            let members = page["hydra:member"].as_array().unwrap().iter();
            deliveries.extend(members.map(|member| iri(member).to_owned()));
            next = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
        }
        Ok(deliveries)
    }

    /// Completes the task with this IRI.
    pub(crate) async fn complete(&self, task: &str) -> Result<Value, Failure> {
        self.call(Method::PUT, &format!("{task}/done"), &json!({}))
            .await
    }

    /// Completes both tasks of a delivery.
    pub(crate) async fn complete_delivery(&self, delivery: &Value) {
        for task in ["pickup", "dropoff"] {
            self.complete(iri(&delivery[task])).await.unwrap();
        }
    }

    /// Reads the resource with this IRI.
    pub(crate) async fn get(&self, iri: &str) -> Result<Value, Failure> {
        self.call(Method::GET, iri, &Value::Null).await
    }

    /// Registers a webhook for completed deliveries.
    pub(crate) async fn subscribe(&self, url: &str) {
        let webhook = json!({ "event": "delivery.completed", "url": url });
        self.call(Method::POST, "/api/webhooks", &webhook)
            .await
            .unwrap();
    }

    /// Requests a test send to the webhook with this IRI.
    pub(crate) async fn test_webhook(&self, webhook: &str) -> Result<Value, Failure> {
        self.call(Method::POST, &format!("{webhook}/test"), &json!({}))
            .await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let body = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        self.fetch(|base_url| {
            let request = self.request(&method, base_url, path);
            request.body(Full::new(body.clone())).unwrap()
        })
        .await
    }

    fn request(&self, method: &Method, base_url: &str, path: &str) -> http::request::Builder {
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{base_url}{path}"))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/ld+json");
        match self.traceparent {
            Some(traceparent) => request.header("traceparent", traceparent),
            None => request,
        }
    }

    async fn fetch(
        &self,
        request: impl Fn(&str) -> Request<Full<Bytes>>,
    ) -> Result<Value, Failure> {
        tokio::time::timeout(TIMEOUT, async { read(self.send(request).await?).await })
            .await
            .unwrap_or(Err(Failure::Timeout))
    }

    async fn send(
        &self,
        request: impl Fn(&str) -> Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut refused = None;
        for gateway in self.rotation() {
            match self.http.request(request(&self.base_urls[gateway])).await {
                Ok(response) => {
                    if response.headers().contains_key(CONNECTION) {
                        self.closed.lock().unwrap()[gateway] = Some(Instant::now());
                    }
                    return Ok(response);
                }
                Err(error) if error.is_connect() => refused = Some(error),
                Err(error) => return Err(Failure::ConnectionLost(error)),
            }
        }
        Err(Failure::ConnectionRefused(refused.unwrap()))
    }

    /// The gateways in the order in which they are tried: in turn, last those that shut down.
    fn rotation(&self) -> Vec<usize> {
        let count = self.base_urls.len();
        let first = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut gateways: Vec<_> = (first..first + count).map(|index| index % count).collect();
        let closed = self.closed.lock().unwrap();
        gateways.sort_by_key(|gateway| {
            closed[*gateway].filter(|closed| closed.elapsed() < OUT_OF_ROTATION)
        });
        gateways
    }
}

pub(crate) fn iri(resource: &Value) -> &str {
    resource["@id"].as_str().unwrap()
}

/// A delivery with a comment for the courier.
fn draft(comments: &str) -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": {
            "address": "48 Rue de Rivoli, 75004 Paris",
            "before": "tomorrow 13:00",
            "comments": comments,
        },
    })
}

async fn read(response: Response<Incoming>) -> Result<Value, Failure> {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let body = response.into_body().collect().await;
    let body = body.map_err(Failure::IncompleteResponse)?.to_bytes();
    if !status.is_success() {
        return Err(Failure::ErrorResponse {
            status: status.as_u16(),
            retry_after,
            body: String::from_utf8_lossy(&body).into_owned(),
        });
    }
    if status == StatusCode::NO_CONTENT {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_slice(&body).unwrap())
}
