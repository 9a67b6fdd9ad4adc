//! Timeouts of gRPC calls, and limits of those without a token. While the database hangs, callers get an error
//! before their own timeout, and the number of waiting calls stays bounded. Anonymous calls, such as token
//! requests, count once their message is complete; those with a token are counted by [`crate::auth`], which
//! knows their client.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use admission::{Peer, Permit, Pool, Usage};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Frame;
use parking_lot::Mutex;
use process::metrics::Counters;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body};
use tower::{BoxError, Service, ServiceExt as _};

use crate::{
    auth::{
        caller::{is_anonymous, is_of_platform, is_public},
        rate_limits::RateLimits,
    },
    error::{Error, Unauthenticated},
    wiring::MAX_MESSAGE_SIZE,
};

/// Timeout of a call until its response starts. No call takes nearly as long while the database
/// responds; the gateway's own timeout is 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// This call has no timeout, because the addresses of a country take minutes. Each of its messages
/// has one.
const IMPORT_ADDRESSES: &str = "/delivery.v1.Addresses/ImportAddresses";

const TEST_WEBHOOK: &str = "/delivery.v1.Webhooks/TestWebhook";

/// Timeout of `TestWebhook`, which waits for a dispatcher to send and report. Also less than the
/// gateway's 30 s.
const TEST_WEBHOOK_TIMEOUT: Duration = Duration::from_secs(27);

const UPLOAD_IMAGE: &str = "/delivery.v1.Images/UploadImage";

/// Timeout of `UploadImage`, whose image a phone may send slowly.
const UPLOAD_IMAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// Limits of anonymous calls in flight, in all and of a peer: as many as a gateway sends with its default limit,
/// so that it is the gateway where excess requests wait.
const MAX_ANONYMOUS_CALLS: usize = 2048;
const MAX_ANONYMOUS_CALLS_PER_PEER: usize = 1024;

/// Limits of the anonymous calls whose message is incomplete, in all and of a peer. The message of a
/// gateway's token request arrives at once.
const MAX_INCOMPLETE_CALLS: usize = 8 * 1024;
const MAX_INCOMPLETE_CALLS_PER_PEER: usize = 1024;

/// Limit of the health checks and reflection calls of a peer.
const MAX_OTHER_CALLS_PER_PEER: usize = 256;

/// Timeout for the message of an anonymous call.
const ANONYMOUS_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of the message of an anonymous call, in bytes: an API key, its secret and scopes,
/// which are below 1 KiB.
const MAX_ANONYMOUS_MESSAGE: usize = 4 * 1024;

/// Limit of the headers of a call, in bytes; an access token has about 500.
const MAX_HEADERS: usize = 16 * 1024;

/// The limits of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct CallLimits {
    anonymous_calls: Arc<Pool<IpAddr>>,
    /// Anonymous calls whose message is incomplete.
    incomplete_calls: Arc<Pool<IpAddr>>,
    /// Health checks and reflection.
    other_calls: Arc<Concurrency<IpAddr>>,
    rate_limits: Arc<RateLimits>,
    /// Calls rejected because too many are in flight.
    shed: Counters,
}

impl CallLimits {
    pub(crate) fn new(rate_limits: Arc<RateLimits>, shed: Counters) -> Self {
        Self {
            anonymous_calls: Pool::new(
                MAX_ANONYMOUS_CALLS,
                MAX_ANONYMOUS_CALLS_PER_PEER,
                shed.clone(),
                "token_requests",
            ),
            incomplete_calls: Pool::new(
                MAX_INCOMPLETE_CALLS,
                MAX_INCOMPLETE_CALLS_PER_PEER,
                shed.clone(),
                "peer",
            ),
            other_calls: Concurrency::new(),
            rate_limits,
            shed,
        }
    }

