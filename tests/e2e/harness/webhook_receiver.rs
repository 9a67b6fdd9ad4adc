//! A shop's receiver of webhooks: remembers the very bytes that came, answers as it is told.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Empty};
use hyper::{
    HeaderMap, Request, Response, body::Incoming, header::RETRY_AFTER, service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, mpsc, watch},
};

/// Far beyond what a notification takes: who waits this long waits for nothing.
const DEADLINE: Duration = Duration::from_secs(30);

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Notification {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The body, byte for byte.
    pub(crate) body: Bytes,
}

impl Notification {
    /// The text of a header; empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The body read as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The specification's check: Base64 of HMAC-SHA256 over the body as it came, keyed with
    /// the text of the secret, equals `X-Service-Signature`.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&self.body);
        self.header("x-service-signature") == STANDARD.encode(mac.finalize().into_bytes())
    }

    /// The check of the Standard Webhooks' own library, with the same secret.
    pub(crate) fn is_standard(&self, secret: &str) -> bool {
        standardwebhooks::Webhook::new(secret)
            .unwrap()
            .verify(&self.body, &self.headers)
            .is_ok()
    }
}

/// A receiver on loopback. It stops when the test ends.
pub(crate) struct WebhookReceiver {
    url: String,
    answer: Arc<StdMutex<Answer>>,
    held: watch::Sender<bool>,
    arrived: Mutex<mpsc::UnboundedReceiver<Notification>>,
}

impl WebhookReceiver {
    /// Starts one that answers 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let answer = Arc::new(StdMutex::new((204, None)));
        let (sender, arrived) = mpsc::unbounded_channel();
        let held = watch::Sender::new(false);
        let answers = (answer.clone(), held.subscribe());
        tokio::spawn(accept(listener, answers, sender));
        Self {
            url,
            answer,
            held,
            arrived: Mutex::new(arrived),
        }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it answers from now on.
    pub(crate) fn answer_with(&self, status: u16) {
        *self.answer.lock().unwrap() = (status, None);
    }

    /// What it answers from now on, and when it says that it may be called again.
    pub(crate) fn ask_to_come_again(&self, status: u16, retry_after: &str) {
        *self.answer.lock().unwrap() = (status, Some(retry_after.to_owned()));
    }

    /// Keeps back its answers, or lets them go.
    pub(crate) fn hold_answers(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// The next notification, in the order they came. Fails after a deadline.
    pub(crate) async fn next_notification(&self) -> Notification {
        let mut arrived = self.arrived.lock().await;
        tokio::time::timeout(DEADLINE, arrived.recv())
            .await
            .expect("no notification came")
            .expect("the receiver runs as long as the test")
    }

    /// What has come, and was not taken by `next_notification`, until now.
    pub(crate) async fn so_far(&self) -> Vec<Notification> {
        let mut arrived = self.arrived.lock().await;
        std::iter::from_fn(|| arrived.try_recv().ok()).collect()
    }
}

/// A status, and `Retry-After` if there is one.
type Answer = (u16, Option<String>);

/// The next answer, and whether answers are kept back.
type Answers = (Arc<StdMutex<Answer>>, watch::Receiver<bool>);

async fn accept(
    listener: TcpListener,
    answers: Answers,
    sender: mpsc::UnboundedSender<Notification>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, answers.clone(), sender.clone()));
    }
}

async fn serve(
    stream: TcpStream,
    (answer, held): Answers,
    sender: mpsc::UnboundedSender<Notification>,
) {
    let service = service_fn(|request: Request<Incoming>| async {
        let (parts, body) = request.into_parts();
        // Before the test hears of it, and changes the answer for the next.
        let (status, retry_after) = answer.lock().unwrap().clone();
        let mut answer = Response::builder().status(status);
        if let Some(retry_after) = retry_after {
            answer = answer.header(RETRY_AFTER, retry_after);
        }
        // A sender that breaks off has sent nothing.
        if let Ok(body) = body.collect().await {
            let _ = sender.send(Notification {
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                headers: parts.headers,
                body: body.to_bytes(),
            });
        }
        // The test may be over.
        let _ = held.clone().wait_for(|held| !held).await;
        Ok::<_, Infallible>(answer.body(Empty::<Bytes>::new()).unwrap())
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
