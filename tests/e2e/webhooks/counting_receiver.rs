//! A receiver that counts requests by their path. It responds with 500 below `/failing`, else with
//! 204, after a given time and while its responses are not held back.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch};

/// Far longer than what is waited for takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// It stops when the test ends.
#[derive(Clone)]
pub(super) struct CountingReceiver {
    base_url: String,
    counts: watch::Sender<HashMap<String, usize>>,
    /// How many requests have no response yet, and the most so far.
    open: watch::Sender<(usize, usize)>,
    held: watch::Sender<bool>,
}

impl CountingReceiver {
    /// Starts receivers that all count together, each at a host and port of its own.
    pub(super) async fn start_several(count: usize, response_time: Duration) -> Vec<Self> {
        let counts = watch::Sender::new(HashMap::new());
        let (open, held) = (watch::Sender::new((0, 0)), watch::Sender::new(false));
        let mut receivers = Vec::new();
        for _ in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let receiver = Self {
                base_url: format!("http://{}", listener.local_addr().unwrap()),
                counts: counts.clone(),
                open: open.clone(),
                held: held.clone(),
            };
            receivers.push(receiver.clone());
            let receiver = Arc::new(receiver);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let receiver = Arc::clone(&receiver);
                    tokio::spawn(async move {
                        let service =
                            service_fn(|request| receiver.respond(request, response_time));
                        let _ = hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    });
                }
            });
        }
        receivers
    }

    pub(super) async fn start() -> Self {
        let mut receivers = Self::start_several(1, Duration::ZERO).await;
        receivers.remove(0)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    pub(super) fn count(&self, path: &str) -> usize {
        self.counts.borrow().get(path).copied().unwrap_or_default()
    }

    /// The most requests that were open at once since the last call.
    pub(super) fn take_max_open(&self) -> usize {
        let mut taken = 0;
        self.open.send_modify(|(open, max)| {
            taken = *max;
            *max = *open;
        });
        taken
    }

    /// Holds back the responses, or releases them.
    pub(super) fn hold_responses(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Waits until a path has had as many requests.
    pub(super) async fn wait_for(&self, path: &str, count: usize) {
        let mut counts = self.counts.subscribe();
        let reached = counts.wait_for(|counts| counts.get(path) >= Some(&count));
        let reached = tokio::time::timeout(TIMEOUT, reached).await;
        assert!(reached.is_ok(), "{path} had {} requests", self.count(path));
    }

    /// Waits until any path has had a request.
    pub(super) async fn wait_for_any(&self) {
        let mut counts = self.counts.subscribe();
        let reached = counts.wait_for(|counts| !counts.is_empty());
        let reached = tokio::time::timeout(TIMEOUT, reached).await;
        assert!(reached.is_ok(), "no request arrived");
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        response_time: Duration,
    ) -> Result<Response<Empty<Bytes>>, Infallible> {
        let path = request.uri().path().to_owned();
        let _ = request.into_body().collect().await;
        let status = if path.starts_with("/failing") {
            500
        } else {
            204
        };
        self.open.send_modify(|(open, max)| {
            *open += 1;
            *max = (*max).max(*open);
        });
        self.counts
            .send_modify(|counts| *counts.entry(path).or_default() += 1);
        tokio::time::sleep(response_time).await;
        // Fails once the test has ended.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        self.open.send_modify(|(open, _)| *open -= 1);
        Ok(Response::builder()
            .status(status)
            .body(Empty::new())
            .unwrap())
    }
}
