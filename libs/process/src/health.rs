//! `/healthz`, `/readyz` and, of programs that count anything, `/metrics` on a listener of their
//! own, for programs that serve no HTTP otherwise.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

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
    sync::Semaphore,
    time::timeout,
};

/// Whoever asks has little patience.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a prober may take to ask, and stay to ask again.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Probers are few; more is an attack.
const CONNECTIONS: usize = 64;

/// After an accept failed for want of resources, which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What Prometheus and its kind ask for.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether a program can do its work.
pub trait Readiness: Send + Sync + 'static {
    /// Nothing, or in one sentence why not.
    fn check(&self) -> impl Future<Output = Result<(), String>> + Send;
}

/// What a program has counted since its start, as `OpenMetrics` text.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

/// A listener that has its address, but answers only once it runs.
pub struct Health {
    listener: TcpListener,
    addr: SocketAddr,
    metrics: Option<Metrics>,
}

impl Health {
    /// Listens; port 0 takes any free one.
    pub async fn bind(addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        Ok(Self {
            listener,
            addr,
            metrics: None,
        })
    }

    /// Answers to `/metrics` too.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers until it is dropped: also while the program ends, for then it is not ready.
    pub async fn run(self, readiness: Arc<impl Readiness>) {
        tracing::info!(addr = %self.addr, "serving /healthz and /readyz");
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        while let Ok(permit) = Arc::clone(&connections).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let readiness = Arc::clone(&readiness);
                    let metrics = self.metrics.clone();
                    tokio::spawn(async move {
                        serve(stream, readiness, metrics).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, readiness: Arc<impl Readiness>, metrics: Option<Metrics>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let readiness = Arc::clone(&readiness);
        let metrics = metrics.clone();
        async move {
            let (parts, _) = request.into_parts();
            let asked = (&parts.method, parts.uri.path());
            Ok::<_, Infallible>(answer(asked, &*readiness, metrics.as_ref(), CHECK_TIMEOUT).await)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    (method, path): (&Method, &str),
    readiness: &impl Readiness,
    metrics: Option<&Metrics>,
    patience: Duration,
) -> Response<Full<Bytes>> {
    let known = match metrics {
        Some(_) => "/healthz, /readyz and /metrics",
        None => "/healthz and /readyz",
    };
    if !matches!(
        (path, metrics),
        ("/healthz" | "/readyz", _) | ("/metrics", Some(_))
    ) {
        return text(StatusCode::NOT_FOUND, &format!("there are {known}"));
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD it");
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if let ("/metrics", Some(metrics)) = (path, metrics) {
        return plain(StatusCode::OK, OPEN_METRICS, metrics());
    }
    if path == "/healthz" {
        return text(StatusCode::OK, "ok");
    }
    match timeout(patience, readiness.check()).await {
        Ok(Ok(())) => text(StatusCode::OK, "ok"),
        Ok(Err(why)) => text(StatusCode::SERVICE_UNAVAILABLE, &why),
        Err(_) => text(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("whether it is ready could not be told within {patience:?}"),
        ),
    }
}

fn text(status: StatusCode, sentence: &str) -> Response<Full<Bytes>> {
    plain(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

fn plain(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
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

    struct Says(Result<(), String>);

    impl Readiness for Says {
        async fn check(&self) -> Result<(), String> {
            self.0.clone()
        }
    }

    struct Silent;

    impl Readiness for Silent {
        async fn check(&self) -> Result<(), String> {
            std::future::pending().await
        }
    }

    async fn listener() -> Health {
        Health::bind(([127, 0, 0, 1], 0).into()).await.unwrap()
    }

    /// Status line and body of the answer to one request over a socket.
    async fn ask(health: Health, readiness: impl Readiness, request: &str) -> (String, String) {
        let addr = health.addr();
        let running = tokio::spawn(health.run(Arc::new(readiness)));
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        running.abort();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap();
        (status.to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn a_process_is_healthy_and_says_in_a_sentence_why_it_is_not_ready() {
        let ready = || Says(Ok(()));
        let unready = || Says(Err("the database does not answer".to_owned()));
        let not_found = "HTTP/1.1 404 Not Found";
        let unavailable = "HTTP/1.1 503 Service Unavailable";
        for (says, request, status, body) in [
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
                "there are /healthz and /readyz\n",
            ),
            (
                ready(),
                "POST /readyz",
                "HTTP/1.1 405 Method Not Allowed",
                "GET or HEAD it\n",
            ),
        ] {
            let answer = ask(listener().await, says, request).await;
            assert_eq!(answer, (status.to_owned(), body.to_owned()), "{request}");
        }
    }

    #[tokio::test]
    async fn a_process_that_counts_tells_it_and_one_that_is_not_ready_too() {
        let unready = || Says(Err("the database does not answer".to_owned()));
        for (request, status, body) in [
            ("GET /metrics", "HTTP/1.1 200 OK", "errors_total 3\n# EOF\n"),
            (
                "GET /",
                "HTTP/1.1 404 Not Found",
                "there are /healthz, /readyz and /metrics\n",
            ),
            (
                "POST /metrics",
                "HTTP/1.1 405 Method Not Allowed",
                "GET or HEAD it\n",
            ),
        ] {
            let health = listener().await;
            let health = health.with_metrics(Arc::new(|| "errors_total 3\n# EOF\n".to_owned()));
            let answer = ask(health, unready(), request).await;
            assert_eq!(answer, (status.to_owned(), body.to_owned()), "{request}");
        }
    }

    #[tokio::test]
    async fn a_check_without_end_is_not_ready() {
        let asked = (&Method::GET, "/readyz");
        let response = answer(asked, &Silent, None, Duration::ZERO).await;

        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
