//! Checks HTTP/1 requests before hyper parses them. hyper answers a malformed head itself, with an
//! empty response, and hides a `Content-Length` that comes with a `Transfer-Encoding`.
//!
//! hyper gets a well-formed request in place of a malformed one, so that responses keep their
//! order; [`Rejections`] tells the service which request that is. It is the last of its connection.

mod head;
mod messages;

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tokio_util::io::poll_read_buf;

pub(crate) use self::head::{MAX_HEAD, MAX_HEADERS, Rejection, check_http2};
#[cfg(fuzzing)]
pub(crate) use self::messages::examine;
use self::{
    head::Rejected,
    messages::{Messages, Step},
};

const READ_SIZE: usize = 8 * 1024;
/// How much is read and discarded, and for how long, after a rejection.
const MAX_DISCARDED: usize = 4 * 1024 * 1024;
const MAX_LINGERING: Duration = Duration::from_secs(5);

/// The rejected request of a connection.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    /// The number of the request, counted from 1.
    rejected: OnceLock<(usize, Rejection)>,
    /// How many requests the service received.
    received: AtomicUsize,
}

impl Rejections {
    /// Counts a request; returns why it is rejected, if it is.
    pub(crate) fn of_next_request(&self) -> Option<Rejection> {
        let number = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        let (rejected, rejection) = *self.rejected.get()?;
        (number == rejected).then_some(rejection)
    }
}

/// A connection whose request heads are checked as they are read.
pub(crate) struct Http1Guard<S> {
    connection: S,
    messages: Messages,
    rejections: Arc<Rejections>,
    /// Read, but not forwarded.
    buffer: BytesMut,
    /// How many bytes of the buffer may be forwarded.
    forwardable: usize,
    is_at_end: bool,
    /// Set once the connection is shut down after a rejection.
    lingering: Option<Lingering>,
}

struct Lingering {
    end: Pin<Box<Sleep>>,
    discarded: usize,
}

impl<S> Http1Guard<S> {
    pub(crate) fn new(connection: S, rejections: Arc<Rejections>) -> Self {
        Self {
            connection,
            messages: Messages::default(),
            rejections,
            buffer: BytesMut::new(),
            forwardable: 0,
            is_at_end: false,
            lingering: None,
        }
    }

    fn is_rejected(&self) -> bool {
        self.rejections.rejected.get().is_some()
    }

    fn reject(&mut self, rejected: &Rejected) {
        let number = self.messages.heads;
        // The first rejection is the last.
        let _ = self.rejections.rejected.set((number, rejected.rejection));
        self.buffer = BytesMut::from(&rejected.substitute[..]);
        self.forwardable = self.buffer.len();
    }
}

impl<S: AsyncRead + Unpin> Http1Guard<S> {
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(READ_SIZE);
        poll_read_buf(Pin::new(&mut self.connection), cx, &mut self.buffer)
    }

    /// Reads and discards what still arrives: a connection that is closed before is reset, and the
    /// client might not get the response.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Lingering { end, discarded } = self.lingering.get_or_insert_with(|| Lingering {
            end: Box::pin(sleep(MAX_LINGERING)),
            discarded: 0,
        });
        while *discarded <= MAX_DISCARDED && end.as_mut().poll(cx).is_pending() {
            self.buffer.clear();
            self.buffer.reserve(READ_SIZE);
            let connection = Pin::new(&mut self.connection);
            match ready!(poll_read_buf(connection, cx, &mut self.buffer)) {
                Ok(read @ 1..) => *discarded += read,
                Ok(0) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Http1Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.forwardable > 0 {
                let length = this.forwardable.min(target.remaining());
                target.put_slice(&this.buffer[..length]);
                this.buffer.advance(length);
                this.forwardable -= length;
                return Poll::Ready(Ok(()));
            }
            if this.is_rejected() {
                // Nothing follows, but the end of the connection would cancel the request.
                return Poll::Pending;
            }
            if this.is_at_end {
                return Poll::Ready(Ok(()));
            }
            let step = match this.buffer[..] {
                [] => Step::ReadMore,
                ref bytes => this.messages.examine(bytes),
            };
            match step {
                Step::Forward(length) => this.forwardable = length,
                Step::Reject(rejected) => this.reject(&rejected),
                Step::End => {
                    this.is_at_end = true;
                    this.buffer.clear();
                    // The body is malformed. An error: the end of the input would mean that it is cut
                    // off.
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                Step::ReadMore => {
                    if ready!(this.poll_fill(cx))? == 0 {
                        // hyper reports an incomplete request.
                        this.is_at_end = true;
                        this.forwardable = this.buffer.len();
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Http1Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.connection).poll_shutdown(cx))?;
        }
        if self.is_rejected() {
            ready!(self.poll_discard(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, join, repeat, sink};

    use super::*;

    #[tokio::test]
    async fn what_follows_a_rejected_request_is_read_up_to_a_limit() {
        let most = MAX_DISCARDED as u64;
        let endless = repeat(b'\0').take(4 * most);
        let mut guard = Http1Guard::new(join(endless, sink()), Arc::default());
        // The beginning of the substitute.
        guard.read_u8().await.unwrap();

        guard.shutdown().await.unwrap();

        let read = 4 * most - guard.connection.reader().limit();
        assert!((most..2 * most).contains(&read), "{read} bytes were read");
    }
}
