//! Responses as they are sent: in slices, each of which keeps its exchange until it is written. So a
//! response counts as unsent as long as the HTTP library keeps any part of it, and its rate is that of
//! the bytes written: what is asked for depends on other streams too.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use hyper::body::{Body, Frame, SizeHint};
use rate_limits::peer_key;
use tokio::time::Instant;
use tower::BoxError;

use crate::{connection::Exchange, pool::Usage, serve::Peer};

/// The most that the HTTP library gets at a time.
const SLICE: usize = 16 * 1024;

/// What a response takes besides its body, in bytes: its head, its task and its stream.
const RESPONSE_OVERHEAD: usize = 4 * 1024;

/// The lowest rate at which a response is read, in bytes per second.
const MIN_RATE: u32 = 16 * 1024;

/// The bytes that a response holds, in its extensions, if its body does not say so.
#[derive(Clone, Copy, Debug)]
pub struct Held(pub usize);

/// Whether a response is read fast enough. Only the time in which something is unsent counts.
#[derive(Debug)]
pub(crate) struct Pace {
    /// In bytes.
    unsent: usize,
    /// When the last of them was handed over, after none, or written.
    since: Instant,
    /// How much longer nothing may be written.
    allowance: Duration,
    max_allowance: Duration,
}

impl Pace {
    pub(crate) fn new(max_allowance: Duration) -> Self {
        Self {
            unsent: 0,
            since: Instant::now(),
            allowance: max_allowance,
            max_allowance,
        }
    }

    fn hand_over(&mut self, bytes: usize, now: Instant) {
        if self.unsent == 0 {
            self.since = now;
        }
        self.unsent += bytes;
    }

    fn write(&mut self, bytes: usize, now: Instant) {
        let earned = Duration::from_secs(bytes as u64) / MIN_RATE;
        let left = (self.allowance + earned).saturating_sub(now - self.since);
        self.allowance = left.min(self.max_allowance);
        self.unsent -= bytes;
        self.since = now;
    }

    pub(crate) fn is_unread(&self, now: Instant) -> bool {
        self.unsent > 0 && now.saturating_duration_since(self.since) > self.allowance
    }
}

/// Bytes that the HTTP library has not written yet.
struct Slice {
    bytes: Bytes,
    exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        let mut pace = self.exchange.pace.lock();
        pace.write(self.bytes.len(), Instant::now());
    }
}

/// The body of a response, in slices. None if there was no memory for it.
pub(crate) struct Sliced<B> {
    body: Option<B>,
    rest: Bytes,
    /// The bytes for which the exchange has a permit.
    permitted: usize,
    exchange: Arc<Exchange>,
}

impl<B: Body> Sliced<B> {
    /// Counts a response against its peer's share of the memory; 503 without a body if it exceeds that.
    pub(crate) fn respond(exchange: Arc<Exchange>, response: Response<B>) -> Response<Self> {
        let (mut parts, body) = response.into_parts();
        let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let held = parts.extensions.get().map_or(length, |Held(bytes)| *bytes);
        let peer = parts
            .extensions
            .get()
            .map_or_else(|| peer_key(exchange.peer()), |Peer(peer)| *peer);
        let is_permitted = exchange.permit(peer, RESPONSE_OVERHEAD.saturating_add(held));
        if !is_permitted {
            parts = Response::new(()).into_parts().0;
            parts.status = StatusCode::SERVICE_UNAVAILABLE;
            parts
                .headers
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        let body = Self {
            body: is_permitted.then_some(body),
            rest: Bytes::new(),
            permitted: held,
            exchange,
        };
        Response::from_parts(parts, body)
    }
}

impl Exchange {
    fn permit(&self, peer: IpAddr, bytes: usize) -> bool {
        let ended = self.ended.clone();
        let permit = self.memory().take(peer, bytes, Usage::Busy, ended);
        permit.is_some_and(|permit| self.permit.set(permit).is_ok())
    }
}

impl<B> Body for Sliced<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.rest.is_empty() {
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            };
            match frame {
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
            let more = this.rest.len().saturating_sub(this.permitted);
            let permit = this.exchange.permit.get();
            if more > 0 && !permit.is_some_and(|permit| permit.grow(more)) {
                return Poll::Ready(Some(Err("no memory for the response".into())));
            }
            this.permitted += more;
        }
        let bytes = this.rest.split_to(this.rest.len().min(SLICE));
        let exchange = Arc::clone(&this.exchange);
        exchange.pace.lock().hand_over(bytes.len(), Instant::now());
        let slice = Bytes::from_owner(Slice { bytes, exchange });
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let Some(body) = &self.body else {
            return SizeHint::with_exact(0);
        };
        let (of_body, rest) = (body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(rest));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