    /// Middleware: rejects a call beyond the limits.
    pub(crate) async fn limit<S>(
        self,
        mut request: Request<Body>,
        inner: S,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let peer = request.extensions().get().map(|Peer(peer)| *peer);
        // The gateway has counted a call within the process.
        let is_counted = peer.is_some();
        let path = request.uri().path();
        let peer = if is_counted || is_public(path) {
            let headers = request.headers();
            self.rate_limits.client_address(peer, path, headers)
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        if size_of(request.headers()) > MAX_HEADERS {
            let error = too_large("HEADERS_TOO_LARGE", "headers", MAX_HEADERS);
            return Ok(Status::from(error).into_http());
        }
        if !is_of_platform(path) {
            let Some(call) = self.other_calls.enter(peer, MAX_OTHER_CALLS_PER_PEER) else {
                self.shed.inc("peer");
                return Ok(too_many_of_peer().into_http());
            };
            return Ok(hold(call, inner.oneshot(request).await?));
        }
        let call_timeout = match path {
            TEST_WEBHOOK => TEST_WEBHOOK_TIMEOUT,
            UPLOAD_IMAGE => UPLOAD_IMAGE_TIMEOUT,
            IMPORT_ADDRESSES => Duration::MAX,
            _ => CALL_TIMEOUT,
        };
        if is_counted && let Err(error) = self.rate_limits.check_peer(peer, path) {
            return Ok(Status::from(error).into_http());
        }
        let _permit = if is_anonymous(path) {
            request = match receive(&self.incomplete_calls, peer, request).await {
                Ok(request) => request,
                Err(status) => return Ok(status.into_http()),
            };
            let evicted = CancellationToken::new();
            let calls = &self.anonymous_calls;
            let Some(permit) = calls.take(peer, 1, Usage::Kept, evicted) else {
                return Ok(reject(storage::Error::Overloaded));
            };
            Some(permit)
        } else {
            None
        };
        let of_client =
            grpc_timeout(request.headers()).filter(|of_client| *of_client < call_timeout);
        let response = timeout(of_client.unwrap_or(call_timeout), inner.oneshot(request)).await;
        let Ok(response) = response else {
            return Ok(match of_client {
                Some(_) => Status::cancelled("the deadline has passed").into_http(),
                None => reject(storage::Error::Timeout),
            });
        };
        let response = response?;
        let status = Status::from_header_map(response.headers());
        let error = status.and_then(|status| message_too_large(&status));
        Ok(error.map_or(response, |error| Status::from(error).into_http()))
    }
}

/// The error for tonic's status of a message over the limit, whose code alone would be that of expired events.
pub(crate) fn message_too_large(status: &Status) -> Option<Error> {
    let is_too_large = status.code() == Code::OutOfRange && status.details().is_empty();
    is_too_large.then(|| too_large("MESSAGE_TOO_LARGE", "message", MAX_MESSAGE_SIZE))
}

/// The error for a stream of chunks in `content` that failed before its last: for `ended` unless it is one of a limit.
pub(crate) fn stream_failed(status: &Status, ended: &'static str) -> Error {
    let is_overloaded = status.code() == Code::ResourceExhausted && status.details().is_empty();
    if is_overloaded {
        return storage::Error::Overloaded.into();
    }
    message_too_large(status).unwrap_or_else(|| Error::invalid("content", "INCOMPLETE", ended))
}

/// The error for a call of which a part is larger than the limit, in bytes.
fn too_large(reason: &'static str, part: &str, limit: usize) -> Error {
    let message = format!("the {part} of a call must be at most {limit} bytes");
    Error::Quota(reason, message)
}

/// The size of headers as HTTP/2 counts it (RFC 9113 §6.5.2), in bytes.
fn size_of(headers: &HeaderMap) -> usize {
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 32);
    sizes.sum()
}

/// The timeout that the client of a call sets (gRPC over HTTP/2: at most eight digits and a unit).
fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u32 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let unit = match unit {
        "H" => Duration::from_hours(1),
        "M" => Duration::from_mins(1),
        "S" => Duration::from_secs(1),
        "m" => Duration::from_millis(1),
        "u" => Duration::from_micros(1),
        "n" => Duration::from_nanos(1),
        _ => return None,
    };
    Some(unit * count)
}

