//! Serves `/healthz`, `/readyz` and optionally `/metrics` on a separate listener, for programs
//! without an HTTP API.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    listen::{ListenError, listen},
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
/// before it is answered. Further connections wait in the listener's queue meanwhile. Silent peers
/// that open more than 5,120 a second fill the queue.
const MIN_LIFETIME: Duration = Duration::from_millis(50);

/// Pause after a failed accept, usually caused by a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The readiness check of a program.
pub trait Readiness: Send + Sync + 'static {
    /// Returns the reason, in one sentence, if the program is not ready.
    fn check(&self) -> impl Future<Output = Result<(), String>> + Send;
}

/// A bound listener; it answers once [`HealthListener::run`] is called.
pub struct HealthListener {
    listener: TcpListener,
    addr: SocketAddr,
    metrics: Option<Arc<Exposition>>,
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
            listener,
            metrics: None,
            connection_timeout: CONNECTION_TIMEOUT,
            min_lifetime: MIN_LIFETIME,
        }))
    }

    /// Serves `/metrics` too.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Exposition) -> Self {
        self.metrics = Some(Arc::new(metrics));
        self
    }

    /// The bound address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves requests until the future is dropped; also during a shutdown, when the program is
    /// alive but not ready.
    pub async fn run(self, readiness: Arc<impl Readiness>) {
        tracing::info!(addr = %self.addr, "serving /healthz and /readyz");
        let mut connections = Connections::default();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let readiness = Arc::clone(&readiness);
                    let metrics = self.metrics.clone();
                    let limit = self.connection_timeout;
                    connections.spawn(async move {
                        let served = serve(stream, readiness, metrics);
                        if timeout(limit, served).await.is_err() {
                            tracing::debug!("connection closed: its request took too long");
                        }
                    });
                    connections.make_room(self.min_lifetime).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    readiness: Arc<impl Readiness>,
    metrics: Option<Arc<Exposition>>,
) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let readiness = Arc::clone(&readiness);
        let metrics = metrics.clone();
        async move {
            let (parts, _) = request.into_parts();
            let target = (&parts.method, parts.uri.path());
            Ok::<_, Infallible>(
                respond(target, &*readiness, metrics.as_deref(), CHECK_TIMEOUT).await,
            )
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
    (method, path): (&Method, &str),
    readiness: &impl Readiness,
    metrics: Option<&Exposition>,
    check_timeout: Duration,
) -> Response<Full<Bytes>> {
    let not_found = match (path, metrics) {
        ("/healthz" | "/readyz", _) | ("/metrics", Some(_)) => None,
        (_, Some(_)) => Some("not found: use /healthz, /readyz or /metrics"),
        (_, None) => Some("not found: use /healthz or /readyz"),
    };
    if let Some(message) = not_found {
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
    if let ("/metrics", Some(metrics)) = (path, metrics) {
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
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    struct FixedReadiness(Result<(), String>);

    impl Readiness for FixedReadiness {
        async fn check(&self) -> Result<(), String> {
            self.0.clone()
        }
    }

    struct HangingReadiness;

    impl Readiness for HangingReadiness {
        async fn check(&self) -> Result<(), String> {
            std::future::pending().await
        }
    }

    fn listener() -> HealthListener {
        let addr = ([127, 0, 0, 1], 0).into();
        let bound = HealthListener::bind(Some(addr));
        bound.unwrap().unwrap()
    }

    /// Status line and body of the response to one request over a socket.
    async fn fetch(
        health: HealthListener,
        readiness: impl Readiness,
        request: &str,
    ) -> (String, String) {
        let addr = health.addr();
        let running = tokio::spawn(health.run(Arc::new(readiness)));
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        running.abort();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap();
        (status.to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn a_connection_serves_one_request() {
        let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz";

        let (status, body) = fetch(listener(), FixedReadiness(Ok(())), request).await;

        assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", "ok\n"));
    }

    /// Connections that send nothing.
    async fn silent_connections(addr: SocketAddr, count: usize) -> Vec<TcpStream> {
        let mut silent = Vec::new();
        for _ in 0..count {
            silent.push(TcpStream::connect(addr).await.unwrap());
        }
        silent
    }

    async fn assert_answered(mut probe: TcpStream) {
        let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        probe.write_all(request).await.unwrap();
        let mut response = String::new();
        probe.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    }

    #[tokio::test]
    async fn a_probe_replaces_the_connection_of_a_peer_that_sends_nothing() {
        let mut listener = listener();
        listener.connection_timeout = Duration::from_hours(1);
        listener.min_lifetime = Duration::from_millis(1);
        let addr = listener.addr();
        let running = tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(())))));
        let _silent = silent_connections(addr, 2 * MAX_CONNECTIONS).await;

        assert_answered(TcpStream::connect(addr).await.unwrap()).await;

        running.abort();
    }

    #[tokio::test]
    async fn a_probe_that_has_just_connected_is_not_replaced() {
        let mut listener = listener();
        listener.min_lifetime = Duration::from_hours(1);
        let addr = listener.addr();
        let running = tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(())))));
        let probe = TcpStream::connect(addr).await.unwrap();
        // A few more than the maximum: where the queue is short, further ones would not connect.
        let _silent = silent_connections(addr, MAX_CONNECTIONS + 50).await;

        assert_answered(probe).await;

        running.abort();
    }

    #[tokio::test]
    async fn a_connection_that_ends_makes_room_for_the_next() {
        let mut listener = listener();
        listener.connection_timeout = Duration::from_hours(1);
        listener.min_lifetime = Duration::from_hours(1);
        let addr = listener.addr();
        let running = tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(())))));
        let mut silent = silent_connections(addr, MAX_CONNECTIONS + 1).await;
        let probe = TcpStream::connect(addr).await.unwrap();

        silent.pop();

        assert_answered(probe).await;
        running.abort();
    }

    #[tokio::test]
    async fn the_oldest_connection_is_kept_while_there_is_room() {
        let mut connections = Connections::default();
        for _ in 0..MAX_CONNECTIONS {
            connections.spawn(std::future::pending());
        }
        connections.make_room(Duration::ZERO).await;
        assert_eq!(connections.tasks.len(), MAX_CONNECTIONS);
        let (_, oldest) = connections.oldest_first[0].clone();

        connections.spawn(std::future::pending());
        connections.make_room(Duration::ZERO).await;

        assert_eq!(connections.tasks.len(), MAX_CONNECTIONS);
        assert!(oldest.is_finished());
    }

    #[tokio::test]
    async fn a_peer_that_sends_nothing_is_disconnected() {
        let mut listener = listener();
        listener.connection_timeout = Duration::from_millis(5);
        let addr = listener.addr();
        let running = tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(())))));
        let mut silent = TcpStream::connect(addr).await.unwrap();

        let received = silent.read(&mut [0; 1]).await.unwrap();

        assert_eq!(received, 0);
        running.abort();
    }

    #[tokio::test]
    async fn a_running_process_is_healthy_and_gives_the_reason_it_is_not_ready() {
        let ready = || FixedReadiness(Ok(()));
        let unready = || FixedReadiness(Err("the database does not answer".to_owned()));
        let not_found = "HTTP/1.1 404 Not Found";
        let unavailable = "HTTP/1.1 503 Service Unavailable";
        for (readiness, request, status, body) in [
            (ready(), "GET /healthz", "HTTP/1.1 200 OK", "ok\n"),
            (unready(), "GET /healthz", "HTTP/1.1 200 OK", "ok\n"),
            (ready(), "GET /readyz?verbose", "HTTP/1.1 200 OK", "ok\n"),
            (ready(), "HEAD /readyz", "HTTP/1.1 200 OK", ""),
            (
                unready(),
                "GET /readyz",
                unavailable,
                "the database does not answer\n",
            ),
            (
                ready(),
                "GET /metrics",
                not_found,
                "not found: use /healthz or /readyz\n",
            ),
            (
                ready(),
                "POST /readyz",
                "HTTP/1.1 405 Method Not Allowed",
                "method not allowed: use GET or HEAD\n",
            ),
        ] {
            let response = fetch(listener(), readiness, request).await;
            assert_eq!(response, (status.to_owned(), body.to_owned()), "{request}");
        }
    }

    #[tokio::test]
    async fn metrics_are_served_even_by_a_process_that_is_not_ready() {
        let unready = || FixedReadiness(Err("the database does not answer".to_owned()));
        for (request, status, body) in [
            ("GET /metrics", "HTTP/1.1 200 OK", "# EOF\n"),
            (
                "GET /",
                "HTTP/1.1 404 Not Found",
                "not found: use /healthz, /readyz or /metrics\n",
            ),
            (
                "POST /metrics",
                "HTTP/1.1 405 Method Not Allowed",
                "method not allowed: use GET or HEAD\n",
            ),
        ] {
            let health = listener();
            let health = health.with_metrics(Exposition::default());
            let response = fetch(health, unready(), request).await;
            assert_eq!(response, (status.to_owned(), body.to_owned()), "{request}");
        }
    }

    #[tokio::test]
    async fn a_readiness_check_that_hangs_means_not_ready() {
        let target = (&Method::GET, "/readyz");
        let response = respond(target, &HangingReadiness, None, Duration::ZERO).await;

        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
