//! A receiver of webhooks that keeps count: what it was told of, under which `webhook-id`, how
//! often.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
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

/// How often each notification of each delivery came: IRI of the delivery → `webhook-id` →
/// count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) deliveries: BTreeMap<String, BTreeMap<String, usize>>,
    /// Of all notifications.
    pub(crate) total: usize,
}

impl Told {
    /// How many came that had come before.
    pub(crate) fn repeats(&self) -> usize {
        let counts = self.deliveries.values().flat_map(BTreeMap::values);
        counts.map(|count| count - 1).sum()
    }

    /// The deliveries whose completion is another event each time it is told.
    pub(crate) fn completed_twice(&self) -> BTreeSet<&String> {
        let several = self.deliveries.iter().filter(|(_, ids)| ids.len() > 1);
        several.map(|(delivery, _)| delivery).collect()
    }

    /// What of these it does not know of.
    pub(crate) fn missing<'a>(&self, owed: &'a BTreeSet<String>) -> BTreeSet<&'a String> {
        owed.iter()
            .filter(|delivery| !self.deliveries.contains_key(*delivery))
            .collect()
    }
}

/// A receiver on loopback. It stops when the test ends.
pub(crate) struct Receiver {
    url: String,
    told: watch::Receiver<Told>,
    /// Whether it answers.
    answers: watch::Sender<bool>,
}

impl Receiver {
    /// Starts one that answers 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, told) = watch::channel(Told::default());
        let answers = watch::Sender::new(true);
        tokio::spawn(accept(listener, sender, answers.clone()));
        Self { url, told, answers }
    }

    /// Leaves what comes from now on unanswered, or answers it and what has come.
    pub(crate) fn answer(&self, answers: bool) {
        self.answers.send_replace(answers);
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it was told of until now.
    pub(crate) fn so_far(&self) -> Told {
        self.told.borrow().clone()
    }

    /// Waits until something is true of what it was told; whether it became so in time.
    pub(crate) async fn wait(
        &self,
        deadline: Duration,
        is_enough: impl FnMut(&Told) -> bool,
    ) -> bool {
        let mut told = self.told.clone();
        let enough = told.wait_for(is_enough);
        tokio::time::timeout(deadline, enough).await.is_ok()
    }
}

async fn accept(listener: TcpListener, told: watch::Sender<Told>, answers: watch::Sender<bool>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, told.clone(), answers.subscribe()));
    }
}

async fn serve(stream: TcpStream, told: watch::Sender<Told>, answers: watch::Receiver<bool>) {
    let service = service_fn(|request: Request<Incoming>| async {
        let id = request.headers()["webhook-id"].to_str().unwrap().to_owned();
        // A sender that breaks off has sent nothing.
        if let Ok(body) = request.into_body().collect().await {
            let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
            let object = body["data"]["object"].as_str().unwrap().to_owned();
            assert_eq!(body["data"]["event"], "delivery.completed");
            told.send_modify(|told| {
                let ids = told.deliveries.entry(object).or_default();
                *ids.entry(id).or_default() += 1;
                told.total += 1;
            });
        }
        // It ends with the test.
        let _ = answers.clone().wait_for(|answers| *answers).await;
        Ok::<_, Infallible>(
            Response::builder()
                .status(204)
                .body(Empty::<Bytes>::new())
                .unwrap(),
        )
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