async fn receive(
    incomplete_calls: &Arc<Pool<IpAddr>>,
    peer: IpAddr,
    request: Request<Body>,
) -> Result<Request<Body>, Status> {
    let evicted = CancellationToken::new();
    let permit = incomplete_calls.take(peer, 1, Usage::Idle, evicted.clone());
    let _permit: Permit<IpAddr> = permit.ok_or_else(too_many_of_peer)?;
    let (parts, body) = request.into_parts();
    let message = Limited::new(body, MAX_ANONYMOUS_MESSAGE).collect();
    let message = timeout(
        ANONYMOUS_MESSAGE_TIMEOUT,
        evicted.run_until_cancelled(message),
    )
    .await
    .map_err(|_| Status::deadline_exceeded("the message is incomplete"))?
    .ok_or_else(too_many_of_peer)?
    .map_err(|error| message_error(&*error))?;
    let body = Body::new(Full::new(message.to_bytes()));
    Ok(Request::from_parts(parts, body))
}

/// The body of a call, whose bytes count against the memory of its peer: as many as one message has. No more of a
/// stream is kept, except of an upload its file of 5 MB, which with a chunk is about as much as a message and its buffer.
pub(crate) struct CountedBody<B, G, R> {
    body: B,
    /// Takes more bytes; false if the peer may not have as many.
    grow: G,
    /// Called once, at the end.
    received: Option<R>,
    counted: usize,
}

impl<B, G, R> CountedBody<B, G, R> {
    pub(crate) fn new(body: B, grow: G, received: R) -> Self {
        Self {
            body,
            grow,
            received: Some(received),
            counted: 0,
        }
    }
}

impl<B, G, R> hyper::body::Body for CountedBody<B, G, R>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    G: Fn(usize) -> bool + Unpin,
    R: FnOnce() + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if (frame.is_none() || self.body.is_end_stream())
            && let Some(received) = self.received.take()
        {
            received();
        }
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            // It is copied into a buffer, which grows ahead of it.
            let more = (2 * bytes).min(2 * MAX_MESSAGE_SIZE - self.counted);
            self.counted += more;
            if more > 0 && !(self.grow)(more) {
                let message = "too much memory is used for the calls of this peer";
                return Err(Status::resource_exhausted(message));
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

fn too_many_of_peer() -> Status {
    Status::resource_exhausted("too many calls without a token of this peer")
}

fn message_error(error: &(dyn std::error::Error + 'static)) -> Status {
    if error.is::<LengthLimitError>() {
        // No client has credentials of that size.
        return Error::Unauthenticated(Unauthenticated::InvalidClient).into();
    }
    match error.downcast_ref::<Status>() {
        Some(status) => status.clone(),
        None => Status::cancelled("the message was not received"),
    }
}

/// How much of something each holder has at once, such as a client's calls in flight.
pub(crate) struct Concurrency<H> {
    entered: Mutex<HashMap<H, usize>>,
}

/// One of its holder's; ends when dropped.
pub(crate) struct Entered<H: Eq + Hash> {
    concurrency: Arc<Concurrency<H>>,
    holder: H,
}

impl<H: Eq + Hash + Clone> Concurrency<H> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            entered: Mutex::new(HashMap::new()),
        })
    }

    /// Enters once more for a holder, unless it has as many as the limit.
    pub(crate) fn enter(self: &Arc<Self>, holder: H, limit: usize) -> Option<Entered<H>> {
        let mut entered = self.entered.lock();
        let count = entered.entry(holder.clone()).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Entered {
            concurrency: Arc::clone(self),
            holder,
        })
    }
}

impl<H: Eq + Hash> Drop for Entered<H> {
    fn drop(&mut self) {
        let mut entered = self.concurrency.entered.lock();
        if let Some(count) = entered.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                entered.remove(&self.holder);
            }
        }
    }
}

/// Keeps a guard until the end of a response.
pub(crate) fn hold(guard: impl Send + 'static, response: Response<Body>) -> Response<Body> {
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // Dropped together with the body.
            let _ = &guard;
            frame
        }))
    })
}

fn reject(error: storage::Error) -> Response<Body> {
    Status::from(Error::from(error)).into_http()
}

#[cfg(test)]
mod tests;
