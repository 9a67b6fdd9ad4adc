//! Connects to permitted addresses only. Resolves a host, checks every address, and connects to a
//! checked address: there is no second lookup that could return another one (DNS rebinding).

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use egress::{Denied, Policy};
use futures_util::{StreamExt, stream::FuturesUnordered};
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::{attempt::Attempt, resolver::Resolver};

/// Delay before the next address is tried concurrently (RFC 8305 section 5).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Opens TCP connections to hosts that the policy permits, by name or literal address.
#[derive(Clone)]
pub(crate) struct AddressGuard {
    policy: Arc<Policy>,
    resolver: Resolver,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot resolve the host name")]
    Dns(#[source] io::Error),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("cannot connect")]
    Connect(#[source] io::Error),
}

impl AddressGuard {
    pub(crate) fn new(policy: Policy, resolver: Resolver) -> Self {
        Self {
            policy: Arc::new(policy),
            resolver,
        }
    }

    pub(crate) async fn open(
        self,
        uri: Uri,
        attempt: Attempt,
    ) -> Result<TokioIo<GuardedStream>, Error> {
        let addrs = resolve(&uri, &self.resolver).await.map_err(Error::Dns)?;
        attempt.record(|phases, elapsed| phases.resolved = Some(elapsed));
        let stream = self.connect(&addrs).await?;
        attempt.record(|phases, elapsed| phases.connected = Some(elapsed));
        Ok(TokioIo::new(GuardedStream {
            stream,
            usage: Usage::default(),
        }))
    }

    /// One denied address denies the host: the owner of the name controls the order of addresses.
    async fn connect(&self, addrs: &[SocketAddr]) -> Result<TcpStream, Error> {
        for addr in addrs {
            self.policy.check_addr(*addr)?;
        }
        let stream = connect_to_first(addrs).await.map_err(Error::Connect)?;
        stream.set_nodelay(true).map_err(Error::Connect)?;
        Ok(stream)
    }
}

async fn resolve(uri: &Uri, resolver: &Resolver) -> io::Result<Vec<SocketAddr>> {
    let invalid = |message| io::Error::new(io::ErrorKind::InvalidInput, message);
    let host = uri.host().ok_or_else(|| invalid("the url has no host"))?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let port = match (uri.port_u16(), uri.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("https")) => 443,
        (None, Some("http")) => 80,
        (None, _) => return Err(invalid("the url has no port")),
    };

    // Names of loopback (RFC 6761 §6.3), which not every system resolves.
    let without_dot = host.strip_suffix('.').unwrap_or(host);
    let is_loopback = without_dot == "localhost" || without_dot.ends_with(".localhost");
    let host = if is_loopback { "localhost" } else { host };

    let addrs = resolver.look_up(host).await?;
    if addrs.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the host name has no address",
        ));
    }
    let with_port = |addr| SocketAddr::new(addr, port);
    Ok(addrs.into_iter().map(with_port).collect())
}

/// Connects to the address that accepts first (Happy Eyeballs, RFC 8305).
async fn connect_to_first(addrs: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut remaining = addrs.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        attempts.extend(remaining.next().map(|addr| TcpStream::connect(*addr)));
        tokio::select! {
            attempt = attempts.next() => match attempt {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => failure = error,
                None => return Err(failure),
            },
            () = tokio::time::sleep(CONNECTION_ATTEMPT_DELAY), if remaining.len() > 0 => {}
        }
    }
}

/// A connection to a permitted address.
#[derive(Debug)]
pub(crate) struct GuardedStream {
    stream: TcpStream,
    usage: Usage,
}

/// Whether a connection has carried a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Arc<AtomicBool>);

impl Usage {
    pub(crate) fn is_used(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set_used(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Connection for GuardedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.usage.clone())
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
