//! The connector that calls only permitted addresses. It resolves, judges every address, and
//! connects to what it judged: there is no second look-up to answer differently.

use std::{
    future::Future,
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

use egress::{Policy, Refused};
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
use tower::Service;

use crate::{resolver::Resolver, webhook_tests::Trace};

/// How long one address may take before the next is tried beside it (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Opens TCP connections to what the policy permits, names and literal addresses alike.
#[derive(Clone, Debug)]
pub(crate) struct AddressGuard {
    policy: Arc<Policy>,
    resolver: Resolver,
    /// Who wants to know how far connections come.
    trace: Option<Arc<Trace>>,
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the host's name cannot be resolved")]
    Dns(#[source] io::Error),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("no connection")]
    Connect(#[source] io::Error),
}

impl AddressGuard {
    pub(crate) fn new(policy: Policy, resolver: Resolver) -> Self {
        Self {
            policy: Arc::new(policy),
            resolver,
            trace: None,
        }
    }

    /// The same, that tells how far connections come.
    pub(crate) fn traced(&self, trace: Arc<Trace>) -> Self {
        Self {
            trace: Some(trace),
            ..self.clone()
        }
    }

    async fn resolve_and_connect(&self, uri: &Uri) -> Result<TcpStream, Error> {
        let addrs = resolve(uri, &self.resolver).await.map_err(Error::Dns)?;
        self.note(Trace::resolved);
        let stream = self.connect(&addrs).await?;
        self.note(Trace::connected);
        Ok(stream)
    }

    fn note(&self, note: fn(&Trace)) {
        if let Some(trace) = &self.trace {
            note(trace);
        }
    }

    /// One refused address refuses the host: which one a name answers with first is up to
    /// whoever owns the name.
    async fn connect(&self, addrs: &[SocketAddr]) -> Result<TcpStream, Error> {
        for addr in addrs {
            self.policy.check_addr(*addr)?;
        }
        let stream = connect_to_first(addrs).await.map_err(Error::Connect)?;
        stream.set_nodelay(true).map_err(Error::Connect)?;
        Ok(stream)
    }
}

impl Service<Uri> for AddressGuard {
    type Response = TokioIo<GuardedStream>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let guard = self.clone();
        Box::pin(async move {
            let stream = guard.resolve_and_connect(&uri).await?;
            Ok(TokioIo::new(GuardedStream {
                stream,
                usage: Usage::default(),
            }))
        })
    }
}

async fn resolve(uri: &Uri, resolver: &Resolver) -> io::Result<Vec<SocketAddr>> {
    let missing = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let host = uri.host().ok_or_else(|| missing("the url has no host"))?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let port = match (uri.port_u16(), uri.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("https")) => 443,
        (None, Some("http")) => 80,
        (None, _) => return Err(missing("the url has no port")),
    };

    let addrs = resolver.look_up(host).await?;
    if addrs.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ));
    }
    let with_port = |addr| SocketAddr::new(addr, port);
    Ok(addrs.into_iter().map(with_port).collect())
}

async fn connect_to_first(addrs: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut waiting = addrs.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        attempts.extend(waiting.next().map(|addr| TcpStream::connect(*addr)));
        tokio::select! {
            attempt = attempts.next() => match attempt {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => failure = error,
                None => return Err(failure),
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => {}
        }
    }
}

/// A connection to a permitted address.
#[derive(Debug)]
pub(crate) struct GuardedStream {
    stream: TcpStream,
    usage: Usage,
}

/// Whether a connection has carried an exchange yet.
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
