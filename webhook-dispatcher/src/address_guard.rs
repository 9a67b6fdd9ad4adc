//! Connects to permitted addresses only. Resolves a host, checks every address, and connects to a
//! checked address: there is no second lookup that could return another one (DNS rebinding).

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use egress::{Denied, Policy};
use futures_util::{StreamExt, stream::FuturesUnordered};
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::{attempt::Attempt, resolver::Resolver};

/// Delay before the next address is tried concurrently (RFC 8305 section 5).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Opens TCP connections to hosts that the policy permits, by name or literal address.
#[derive(Clone, Debug)]
pub(crate) struct AddressGuard {
    policy: Arc<Policy>,
    resolver: Resolver,
}

/// Why no connection was opened.
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

impl Service<Uri> for AddressGuard {
    type Response = TokioIo<TcpStream>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let guard = self.clone();
        let attempt = Attempt::current();
        Box::pin(async move {
            let addrs = resolve(&uri, &guard.resolver).await.map_err(Error::Dns)?;
            attempt.record(|phases, elapsed| phases.resolved = Some(elapsed));
            let stream = guard.connect(&addrs).await?;
            attempt.record(|phases, elapsed| {
                phases.connected = Some(elapsed);
                phases.local_addr = stream.local_addr().ok();
            });
            Ok(TokioIo::new(stream))
        })
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

#[cfg(test)]
mod tests;
