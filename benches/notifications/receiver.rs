//! Receivers with minimal overhead.

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
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

/// A receiver with the same response time for every request.
pub(super) struct Receiver {
    url: String,
    response_time: Duration,
    received: Arc<Received>,
}

#[derive(Default)]
struct Received {
    /// When the first notification of each delivery arrived, in microseconds since 1970.
    arrivals: Mutex<HashMap<String, i64>>,
    count: AtomicUsize,
}

impl Receiver {
    pub(super) async fn start(response_time: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let received = Arc::new(Received::default());
        let shared = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let _ = connection.set_nodelay(true);
                let received = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(|request| record(request, response_time, &received));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                });
            }
        });
        Self {
            url,
            response_time,
            received,
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The number of requests whose response time has passed.
    pub(super) fn count(&self) -> usize {
        self.received.count.load(Relaxed)
    }

    /// The rate of the next requests, per second, from the end of the first one's response time to
    /// the end of the last one's.
    #[expect(clippy::cast_precision_loss, reason = "rounded for display")]
    pub(super) async fn rate_of_next(&self, requests: usize) -> f64 {
        let before = self.count();
        self.wait_for_count(before + 1).await;
        let started = Instant::now();
        self.wait_for_count(before + requests).await;
        requests as f64 / started.elapsed().as_secs_f64()
    }

    /// Waits until [`Receiver::count`] is at least `count`.
    pub(super) async fn wait_for_count(&self, count: usize) {
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) fn response_time(&self) -> Duration {
        self.response_time
    }

    /// The latencies of the requests of `bare_client`, whose objects are the times of sending, in
    /// microseconds.
    pub(super) fn bare_latencies(&self) -> Vec<i64> {
        let arrivals = self.received.arrivals.lock().unwrap();
        arrivals
            .iter()
            .filter_map(|(sent, arrived)| Some(arrived - sent.parse::<i64>().ok()?))
            .collect()
    }

    /// When the first notification of a delivery arrived, in microseconds since 1970.
    pub(super) fn arrival(&self, iri: &str) -> Option<i64> {
        self.received.arrivals.lock().unwrap().get(iri).copied()
    }
}

async fn record(
    request: Request<Incoming>,
    response_time: Duration,
    received: &Received,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let now = now();
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(object) = json["data"]["object"].as_str() {
        let mut arrivals = received.arrivals.lock().unwrap();
        arrivals.entry(object.to_owned()).or_insert(now);
    }
    if !response_time.is_zero() {
        tokio::time::sleep(response_time).await;
    }
    received.count.fetch_add(1, Relaxed);
    Ok(Response::new(Empty::new()))
}

/// Starts a receiver that accepts connections and never responds. Returns its URL.
pub(super) async fn start_hanging_receiver() -> String {
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
pub(super) fn now() -> i64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
