//! Responses as they are sent: in slices, each of which keeps its exchange until it is written. So a
//! response counts as unsent as long as the HTTP library keeps any part of it, and its rate is that of
//! the bytes written: what is asked for depends on other streams too.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
        LOCATION, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
    },
    response::Parts,
};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::BoxError;

use crate::connection::{Exchange, Phase};

/// The most that the HTTP library gets at a time.
const SLICE: usize = 16 * 1024;

/// The lowest rate at which a response is read, in bytes per second.
const MIN_RATE: u32 = 16 * 1024;

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
        let exchange = &self.exchange;
        exchange.pace.lock().write(self.bytes.len(), Instant::now());
        exchange.enter(Phase::Responding);
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
    /// Counts a response against its client's share of the memory; 503 without a body if it exceeds that, or if
    /// the request was not admitted.
    pub(crate) fn respond(exchange: Arc<Exchange>, response: Response<B>) -> Response<Self> {
        exchange.enter(Phase::Responding);
        let (mut parts, body) = response.into_parts();
        let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let more = length.saturating_sub(exchange.reserved.load(Ordering::Relaxed));
        let is_permitted = exchange.is_admitted() && (more == 0 || exchange.grow(more));
        if !is_permitted {
            refuse(&mut parts);
        }
        let body = Self {
            body: is_permitted.then_some(body),
            rest: Bytes::new(),
            permitted: length,
            exchange,
        };
        Response::from_parts(parts, body)
    }
}

