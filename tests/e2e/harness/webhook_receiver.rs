//! A shop's webhook receiver: records requests byte for byte and responds as configured.

use std::{
    io,
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, mpsc, watch},
};

/// Far longer than a notification takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One attempt of a notification, as received.
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

    /// The specification's check: Base64 of HMAC-SHA256 over the body as received, keyed with the
    /// text of the secret, equals `X-Service-Signature`.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&self.body);
        self.header("x-service-signature") == STANDARD.encode(mac.finalize().into_bytes())
    }

    /// The check of the Standard Webhooks library, with the same secret.
    pub(crate) fn has_standard_signature(&self, secret: &str) -> bool {
        standardwebhooks::Webhook::new(secret)
            .unwrap()
            .verify(&self.body, &self.headers)
            .is_ok()
    }
}

/// A receiver on loopback. It stops when the test ends.
pub(crate) struct WebhookReceiver {
    url: String,
    response: Arc<StdMutex<Option<ConfiguredResponse>>>,
    held: watch::Sender<bool>,
    arrived: Mutex<mpsc::UnboundedReceiver<Notification>>,
}

impl WebhookReceiver {
    /// Starts a receiver that responds with 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let response = Arc::new(StdMutex::new(None));
        let (sender, arrived) = mpsc::unbounded_channel();
        let held = watch::Sender::new(false);
        let shared = (response.clone(), held.subscribe());
        tokio::spawn(accept(listener, shared, sender));
        let receiver = Self {
            url,
            response,
            held,
            arrived: Mutex::new(arrived),
        };
        receiver.respond_with(204);
        receiver
    }

    /// The receiver's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sets the status of the responses from now on.
    pub(crate) fn respond_with(&self, status: u16) {
        self.respond_with_body(status, "");
    }

    /// Sets the status and the body of the responses from now on.
    pub(crate) fn respond_with_body(&self, status: u16, body: &'static str) {
        *self.response.lock().unwrap() = Some(ConfiguredResponse {
            status,
            header: None,
            body,
        });
    }

    /// Sets the status and a header of the responses from now on.
    pub(crate) fn respond_with_header(&self, status: u16, name: &'static str, value: &str) {
        *self.response.lock().unwrap() = Some(ConfiguredResponse {
            status,
            header: Some((name, value.to_owned())),
            body: "",
        });
    }

    /// Closes the connection of each request from now on, without a response.
    pub(crate) fn close_connections(&self) {
        *self.response.lock().unwrap() = None;
    }

    /// Holds back the responses, or releases them.
    pub(crate) fn hold_responses(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// The next attempt of a notification, in order of arrival. Fails after 30 s.
    pub(crate) async fn next_notification(&self) -> Notification {
        let mut arrived = self.arrived.lock().await;
        tokio::time::timeout(TIMEOUT, arrived.recv())
            .await
            .expect("a notification should arrive within 30 s")
            .expect("the receiver runs until the test ends")
    }

    /// Takes the attempts received so far.
    pub(crate) async fn received(&self) -> Vec<Notification> {
        let mut arrived = self.arrived.lock().await;
        std::iter::from_fn(|| arrived.try_recv().ok()).collect()
    }
}

#[derive(Clone)]
struct ConfiguredResponse {
    status: u16,
    header: Option<(&'static str, String)>,
    body: &'static str,
}

/// The configured response, `None` for a closed connection; and whether responses are held back.
type SharedResponse = (
    Arc<StdMutex<Option<ConfiguredResponse>>>,
    watch::Receiver<bool>,
);

async fn accept(
    listener: TcpListener,
    shared: SharedResponse,
    sender: mpsc::UnboundedSender<Notification>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, shared.clone(), sender.clone()));
    }
}

async fn serve(
    stream: TcpStream,
    (configured, held): SharedResponse,
    sender: mpsc::UnboundedSender<Notification>,
) {
    let service = service_fn(|request: Request<Incoming>| async {
        let (parts, body) = request.into_parts();
        // Read before the test sees the request and configures the next response.
        let configured = configured.lock().unwrap().clone();
        // An incomplete body is not recorded.
        if let Ok(body) = body.collect().await {
            let _ = sender.send(Notification {
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                headers: parts.headers,
                body: body.to_bytes(),
            });
        }
        // Fails once the test has ended.
        let _ = held.clone().wait_for(|held| !held).await;
        let Some(configured) = configured else {
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        let mut response = Response::builder().status(configured.status);
        if let Some((name, value)) = configured.header {
            response = response.header(name, value);
        }
        let body = Full::new(Bytes::from(configured.body));
        Ok::<_, io::Error>(response.body(body).unwrap())
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
