//! The way to the cores: which one is called, what a call carries, when it is tried elsewhere.

use std::{
    error::Error as _,
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use http::Uri;
use tokio::time::Instant;
use tonic::{
    ConnectError, Response, Status, TimeoutExpired,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use crate::{
    error::{self, Error},
    rate_limits::Token,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const PING_INTERVAL: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Violations come back in headers: room for as many as a body can have.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;
/// How long a core that could not be reached is passed over while there are others.
const PASSED_OVER: Duration = Duration::from_secs(1);

/// The cores, called in turn.
pub(crate) struct Core {
    members: Vec<Member>,
    next: AtomicUsize,
}

struct Member {
    channel: Channel,
    down_until: Mutex<Option<Instant>>,
}

/// What a call carries beside its message.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
    pub(crate) request_id: Option<MetadataValue<Ascii>>,
    pub(crate) deadline: Instant,
    /// The same authorization, to note whose it is once core has accepted it.
    pub(crate) token: Option<Token>,
}

/// Whether doing a call twice is the same as doing it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may be repeated even when it is unknown whether it was done.
    Harmless,
    /// It is tried elsewhere only if it was certainly never sent.
    Harmful,
}

impl Repeat {
    /// Of a call that creates something: core does it once for each key.
    pub(crate) fn with(idempotency: Option<&proto::Idempotency>) -> Self {
        match idempotency {
            Some(_) => Self::Harmless,
            None => Self::Harmful,
        }
    }
}

impl Core {
    /// Connects to none of them yet.
    pub(crate) fn new(urls: &[Uri], allow_plaintext: bool) -> anyhow::Result<Self> {
        anyhow::ensure!(!urls.is_empty(), "there is no core to call");
        let members = urls
            .iter()
            .map(|url| Member::new(url, allow_plaintext))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            members,
            next: AtomicUsize::new(0),
        })
    }

    /// Calls an rpc on one core, and on another if that one cannot be reached.
    pub(crate) async fn call<M, R, F>(
        &self,
        call: Call,
        repeat: Repeat,
        message: M,
        rpc: impl Fn(Channel, tonic::Request<M>) -> F,
    ) -> Result<R, Error>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let response = self.call_in_full(call, repeat, message, rpc).await?;
        Ok(response.into_inner())
    }

    /// As [`Core::call`], with the metadata of the answer.
    pub(crate) async fn call_in_full<M, R, F>(
        &self,
        call: Call,
        repeat: Repeat,
        message: M,
        rpc: impl Fn(Channel, tonic::Request<M>) -> F,
    ) -> Result<Response<R>, Error>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let mut outcome = None;
        for member in self.in_turn() {
            let request = call.request(message.clone());
            match rpc(member.channel.clone(), request).await {
                Ok(response) => {
                    if let Some(token) = &call.token {
                        token.was_accepted();
                    }
                    return Ok(response);
                }
                Err(status) => {
                    let lost = Lost::of(&status);
                    if lost == Lost::BeforeSent {
                        member.pass_over();
                    }
                    outcome = Some(status);
                    match (lost, repeat) {
                        (Lost::BeforeSent, _) | (Lost::Underway, Repeat::Harmless) => {}
                        (Lost::Underway, Repeat::Harmful) | (Lost::No, _) => break,
                    }
                }
            }
        }
        Err(outcome.map_or_else(
            || Error::Internal("there is no core to call".into()),
            Error::from,
        ))
    }

    /// All cores, beginning with the one whose turn it is; those that were down just now last.
    fn in_turn(&self) -> impl Iterator<Item = &Member> {
        let now = Instant::now();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let (later, sooner) = self.members.split_at(turn % self.members.len());
        let order = || sooner.iter().chain(later);
        order()
            .filter(move |member| !member.is_down(now))
            .chain(order().filter(move |member| member.is_down(now)))
    }
}

impl Member {
    fn new(url: &Uri, allow_plaintext: bool) -> anyhow::Result<Self> {
        let authority = url.authority().map(http::uri::Authority::as_str);
        anyhow::ensure!(
            matches!(url.scheme_str(), Some("http" | "https")) && authority.is_some(),
            "a core's URL is like `http://127.0.0.1:50051`, not `{url}`"
        );
        let is_tls = url.scheme_str() == Some("https");
        anyhow::ensure!(
            is_tls || allow_plaintext || is_loopback(url),
            "tokens and secrets would pass in the clear to {url}: use https, or say --allow-plaintext-core"
        );
        let mut endpoint =
            Endpoint::new(url.clone()).with_context(|| format!("core {url} cannot be called"))?;
        if is_tls {
            endpoint = endpoint
                .tls_config(ClientTlsConfig::new().with_native_roots())
                .with_context(|| format!("core {url} cannot be called over TLS"))?;
        }
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .connect_lazy();
        Ok(Self {
            channel,
            down_until: Mutex::new(None),
        })
    }

    fn is_down(&self, now: Instant) -> bool {
        self.down_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some_and(|until| now < until)
    }

    fn pass_over(&self) {
        *self
            .down_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PASSED_OVER);
    }
}

impl Call {
    fn request<M>(&self, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(self.deadline.saturating_duration_since(Instant::now()));
        let metadata = request.metadata_mut();
        if let Some(authorization) = &self.authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            metadata.insert("authorization", authorization);
        }
        if let Some(request_id) = &self.request_id {
            metadata.insert("x-request-id", request_id.clone());
        }
        request
    }
}

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a call was lost on the way, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// It was not: core answered, or time ran out.
    No,
    BeforeSent,
    Underway,
}

impl Lost {
    fn of(status: &Status) -> Self {
        if status.source().is_none() || error::is_caused_by::<TimeoutExpired>(status) {
            Self::No
        } else if error::is_caused_by::<ConnectError>(status) || never_processed(status) {
            Self::BeforeSent
        } else {
            Self::Underway
        }
    }
}

/// Whether core was ending and said that it did not, and will not, look at the call: it was
/// never written, or its stream is beyond the last one that the connection takes (RFC 9113
/// §6.8), or was refused (§8.7).
fn never_processed(status: &Status) -> bool {
    error::causes(status).any(|cause| {
        let unsent = cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_canceled);
        let refused = cause.downcast_ref::<h2::Error>().is_some_and(|error| {
            let reason = error.reason();
            (error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR))
                || (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
        });
        unsent || refused
    })
}