/// Makes a response one that says that there is no memory, without its body.
fn refuse(parts: &mut Parts) {
    parts.status = StatusCode::SERVICE_UNAVAILABLE;
    for other in [
        CONTENT_ENCODING,
        CONTENT_LANGUAGE,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        ETAG,
        LOCATION,
    ] {
        parts.headers.remove(other);
    }
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (RETRY_AFTER, "1"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        parts.headers.insert(name, HeaderValue::from_static(value));
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
            if more > 0 && !this.exchange.grow(more) {
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
        // Asked for before the first frame.
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use http::{HeaderMap, HeaderName};
    use http_body_util::{BodyExt as _, Full};
    use process::metrics::Counters;
    use tokio::time::advance;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        Pool, RequestMemory, Timeouts, Usage,
        connection::{Check, Connection},
    };

    const UNREAD: Duration = Duration::from_secs(30);
    const REQUEST: usize = 4 << 10;
    const MEMORY: usize = 1 << 20;

    fn connection() -> (Arc<Connection>, Arc<Pool<IpAddr>>) {
        let pool = |limit| Pool::new(limit, limit, Counters::new("reason", &[]), "");
        let (peer, memory) = (Ipv4Addr::LOCALHOST.into(), pool(MEMORY));
        let permit = pool(1)
            .take(peer, 1, Usage::Idle, CancellationToken::new())
            .unwrap();
        let timeouts = Timeouts {
            head: UNREAD,
            idle: None,
            unread: UNREAD,
        };
        let ended = CancellationToken::new();
        let connection = Connection::new(peer, permit, ended, Arc::clone(&memory), timeouts);
        (connection, memory)
    }

    fn response(bytes: usize) -> Response<Full<Bytes>> {
        Response::new(Full::new(Bytes::from(vec![7; bytes])))
    }

    async fn next(body: &mut Sliced<Full<Bytes>>) -> Option<Bytes> {
        let frame = body.frame().await?;
        Some(frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn a_response_counts_until_its_last_byte_is_written() {
        let (connection, memory) = connection();
        let response = Sliced::respond(
            connection.begin(connection.peer, false, REQUEST),
            response(40_000),
        );
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(40_000));

        let mut slices = Vec::new();
        while let Some(slice) = next(&mut body).await {
            slices.push(slice);
        }
        assert!(body.is_end_stream());
        drop(body);

        let lengths: Vec<_> = slices.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [SLICE, SLICE, 40_000 - 2 * SLICE]);
        let last = slices.pop();
        drop(slices);
        assert_eq!(memory.total(), 40_000 + REQUEST);
        drop(last);
        assert_eq!(memory.total(), 0);
    }

    #[tokio::test]
    async fn a_response_that_was_reserved_counts_once() {
        let (connection, memory) = connection();
        let exchange = connection.begin(connection.peer, false, REQUEST);
        let reserved = RequestMemory(Arc::clone(&exchange));
        assert!(reserved.reserve_response(40_000) && !reserved.reserve_response(MEMORY));
        drop(reserved);

        let response = Sliced::respond(exchange, response(50_000));

        assert_eq!(response.status(), 200);
        assert_eq!(memory.total(), 50_000 + REQUEST);
        drop(response);
        assert_eq!(memory.total(), 0);
    }

    #[tokio::test]
    async fn a_response_for_which_there_is_no_memory_is_503() {
        let (connection, memory) = connection();
        let mut response = response(MEMORY);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert("x-request-id", HeaderValue::from_static("7"));
        let refused = Sliced::respond(connection.begin(connection.peer, false, REQUEST), response);

        assert_eq!(refused.status(), 503);
        let headers = [
            (CACHE_CONTROL, "no-store"),
            (RETRY_AFTER, "1"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let id = (HeaderName::from_static("x-request-id"), "7");
        let expected = headers.into_iter().chain([id]);
        let expected = expected.map(|(name, value)| (name, HeaderValue::from_static(value)));
        assert_eq!(*refused.headers(), expected.collect::<HeaderMap>());
        assert_eq!(next(&mut refused.into_body()).await, None);
        assert_eq!(memory.total(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_ends_and_then_its_connection() {
        let (connection, _) = connection();
        let exchange = connection.begin(connection.peer, true, REQUEST);
        let ended = exchange.ended.clone();
        let mut body = Sliced::respond(exchange, response(100_000)).into_body();
        advance(10 * UNREAD).await;
        assert!(
            matches!(connection.check(Instant::now()), Check::Again(_)),
            "not asked for"
        );
        let slice = next(&mut body).await;

        advance(UNREAD).await;
        connection.check(Instant::now());
        assert!(!ended.is_cancelled());
        advance(UNREAD / 30).await;
        assert!(matches!(connection.check(Instant::now()), Check::Again(_)));
        assert!(ended.is_cancelled() && !connection.ended.is_cancelled());
        drop(body);
        assert_eq!(
            connection.check(Instant::now()),
            Check::Abort,
            "a slice is left"
        );
        drop(slice);
        assert!(matches!(connection.check(Instant::now()), Check::Again(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_executed_is_evicted_after_those_whose_peer_does_not_send_or_read() {
        let (connection, memory) = connection();
        let begin = || connection.begin(connection.peer, true, MEMORY / 4);
        let [executed, receiving, responding] = [begin(), begin(), begin()];
        let ended = [&executed, &receiving, &responding].map(|exchange| exchange.ended.clone());
        executed.enter(Phase::Executing);
        responding.enter(Phase::Executing);
        advance(UNREAD / 2).await;
        let mut body = Sliced::respond(responding, response(SLICE)).into_body();
        let unread = next(&mut body).await;

        let mut of_others = Vec::new();
        for (number, (amount, expected)) in [
            (MEMORY / 4, [false, true, false]),
            (MEMORY / 4, [false, true, true]),
            (MEMORY / 4, [false, true, true]),
            (MEMORY / 8, [true, true, true]),
        ]
        .into_iter()
        .enumerate()
        {
            let other = IpAddr::from([192, 0, 2, u8::try_from(number).unwrap()]);
            of_others.push(memory.take(other, amount, Usage::Kept, CancellationToken::new()));
            assert_eq!(
                ended.each_ref().map(CancellationToken::is_cancelled),
                expected
            );
        }
        assert!(of_others.iter().all(Option::is_some));
        drop((executed, receiving, unread));
    }

    #[test]
    fn a_response_must_be_read_at_the_lowest_rate() {
        let second = Duration::from_secs(1);
        for (bytes_per_second, is_read) in [(MIN_RATE, true), (MIN_RATE / 2, false)] {
            let bytes = usize::try_from(bytes_per_second).unwrap();
            let mut now = Instant::now();
            let mut pace = Pace::new(UNREAD);
            pace.hand_over(1_000 * bytes, now);
            for _ in 0..100 {
                now += second;
                pace.write(bytes, now);
            }
            assert_eq!(!pace.is_unread(now + second / 2), is_read, "{bytes}");
        }
    }
}
