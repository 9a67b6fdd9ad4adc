//! An HTTP client without the platform: the baseline for its rates and latencies.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::{
    latency::Latencies,
    receiver::{Receiver, now},
};

/// Sends requests over a fixed number of connections.
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

    /// Sends a number of requests, sequentially on each connection. Returns the total time.
    pub(super) async fn send(&self, url: &str, count: usize) -> Duration {
        let started = Instant::now();
        stream::iter(0..count)
            .for_each_concurrent(self.connections, |_| self.post(url, "none"))
            .await;
        started.elapsed()
    }

    /// Sends a number of requests at a constant rate. Returns the latencies.
    pub(super) async fn send_paced(
        &self,
        receiver: &Receiver,
        count: usize,
        interval: Duration,
    ) -> Latencies {
        let mut tick = tokio::time::interval(interval);
        let mut latencies = Vec::with_capacity(count);
        for number in 0..count {
            tick.tick().await;
            let object = number.to_string();
            let started = now();
            self.post(receiver.url(), &object).await;
            latencies.push(receiver.arrival(&object).expect("the request arrived") - started);
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
