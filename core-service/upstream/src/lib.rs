//! Asks other people's services over HTTP: a geocoder, a router. Whatever they do, a caller has an
//! answer or an error within the deadline, and a service that is down is left alone for a while.

mod breaker;
mod error;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use jiff::SignedDuration;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use url::Url;

use self::breaker::Breaker;
pub use self::error::Error;

/// Shorter than the five seconds after which common servers close a kept connection.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Shops wait for 30 s at most.
const LONGEST_DEADLINE: Duration = Duration::from_secs(20);
/// How services that ask for it learn who calls.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("delivery/", env!("CARGO_PKG_VERSION")));

/// What one service may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Over all of a call: waiting for its turn, connecting, and the answer to its last byte.
    pub deadline: Duration,
    /// Calls under way at once. Further ones wait for half of the deadline, so that who gets a
    /// turn has time to use it.
    pub in_flight: usize,
    /// Bytes of an answer's body.
    pub largest_answer: usize,
}

/// An HTTP client for one service, whose address the operator named: so no guard against private
/// addresses stands before it. Redirects are not followed.
#[derive(Debug)]
pub struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    limits: Limits,
    turns: Semaphore,
    breaker: Breaker,
}

/// What a service answered: 2xx, or a 4xx that is about the question (all but 408 and 429).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    /// Fails if TLS can't be set up.
    pub fn new(limits: Limits) -> Result<Self, rustls::Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        // A name may have a second address that answers.
        http.set_connect_timeout(Some(limits.deadline / 2));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls()?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let client = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_ALIVE)
            .pool_max_idle_per_host(limits.in_flight)
            .build(connector);
        Ok(Self {
            http: client,
            limits,
            turns: Semaphore::new(limits.in_flight),
            breaker: Breaker::default(),
        })
    }

    /// Asks once, or twice if a kept connection turns out to be closed. The error never shows
    /// the URL: addresses of people are in it.
    pub async fn get(&self, url: &Url) -> Result<Answer, Error> {
        self.get_by(url, Instant::now() + self.limits.deadline)
            .await
    }

    /// As [`Client::get`], for a caller that has waited for something else already.
    pub async fn get_by(&self, url: &Url, deadline: Instant) -> Result<Answer, Error> {
        let uri: Uri = url.as_str().parse().map_err(Error::Url)?;
        let now = Instant::now();

        // A service that rests has no queue.
        self.breaker.check(now)?;
        let left = deadline.saturating_duration_since(now);
        let turn = timeout_at(now + left / 2, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Error::Busy);
        };

        let attempt = self.breaker.begin(Instant::now())?;
        let result = timeout_at(deadline, self.exchange(&uri))
            .await
            .unwrap_or(Err(Error::Timeout(self.limits.deadline)));
        match &result {
            Ok(_) => attempt.succeeded(),
            Err(error) => attempt.failed(Instant::now(), error.retry_after()),
        }
        result
    }

    async fn exchange(&self, uri: &Uri) -> Result<Answer, Error> {
        let response = match self.http.request(request(uri)).await {
            // Only reading is asked for, so that asking again is harmless.
            Err(error) if !error.is_connect() => self.http.request(request(uri)).await,
            result => result,
        };
        let response = response.map_err(Error::NoAnswer)?;

        let status = response.status();
        let is_about_the_question = status.is_client_error()
            && !matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
            );
        if !status.is_success() && !is_about_the_question {
            let retry_after = retry_after(response.headers());
            return Err(Error::Status {
                status,
                retry_after,
            });
        }
        let body = read(response, self.limits.largest_answer).await?;
        Ok(Answer { status, body })
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

async fn read(response: Response<Incoming>, largest: usize) -> Result<Bytes, Error> {
    let mut body = response.into_body();
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > largest) {
        return Err(Error::TooLarge(largest));
    }
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Error::BrokenAnswer)?.into_data() else {
            continue;
        };
        if data.len() > largest - read.len() {
            return Err(Error::TooLarge(largest));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// Reads a deadline as operators write it: `2s`, `500ms`, up to 20 s.
pub fn parse_deadline(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok();
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| !duration.is_zero() && *duration <= LONGEST_DEADLINE)
        .ok_or_else(|| {
            format!("{text:?} is no time such as 2s or 500ms, up to {LONGEST_DEADLINE:?}")
        })
}

/// RFC 9110 section 10.2.3, in seconds. A date is passed over: the ordinary pause serves as well.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// TLS as a client of whoever the system's authorities vouch for.
fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "part of the system's certificate authorities cannot be read");
    }
    roots.add_parsable_certificates(system.certs);

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
