//! Receivers that cost as little as one can, and a client that does nothing but send.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::latency::Latencies;

/// One whose answers all take the same time.
pub(super) struct Receiver {
    url: String,
    takes: Duration,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    /// When each delivery was first heard of, in microseconds since 1970.
    arrivals: Mutex<HashMap<String, i64>>,
    count: AtomicUsize,
}

impl Receiver {
    pub(super) async fn start(takes: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Heard::default());
        let accepting = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let _ = connection.set_nodelay(true);
                let heard = Arc::clone(&accepting);
                tokio::spawn(async move {
                    let service = service_fn(|request| note(request, takes, &heard));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                });
            }
        });
        Self { url, takes, heard }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// How many requests have come.
    pub(super) fn count(&self) -> usize {
        self.heard.count.load(Relaxed)
    }

    /// Waits until so many have come.
    pub(super) async fn has_heard(&self, count: usize) {
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// How long an answer takes.
    pub(super) fn takes(&self) -> Duration {
        self.takes
    }

    /// When a delivery was first heard of, in microseconds since 1970.
    pub(super) fn arrival(&self, iri: &str) -> Option<i64> {
        self.heard.arrivals.lock().unwrap().get(iri).copied()
    }
}

async fn note(
    request: Request<Incoming>,
    takes: Duration,
    heard: &Heard,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let now = now();
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(object) = json["data"]["object"].as_str() {
        let mut arrivals = heard.arrivals.lock().unwrap();
        arrivals.entry(object.to_owned()).or_insert(now);
    }
    if !takes.is_zero() {
        tokio::time::sleep(takes).await;
    }
    heard.count.fetch_add(1, Relaxed);
    Ok(Response::new(Empty::new()))
}

/// One that takes connections and never answers.
pub(super) async fn hanging() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = listener.accept().await {
            open.push(connection);
        }
        Ok::<_, Infallible>(())
    });
    url
}

/// Microseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// A client that does nothing but send, over a number of connections.
pub(super) struct BareClient {
    http: Client<HttpConnector, Full<Bytes>>,
    connections: usize,
}

impl BareClient {
    pub(super) fn new(connections: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(connections)
            .build(connector);
        Self { http, connections }
    }

    /// Sends so many requests, each connection's one after the other; how long that took.
    pub(super) async fn send(&self, url: &str, count: usize) -> Duration {
        let begin = Instant::now();
        stream::iter(0..count)
            .for_each_concurrent(self.connections, |_| self.post(url, "none"))
            .await;
        begin.elapsed()
    }

    /// Sends so many requests, one at each tick; how soon they came.
    pub(super) async fn paced(
        &self,
        receiver: &Receiver,
        count: usize,
        pace: Duration,
    ) -> Latencies {
        let mut tick = tokio::time::interval(pace);
        let mut latencies = Vec::with_capacity(count);
        for number in 0..count {
            tick.tick().await;
            let object = number.to_string();
            let begin = now();
            self.post(receiver.url(), &object).await;
            latencies.push(receiver.arrival(&object).expect("it was answered") - begin);
        }
        latencies.into_iter().collect()
    }

    async fn post(&self, url: &str, object: &str) {
        let body = format!(r#"{{"data":{{"object":"{object}","event":"delivery.completed"}}}}"#);
        let request = Request::post(url).body(Full::from(body)).unwrap();
        let response = self.http.request(request).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
}
