//! Reads request bodies in full, within limits of size, time, rate and memory.
//!
//! A body that is not needed is read and dropped while the response is sent: otherwise the
//! connection of a client that is still sending would be reset, and the client would get no
//! response.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use admission::{Permit, Pool, Usage};
use bytes::Bytes;
use core_client::causes;
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{error::Error, representation::error_codes as codes};

/// How much of a body that is not needed is read and dropped, as a multiple of the limit.
const DISCARD_FACTOR: usize = 8;

/// What a stream takes from which a body is dropped, in bytes: its response may be written long before.
const DISCARD_MEMORY: usize = 16 * 1024;

/// So many bytes of a body, or its end, must arrive in every [`PROGRESS_PERIOD`].
const MIN_PROGRESS: usize = 1024;
/// Long enough for TCP to repeat a lost packet four times.
const PROGRESS_PERIOD: Duration = Duration::from_secs(3);

/// Limits of request bodies.
pub(crate) struct Limits {
    /// The maximum size of a body, in bytes.
    pub(crate) size: usize,
    /// How long a body may take to arrive.
    pub(crate) timeout: Duration,
    /// The memory for all bodies and unsent responses together.
    pub(crate) memory: Arc<Pool<IpAddr>>,
}

/// Reads a client's body. The permit is for the memory it takes.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    client: IpAddr,
    limits: &Limits,
) -> (Result<Bytes, Error>, Option<Permit<IpAddr>>) {
    if exceeds(body.size_hint().lower(), limits.size) {
        discard(headers, body, client, limits);
        return (Err(too_large(limits)), None);
    }
    let mut arriving = Arriving::new(body, limits);
    let evicted = CancellationToken::new();
    let memory = limits
        .memory
        .take(client, 0, Usage::Waiting, evicted.clone());
    let collected = match &memory {
        Some(memory) => {
            let collected = evicted.run_until_cancelled(collect(&mut arriving, limits, memory));
            collected.await.unwrap_or_else(|| Err(Error::overloaded()))
        }
        None => Err(Error::overloaded()),
    };
    if collected.is_err() {
        arriving.discard(client, limits);
        return (collected, None);
    }
    (
        collected,
        memory.inspect(|memory| memory.set_usage(Usage::Kept)),
    )
}

/// Reads and drops a body that is not needed, in the background.
pub(crate) fn discard(headers: &HeaderMap, body: Incoming, client: IpAddr, limits: &Limits) {
    // A client that waits for `100 Continue` does not send the body after another response.
    if !headers.contains_key(EXPECT) {
        Arriving::new(body, limits).discard(client, limits);
    }
}

async fn collect(
    arriving: &mut Arriving,
    limits: &Limits,
    memory: &Permit<IpAddr>,
) -> Result<Bytes, Error> {
    let mut collected = Vec::new();
    while let Some(chunk) = arriving.next().await? {
        let size = collected.len().saturating_add(chunk.len());
        if size > limits.size {
            return Err(too_large(limits));
        }
        if size > collected.capacity() {
            let capacity = size.next_power_of_two().min(limits.size);
            if !memory.grow(capacity - collected.capacity()) {
                return Err(Error::overloaded());
            }
            collected.reserve_exact(capacity - collected.len());
        }
        collected.extend_from_slice(&chunk);
    }
    Ok(collected.into())
}

/// A body as it arrives, with limits of time.
struct Arriving {
    body: Incoming,
    end: Instant,
    progress: Progress,
    has_failed: bool,
}

impl Arriving {
    fn new(body: Incoming, limits: &Limits) -> Self {
        let now = Instant::now();
        Self {
            body,
            end: now + limits.timeout,
            progress: Progress::new(now),
            has_failed: false,
        }
    }

