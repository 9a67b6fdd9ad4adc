//! A webhook receiver that counts notifications by delivery and `webhook-id`.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::caller::Caller;

/// The received notifications.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// IRI of the delivery → `webhook-id` → number of requests.
    pub(crate) deliveries: BTreeMap<String, BTreeMap<String, usize>>,
    /// The number of requests, without those refused.
    pub(crate) total: usize,
    /// The `webhook-id`s whose first request was refused.
    pub(crate) refused: BTreeSet<String>,
}

impl Received {
    /// The number of repeated notifications.
    pub(crate) fn repeats(&self) -> usize {
        let counts = self.deliveries.values().flat_map(BTreeMap::values);
        counts.map(|count| count - 1).sum()
    }

    /// The deliveries with more than one `webhook-id`.
    pub(crate) fn notified_twice(&self) -> BTreeSet<&String> {
        let repeated = self.deliveries.iter().filter(|(_, ids)| ids.len() > 1);
        repeated.map(|(delivery, _)| delivery).collect()
    }

    /// The expected deliveries without a notification.
    pub(crate) fn missing<'a>(&self, expected: &'a BTreeSet<String>) -> BTreeSet<&'a String> {
        expected
            .iter()
            .filter(|delivery| !self.deliveries.contains_key(*delivery))
            .collect()
    }
}

/// A receiver on loopback. It stops when the test ends.
pub(crate) struct CountingReceiver {
    url: String,
    received: watch::Receiver<Received>,
    /// Whether it responds.
    responding: watch::Sender<bool>,
    /// The first request of one `webhook-id` in this many is refused; 0: of none.
    refusal_interval: Arc<AtomicUsize>,
}

impl CountingReceiver {
    /// Starts a receiver that responds with 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, received) = watch::channel(Received::default());
        let responding = watch::Sender::new(true);
        let refusal_interval = Arc::<AtomicUsize>::default();
        let state = (sender, responding.subscribe(), refusal_interval.clone());
        tokio::spawn(accept(listener, state));
        Self {
            url,
            received,
            responding,
            refusal_interval,
        }
    }

    /// Starts a receiver that is notified of the shop's completed deliveries.
    pub(crate) async fn subscribed(shop: &Caller) -> Self {
        let receiver = Self::start().await;
        shop.subscribe(receiver.url()).await;
        receiver
    }

    /// Holds back responses, or sends them, also to requests already received.
    pub(crate) fn set_responding(&self, responding: bool) {
        self.responding.send_replace(responding);
    }

    /// Refuses (503) the first request of one `webhook-id` in this many from now on; 0: of none.
    pub(crate) fn refuse_one_in(&self, interval: usize) {
        self.refusal_interval.store(interval, Ordering::Relaxed);
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The notifications received so far.
    pub(crate) fn received(&self) -> Received {
        self.received.borrow().clone()
    }

    /// Waits until a condition on the received notifications holds; whether it did in time.
    pub(crate) async fn wait(
        &self,
        timeout: Duration,
        is_enough: impl FnMut(&Received) -> bool,
    ) -> bool {
        let mut received = self.received.clone();
        let enough = received.wait_for(is_enough);
        tokio::time::timeout(timeout, enough).await.is_ok()
    }
}

/// What is received, whether to respond, and which first requests to refuse.
type State = (
    watch::Sender<Received>,
    watch::Receiver<bool>,
    Arc<AtomicUsize>,
);

async fn accept(listener: TcpListener, state: State) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, state.clone()));
    }
}

async fn serve(stream: TcpStream, (received, responding, refusal_interval): State) {
    let service = service_fn(|request: Request<Incoming>| async {
        let id = request.headers()["webhook-id"].to_str().unwrap().to_owned();
        let mut status = 204;
        // An incomplete body is not counted.
        if let Ok(body) = request.into_body().collect().await {
            let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
            let object = body["data"]["object"].as_str().unwrap().to_owned();
            assert_eq!(body["data"]["event"], "delivery.completed");
            let interval = refusal_interval.load(Ordering::Relaxed);
            received.send_modify(|received| {
                let count = received.total + received.refused.len();
                let ids = received.deliveries.get(&object);
                let is_known =
                    received.refused.contains(&id) || ids.is_some_and(|ids| ids.contains_key(&id));
                if interval > 0 && count.is_multiple_of(interval) && !is_known {
                    received.refused.insert(id);
                    status = 503;
                } else {
                    let ids = received.deliveries.entry(object).or_default();
                    *ids.entry(id).or_default() += 1;
                    received.total += 1;
                }
            });
        }
        // Fails once the test has ended.
        let _ = responding.clone().wait_for(|responding| *responding).await;
        Ok::<_, Infallible>(
            Response::builder()
                .status(status)
                .body(Empty::<Bytes>::new())
                .unwrap(),
        )
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
