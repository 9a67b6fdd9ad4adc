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

use super::rate;

/// One that answers at once.
pub(super) struct Receiver {
    url: String,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    /// When each delivery was first heard of, in microseconds since 1970.
    arrivals: Mutex<HashMap<String, i64>>,
    count: AtomicUsize,
    /// How many connections are open, and how many were at most.
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Heard::default());
        let accepting = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let _ = connection.set_nodelay(true);
                let heard = Arc::clone(&accepting);
                tokio::spawn(async move {
                    let open = heard.open.fetch_add(1, Relaxed) + 1;
                    heard.most_open.fetch_max(open, Relaxed);
                    let service = service_fn(|request| note(request, &heard));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                    heard.open.fetch_sub(1, Relaxed);
                });
            }
        });
        Self { url, heard }
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

    /// How many connections were open at most.
    pub(super) fn connections(&self) -> usize {
        self.heard.most_open.load(Relaxed)
    }

    /// When a delivery was first heard of, in microseconds since 1970.
    pub(super) fn arrival(&self, iri: &str) -> Option<i64> {
        self.heard.arrivals.lock().unwrap().get(iri).copied()
    }
}

async fn note(
    request: Request<Incoming>,
    heard: &Heard,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(object) = json["data"]["object"].as_str() {
        let mut arrivals = heard.arrivals.lock().unwrap();
        arrivals.entry(object.to_owned()).or_insert(now);
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

/// How many requests a second a client makes that does nothing else, over so many connections.
pub(super) async fn bare_client(url: &str, count: usize, connections: usize) -> f64 {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(connections)
        .build(connector);
    let body = Bytes::from_static(br#"{"data":{"object":"none","event":"delivery.completed"}}"#);
    let begin = Instant::now();
    stream::iter(0..count)
        .for_each_concurrent(connections, |_| async {
            let request = Request::post(url).body(Full::new(body.clone())).unwrap();
            let response = client.request(request).await.unwrap();
            response.into_body().collect().await.unwrap();
        })
        .await;
    rate(count, begin.elapsed())
}