    /// The next bytes; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let due = self.end.min(self.progress.due);
            let frame = match timeout_at(due, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => frame.map_err(|error| failure(&error)),
                Err(_) => Err(Error::request_timeout()),
            };
            self.has_failed = frame.is_err();
            if let Ok(chunk) = frame?.into_data() {
                self.progress.record(chunk.len(), Instant::now());
                return Ok(Some(chunk));
            }
        }
    }

    /// Reads and drops the rest, in the background, as far as the client may have memory for it.
    fn discard(mut self, client: IpAddr, limits: &Limits) {
        let max = limits.size.saturating_mul(DISCARD_FACTOR);
        if self.has_failed
            || self.body.is_end_stream()
            || exceeds(self.body.size_hint().lower(), max)
        {
            return;
        }
        let evicted = CancellationToken::new();
        let memory = &limits.memory;
        let Some(permit) = memory.take(client, DISCARD_MEMORY, Usage::Idle, evicted.clone()) else {
            return;
        };
        let discard = async move {
            let _permit = permit;
            let mut size = 0_usize;
            while let Ok(Some(chunk)) = self.next().await {
                size = size.saturating_add(chunk.len());
                if size > max {
                    break;
                }
            }
        };
        tokio::spawn(evicted.run_until_cancelled_owned(discard));
    }
}

/// Whether a body arrives at the minimum rate.
struct Progress {
    /// When the missing bytes must have arrived.
    due: Instant,
    missing: usize,
}

impl Progress {
    fn new(now: Instant) -> Self {
        Self {
            due: now + PROGRESS_PERIOD,
            missing: MIN_PROGRESS,
        }
    }

    fn record(&mut self, bytes: usize, now: Instant) {
        self.missing = self.missing.saturating_sub(bytes);
        if self.missing == 0 {
            *self = Self::new(now);
        }
    }
}

fn failure(error: &hyper::Error) -> Error {
    if is_cut_off(error) || error.is_timeout() || error.is_closed() {
        // The client has most likely disconnected.
        Error::request_timeout()
    } else {
        // Such as a malformed chunk (RFC 9112 §7.1).
        Error::invalid_http("", "malformed", "the body is not well-formed HTTP")
    }
}

/// Whether a connection ended before the end of the body.
fn is_cut_off(error: &hyper::Error) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}

fn too_large(limits: &Limits) -> Error {
    let message = format!("the body is larger than {} bytes", limits.size);
    Error::new(&codes::PAYLOAD_TOO_LARGE, message)
}

fn exceeds(size: u64, limit: usize) -> bool {
    usize::try_from(size).map_or(true, |size| size > limit)
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use http_body_util::Empty;
    use hyper::{server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[test]
    fn a_body_must_bring_a_kibibyte_in_every_period() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut progress = Progress::new(start);

        progress.record(1023, later(2));
        assert_eq!(progress.due, later(3));
        progress.record(1, later(2));
        assert_eq!(progress.due, later(5));
        progress.record(5000, later(4));
        assert_eq!(progress.due, later(7));
    }

    /// The error of a body of which a client sends only the beginning before it disconnects.
    async fn failure_of(body: &str) -> Error {
        let (mut client, server) = tokio::io::duplex(1024);
        let request = format!("POST / HTTP/1.1\r\nhost: a\r\n{body}");
        client.write_all(request.as_bytes()).await.unwrap();
        drop(client);
        let (failures, mut failed) = tokio::sync::mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            let failures = failures.clone();
            async move {
                let error = request.into_body().collect().await.unwrap_err();
                failures.send(failure(&error)).unwrap();
                Err::<Response<Empty<Bytes>>, _>(error)
            }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        serving.await.unwrap_err();
        failed.recv().await.unwrap()
    }

    #[tokio::test]
    async fn a_body_that_is_cut_off_is_told_from_a_malformed_one() {
        for (body, status) in [
            ("content-length: 5\r\n\r\n12", 408),
            ("transfer-encoding: chunked\r\n\r\n5\r\n12", 408),
            ("transfer-encoding: chunked\r\n\r\nx\r\n", 400),
        ] {
            let failure = failure_of(body).await;
            assert_eq!(failure.kind.status, status, "{body}: {failure}");
        }
    }
}
