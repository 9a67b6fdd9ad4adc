//! An HTTP client without the platform, in a process of its own: the baseline with which the
//! rates and latencies of the platform are compared.

use std::{
    process::{Child, Command},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::receiver::now;

/// The first argument of a process that runs a client.
const ARGUMENT: &str = "bare-client";

/// What a client sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) count: usize,
    /// How many requests are sent at once, each on a connection of its own.
    pub(super) connections: usize,
    /// The time from one request to the next, on one connection; zero to send without pause.
    pub(super) interval: Duration,
}

impl Requests {
    /// Sends them from another process. The object of each body is the time at which it was sent,
    /// in microseconds since 1970.
    pub(super) fn spawn(self, url: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args([ARGUMENT, url])
            .args([self.count.to_string(), self.connections.to_string()])
            .arg(self.interval.as_micros().to_string())
            .spawn()
            .unwrap()
    }

    /// The URL and the requests of this process, if it is to run a client.
    pub(super) fn from_arguments() -> Option<(String, Self)> {
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let [argument, url, count, connections, interval] = arguments.as_slice() else {
            return None;
        };
        (argument == ARGUMENT).then(|| {
            let requests = Self {
                count: count.parse().unwrap(),
                connections: connections.parse().unwrap(),
                interval: Duration::from_micros(interval.parse().unwrap()),
            };
            (url.clone(), requests)
        })
    }

    pub(super) async fn send(self, url: &str) {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(self.connections)
            .build(connector);
        if self.interval.is_zero() {
            stream::iter(0..self.count)
                .for_each_concurrent(self.connections, |_| post(&http, url))
                .await;
            return;
        }
        let mut tick = tokio::time::interval(self.interval);
        for _ in 0..self.count {
            tick.tick().await;
            post(&http, url).await;
        }
    }
}

async fn post(http: &Client<HttpConnector, Full<Bytes>>, url: &str) {
    let sent = now();
    let body = format!(r#"{{"data":{{"object":"{sent}","event":"delivery.completed"}}}}"#);
    let request = Request::post(url).body(Full::from(body)).unwrap();
    let response = http.request(request).await.unwrap();
    response.into_body().collect().await.unwrap();
}
