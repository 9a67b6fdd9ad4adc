//! The HTTP client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use process::{duration, tls};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use url::Url;

use crate::{circuit_breaker::CircuitBreaker, error::Error, metrics::Monitor};

/// Shorter than the five seconds after which common servers close an idle connection.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Shorter than the gateway's default timeout of a REST request, 30 s.
const MAX_TIMEOUT: Duration = Duration::from_secs(20);
/// Some public services require it.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("delivery/", env!("CARGO_PKG_VERSION")));

/// Limits of the calls to one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of a whole call: queueing, connecting, and the response to its last byte.
    pub timeout: Duration,
    /// Calls in flight at once. Further calls queue for at most half of the timeout, so that an
    /// admitted call has time left.
    pub concurrency: usize,
    /// The maximum size of a response's body.
    pub max_response_bytes: usize,
}

/// An HTTP client for one service. The operator configures its URL, so private addresses are
/// allowed. Redirects are not followed.
#[derive(Debug)]
pub struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    limits: Limits,
    concurrency: Semaphore,
    breaker: Arc<CircuitBreaker>,
    monitor: Monitor,
}

/// A response that a retry would not change: 2xx, or 4xx other than 408 and 429.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    /// A client of a service, with its name in metrics. Fails if the TLS configuration is invalid.
    pub fn new(name: &str, limits: Limits) -> Result<Self, rustls::Error> {
        let tls = tls::client(tls::system_authorities())?.with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        // Leaves time for the second address of a host name.
        http.set_connect_timeout(Some(limits.timeout / 2));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let client = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(limits.concurrency)
            .build(connector);
        let breaker = Arc::<CircuitBreaker>::default();
        Ok(Self {
            http: client,
            limits,
            concurrency: Semaphore::new(limits.concurrency),
            monitor: Monitor::new(name, Arc::clone(&breaker)),
            breaker,
        })
    }

    /// What is measured of this client.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Sends a GET request, and repeats it once if an established connection fails before the
    /// response, such as a pooled one that the service has closed. The error never contains the
    /// URL, which includes personal addresses.
    pub async fn get(&self, url: &Url) -> Result<Response, Error> {
        self.get_with_deadline(url, Instant::now() + self.limits.timeout)
            .await
    }

    /// Like [`Client::get`], with the deadline of the caller.
    pub async fn get_with_deadline(&self, url: &Url, deadline: Instant) -> Result<Response, Error> {
        let started = Instant::now();
        let result = self.try_get(url, deadline).await;
        self.monitor.record(&result, started.elapsed());
        result
    }

    async fn try_get(&self, url: &Url, deadline: Instant) -> Result<Response, Error> {
        let uri: Uri = url.as_str().parse().map_err(Error::InvalidUrl)?;
        let now = Instant::now();

        // Calls do not queue for an open circuit.
        self.breaker.check(now)?;
        let left = deadline.saturating_duration_since(now);
        let permit = timeout_at(now + left / 2, self.concurrency.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(Error::Busy);
        };

        let call = self.breaker.begin(Instant::now())?;
        let result = timeout_at(deadline, self.send(&uri))
            .await
            .unwrap_or(Err(Error::Timeout(self.limits.timeout)));
        match &result {
            Ok(_) => call.succeeded(),
            Err(error) => call.failed(Instant::now(), error.retry_after()),
        }
        result
    }

    async fn send(&self, uri: &Uri) -> Result<Response, Error> {
        let response = match self.http.request(request(uri)).await {
            // GET is safe to repeat.
            Err(error) if !error.is_connect() => self.http.request(request(uri)).await,
            result => result,
        }
        .map_err(Error::NoResponse)?;

        let status = response.status();
        let is_final_client_error = status.is_client_error()
            && !matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
            );
        if !status.is_success() && !is_final_client_error {
            let retry_after = retry_after(response.headers());
            return Err(Error::Status {
                status,
                retry_after,
            });
        }
        let body = read_body(response, self.limits.max_response_bytes).await?;
        Ok(Response { status, body })
    }
}

fn request(uri: &Uri) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri.clone();
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, USER_AGENT);
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, application/geo+json"),
    );
    request
}

async fn read_body(response: http::Response<Incoming>, max_bytes: usize) -> Result<Bytes, Error> {
    let body = response.into_body();
    let declared = body.size_hint().lower();
    if usize::try_from(declared).map_or(true, |declared| declared > max_bytes) {
        return Err(Error::ResponseTooLarge(max_bytes));
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::ResponseTooLarge(max_bytes)),
        Err(error) => Err(Error::IncompleteResponse(error)),
    }
}

/// Parses a timeout that an operator configures: `2s`, `500ms`, at most 20 s.
pub fn parse_timeout(text: &str) -> Result<Duration, String> {
    duration::parse_up_to(MAX_TIMEOUT, text)
}

/// RFC 9110 section 10.2.3, in seconds. A date is ignored: the circuit breaker's default applies.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}
