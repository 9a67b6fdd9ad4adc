//! Serves `/healthz`, `/readyz` and `/metrics` on a listener of its own, apart from the APIs.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    listen::{ListenError, accept, listen},
    metrics::Exposition,
};

/// Limit for a readiness check; probes have short timeouts, often one second.
const CHECK_TIMEOUT: Duration = Duration::from_millis(900);

/// Limit for a connection, which serves one request. Peers that do not send their request or do not
/// read its response must not keep probes out.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of connections; probes need few. A further one replaces the oldest, so that
/// peers which only connect do not keep probes out.
const MAX_CONNECTIONS: usize = 256;

/// A younger connection is not replaced, so that a burst of connections does not disconnect a probe
/// before it is answered. Further connections wait in the listener's queue. Silent peers
/// that open more than 5,120 a second fill the queue.
const MIN_LIFETIME: Duration = Duration::from_millis(50);

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The readiness check of a program.
pub trait Readiness: Send + Sync + 'static {
    /// Returns the reason, in one sentence, if the program is not ready.
    fn check(&self) -> impl Future<Output = Result<(), String>> + Send;
}

/// A bound listener; it answers once [`HealthListener::run`] is called. Clones share it.
#[derive(Clone)]
pub struct HealthListener {
    listener: Arc<TcpListener>,
    addr: SocketAddr,
    connection_timeout: Duration,
    min_lifetime: Duration,
}

/// The accepted connections, which are closed when this is dropped.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// With the instants at which they were accepted.
    oldest_first: VecDeque<(Instant, AbortHandle)>,
}

impl Connections {
    fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks.spawn(connection);
        self.oldest_first.push_back((Instant::now(), handle));
    }

    /// Waits until there are no more than [`MAX_CONNECTIONS`]. Disconnects the oldest if none ends
    /// until that has lived for `min_lifetime`.
    async fn make_room(&mut self, min_lifetime: Duration) {
        while self.tasks.try_join_next().is_some() {}
        self.oldest_first
            .retain(|(_, handle)| !handle.is_finished());
        while self.tasks.len() > MAX_CONNECTIONS
            && let Some((accepted, oldest)) = self.oldest_first.front()
        {
            let deadline = *accepted + min_lifetime;
            if timeout_at(deadline, self.tasks.join_next()).await.is_err() {
                oldest.abort();
                self.tasks.join_next().await;
                self.oldest_first.pop_front();
            }
        }
    }
}

impl HealthListener {
    /// Binds the listener, if the program has an address for it.
    pub fn bind(addr: Option<SocketAddr>) -> Result<Option<Self>, ListenError> {
        let Some(addr) = addr else {
            return Ok(None);
        };
        let flag = "--health-listen";
        let listener = listen(addr, flag)?;
        let bound = listener.local_addr();
        Ok(Some(Self {
            addr: bound.map_err(|source| ListenError { addr, flag, source })?,
            listener: Arc::new(listener),
            connection_timeout: CONNECTION_TIMEOUT,
            min_lifetime: MIN_LIFETIME,
        }))
    }

    /// The bound address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves requests until the future is dropped; also during a shutdown, when the program is
    /// alive but not ready.
    pub async fn run(self, readiness: Arc<impl Readiness>, metrics: Exposition) {
        tracing::info!(addr = %self.addr, "serving /healthz and /readyz");
        let mut connections = Connections::default();
        self.answer(&mut connections, readiness, metrics).await;
    }

    /// Like [`HealthListener::run`], without metrics, while a program starts: until the token is cancelled.
    pub async fn run_until(self, started: CancellationToken, readiness: Arc<impl Readiness>) {
        let mut connections = Connections::default();
        let answers = self.answer(&mut connections, readiness, Exposition::new());
        started.run_until_cancelled(answers).await;
        // A probe that has connected gets its answer.
        connections.tasks.detach_all();
    }

    async fn answer(
        &self,
        connections: &mut Connections,
        readiness: Arc<impl Readiness>,
        metrics: Exposition,
    ) {
        let metrics = Arc::new(metrics);
        loop {
            let stream = accept(&self.listener).await;
            let readiness = Arc::clone(&readiness);
            let metrics = Arc::clone(&metrics);
            let limit = self.connection_timeout;
            connections.spawn(async move {
                let served = serve(stream, readiness, metrics);
                if timeout(limit, served).await.is_err() {
                    tracing::debug!("connection closed: its request took too long");
                }
            });
            connections.make_room(self.min_lifetime).await;
        }
    }
}

async fn serve(stream: TcpStream, readiness: Arc<impl Readiness>, metrics: Arc<Exposition>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let readiness = Arc::clone(&readiness);
        let metrics = Arc::clone(&metrics);
        async move {
            let (method, path) = (request.method(), request.uri().path());
            Ok::<_, Infallible>(respond(method, path, &*readiness, &metrics, CHECK_TIMEOUT).await)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection closed with an error");
    }
}

async fn respond(
    method: &Method,
    path: &str,
    readiness: &impl Readiness,
    metrics: &Exposition,
    check_timeout: Duration,
) -> Response<Full<Bytes>> {
    if !["/healthz", "/readyz", "/metrics"].contains(&path) {
        let message = "not found: use /healthz, /readyz or /metrics";
        return text(StatusCode::NOT_FOUND, message);
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed: use GET or HEAD",
        );
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if path == "/metrics" {
        return response(StatusCode::OK, OPEN_METRICS, metrics.render().await);
    }
    if path == "/healthz" {
        return text(StatusCode::OK, "ok");
    }
    match timeout(check_timeout, readiness.check()).await {
        Ok(Ok(())) => text(StatusCode::OK, "ok"),
        Ok(Err(reason)) => text(StatusCode::SERVICE_UNAVAILABLE, &reason),
        Err(_) => text(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("the readiness check did not complete within {check_timeout:?}"),
        ),
    }
}

fn text(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", format!("{message}\n"))
}

fn response(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
