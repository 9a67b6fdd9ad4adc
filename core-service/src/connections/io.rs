//! An accepted connection, with or without TLS.

use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Interval, Sleep, interval_at},
};
use tonic::transport::server::Connected;

/// A byte stream that gRPC is served on.
pub(crate) struct Connection {
    io: Pin<Box<dyn Io>>,
    preface: Preface,
    info: ConnectionInfo,
    response_check: Interval,
    response_timeout: Duration,
    /// Counts it against the limit of connections.
    _permit: OwnedSemaphorePermit,
}

/// The first bytes of an HTTP/2 client (RFC 9113 §3.4). The HTTP library sends no pings before it
/// has read them, and would wait for them without a timeout.
enum Preface {
    Awaited {
        missing: usize,
        deadline: Pin<Box<Sleep>>,
    },
    Received,
}

/// The length of the client's preface, in bytes.
const PREFACE_LEN: usize = 24;

/// How long a client may take to send it.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to read a response. Far longer than a gateway waits for one.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

/// Number of checks for unread responses within [`RESPONSE_TIMEOUT`].
const RESPONSE_CHECKS: u32 = 8;

trait Io: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

/// Limits, on one connection, of anonymous calls with an incomplete message, and of health checks
/// and reflection. The message of a gateway's token request arrives at once.
const MAX_ANONYMOUS_CALLS_PER_CONNECTION: usize = 64;

/// A connection's peer, and the limits that its calls share.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) peer: IpAddr,
    /// For anonymous calls, such as token requests, whose message is incomplete.
    pub(crate) anonymous_calls: Arc<Semaphore>,
    /// For health checks and reflection.
    pub(crate) other_calls: Arc<Semaphore>,
    pub(crate) unread_responses: UnreadResponses,
}

/// The responses, except those of streams, that the client has not read to their end, each with the
/// instant at which it began. A client may answer pings but grant no flow-control window, and the HTTP
/// library would keep its responses in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnreadResponses(Arc<Mutex<Unread>>);

#[derive(Debug, Default)]
struct Unread {
    next: u64,
    since: BTreeMap<u64, Instant>,
}

/// An unread response; dropped when it ends.
struct UnreadResponse {
    all: UnreadResponses,
    number: u64,
}

impl UnreadResponses {
    /// Adds a response until the returned guard is dropped.
    pub(crate) fn add(&self) -> impl Send + 'static {
        let mut unread = self.0.lock();
        let number = unread.next;
        unread.next += 1;
        unread.since.insert(number, Instant::now());
        UnreadResponse {
            all: self.clone(),
            number,
        }
    }

    /// Whether the oldest has been unread for this long.
    fn is_older_than(&self, timeout: Duration) -> bool {
        let unread = self.0.lock();
        let oldest = unread.since.first_key_value();
        oldest.is_some_and(|(_, since)| since.elapsed() >= timeout)
    }
}

impl Drop for UnreadResponse {
    fn drop(&mut self) {
        let mut unread = self.all.0.lock();
        unread.since.remove(&self.number);
    }
}

impl ConnectionInfo {
    pub(crate) fn new(peer: IpAddr) -> Self {
        let semaphore = || Arc::new(Semaphore::new(MAX_ANONYMOUS_CALLS_PER_CONNECTION));
        Self {
            peer,
            anonymous_calls: semaphore(),
            other_calls: semaphore(),
            unread_responses: UnreadResponses::default(),
        }
    }
}

impl Connection {
    pub(super) fn new(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        peer: IpAddr,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self::with_timeouts(io, peer, permit, [PREFACE_TIMEOUT, RESPONSE_TIMEOUT])
    }

    fn with_timeouts(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        peer: IpAddr,
        permit: OwnedSemaphorePermit,
        [preface_timeout, response_timeout]: [Duration; 2],
    ) -> Self {
        let period = response_timeout / RESPONSE_CHECKS;
        Self {
            io: Box::pin(io),
            preface: Preface::Awaited {
                missing: PREFACE_LEN,
                deadline: Box::pin(tokio::time::sleep(preface_timeout)),
            },
            info: ConnectionInfo::new(peer),
            response_check: interval_at(Instant::now() + period, period),
            response_timeout,
            _permit: permit,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.response_check.poll_tick(cx).is_ready() {
            if this
                .info
                .unread_responses
                .is_older_than(this.response_timeout)
            {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        let before = buffer.filled().len();
        let read = this.io.as_mut().poll_read(cx, buffer);
        if let Preface::Awaited { missing, deadline } = &mut this.preface {
            let received = buffer.filled().len() - before;
            if received >= *missing {
                this.preface = Preface::Received;
            } else {
                *missing -= received;
                if deadline.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    fn connection(preface_timeout: Duration) -> (Connection, DuplexStream) {
        with_timeouts([preface_timeout, RESPONSE_TIMEOUT])
    }

    fn with_timeouts(timeouts: [Duration; 2]) -> (Connection, DuplexStream) {
        let (server, client) = tokio::io::duplex(64);
        let peer = Ipv4Addr::LOCALHOST.into();
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let connection = Connection::with_timeouts(server, peer, permit, timeouts);
        (connection, client)
    }

    #[tokio::test]
    async fn a_client_that_does_not_complete_its_preface_is_disconnected() {
        let (mut connection, mut client) = connection(Duration::from_millis(1));
        client.write_all(b"PRI * HTTP/2.0").await.unwrap();
        let mut received = Vec::new();

        let read = connection.read_to_end(&mut received).await;

        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_may_be_idle_after_its_preface() {
        let (mut connection, mut client) = connection(Duration::ZERO);
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        connection.read_exact(&mut [0; PREFACE_LEN]).await.unwrap();

        let mut buffer = [0; 1];
        let mut idle = std::pin::pin!(connection.read(&mut buffer));
        tokio::task::yield_now().await;

        assert!(idle.as_mut().now_or_never().is_none());
        client.write_all(b"x").await.unwrap();
        assert_eq!(idle.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_a_response_is_disconnected() {
        let timeouts = [PREFACE_TIMEOUT, Duration::from_millis(16)];
        let (mut connection, mut client) = with_timeouts(timeouts);
        let unread = connection.connect_info().unread_responses;
        drop(unread.add());
        assert!(!unread.is_older_than(Duration::ZERO));
        let _response = unread.add();
        assert!(!unread.is_older_than(RESPONSE_TIMEOUT));
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        let mut received = Vec::new();

        let read = connection.read_to_end(&mut received).await;

        assert_eq!(received.len(), PREFACE_LEN);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_that_is_shut_down_has_sent_all_and_ends() {
        let (mut connection, mut client) = connection(PREFACE_TIMEOUT);
        connection.write_all(b"response").await.unwrap();

        connection.shutdown().await.unwrap();

        let mut received = Vec::new();
        let ended = client.read_to_end(&mut received).now_or_never();
        assert!(ended.is_some_and(|read| read.is_ok()), "it has ended");
        assert_eq!(received, b"response");
    }
}
