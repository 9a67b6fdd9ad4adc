//! Accepts client connections, over TLS if a certificate is configured.

mod in_flight;
mod io;
mod tls_config;

use std::{
    collections::VecDeque,
    io::{Error as IoError, ErrorKind},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use futures_util::Stream;
use process::{listen::accept_permitted, tls};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

pub use self::tls_config::TlsConfig;
pub(crate) use self::{
    in_flight::CallsInFlight,
    io::{Connection, ConnectionInfo},
};

/// Timeout from the accept to the end of the TLS handshake or, without TLS, to the first bytes of
/// the client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// After shutdown, the timeout for the next handshake of a connection that was already accepted.
const SHUTDOWN_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// Limit of concurrent handshakes; a further one aborts the oldest, so that clients which only
/// connect do not block others.
const MAX_HANDSHAKES: usize = 1024;

/// Limit of open connections, handshakes included; further ones wait in the listen backlog.
pub(crate) const MAX_CONNECTIONS: usize = 4096;

/// The stream of connections until `shutdown`, each after its handshake.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Option<tls::Server>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Connection, IoError>> {
    let acceptor = Acceptor {
        listener: Some(listener),
        tls: tls.map(Arc::new),
        handshakes: JoinSet::new(),
        by_age: VecDeque::new(),
        permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        shutdown,
    };
    futures_util::stream::unfold(acceptor, async |mut acceptor| {
        let connection = acceptor.next().await?;
        Some((Ok(connection), acceptor))
    })
}

struct Acceptor {
    /// None after shutdown.
    listener: Option<TcpListener>,
    tls: Option<Arc<tls::Server>>,
    handshakes: JoinSet<Result<Connection, (Option<IpAddr>, IoError)>>,
    /// The handles of `handshakes`, oldest first; some may have ended.
    by_age: VecDeque<AbortHandle>,
    permits: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl Acceptor {
    async fn next(&mut self) -> Option<Connection> {
        while let Some(listener) = &self.listener {
            tokio::select! {
                () = self.shutdown.cancelled() => self.close().await,
                Some(finished) = self.handshakes.join_next() => match finished {
                    Ok(Ok(connection)) => return Some(connection),
                    Ok(Err((peer, error))) => log_refused(self.tls.is_some(), peer, &error),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "handshake task panicked"),
                },
                (stream, permit) = accept_permitted(listener, &self.permits) => {
                    self.start_handshake(stream, permit);
                }
            }
        }
        self.next_after_close().await
    }

    /// Accepts the connections already in the listen backlog and closes the listener.
    async fn close(&mut self) {
        if let Some(listener) = self.listener.take() {
            let permits = Arc::clone(&self.permits);
            while let Ok((stream, permit)) =
                timeout(Duration::ZERO, accept_permitted(&listener, &permits)).await
            {
                self.start_handshake(stream, permit);
            }
        }
    }

    /// The next connection that was accepted before the listener closed.
    async fn next_after_close(&mut self) -> Option<Connection> {
        let next = async {
            while let Some(finished) = self.handshakes.join_next().await {
                if let Ok(Ok(connection)) = finished {
                    return Some(connection);
                }
            }
            None
        };
        timeout(SHUTDOWN_HANDSHAKE_TIMEOUT, next)
            .await
            .ok()
            .flatten()
    }

    fn start_handshake(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        while self.by_age.front().is_some_and(AbortHandle::is_finished) {
            self.by_age.pop_front();
        }
        if self.handshakes.len() >= MAX_HANDSHAKES
            && let Some(oldest) = self.by_age.pop_front()
        {
            oldest.abort();
        }
        let tls = self.tls.clone();
        let peer = stream.peer_addr().ok().map(|peer| peer.ip());
        let handshake = self.handshakes.spawn(async move {
            timeout(HANDSHAKE_TIMEOUT, handshake(stream, tls.as_deref(), permit))
                .await
                .unwrap_or_else(|_| Err(IoError::from(std::io::ErrorKind::TimedOut)))
                .map_err(|error| (peer, error))
        });
        self.by_age.push_back(handshake);
    }
}

/// Logs a TLS handshake that was refused by either end, with the reason. Peers are programs of the
/// platform.
fn log_refused(is_tls: bool, peer: Option<IpAddr>, error: &IoError) {
    let peer = peer.map(tracing::field::display);
    // The peer may have connected by mistake, or only to check that the port is open.
    let is_closed = matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::TimedOut
    );
    if is_tls && !is_closed {
        tracing::warn!(peer, %error, "TLS handshake refused");
    } else {
        tracing::debug!(peer, %error, "connection closed before its first bytes");
    }
}

async fn handshake(
    stream: TcpStream,
    tls: Option<&tls::Server>,
    permit: OwnedSemaphorePermit,
) -> Result<Connection, IoError> {
    // Send small responses without delay.
    stream.set_nodelay(true)?;
    let peer = stream.peer_addr()?.ip();
    if let Some(tls) = tls {
        let stream = tls.acceptor().accept(stream).await?;
        return Ok(Connection::new(stream, peer, permit));
    }
    // Silent clients must not occupy a connection.
    stream.readable().await?;
    Ok(Connection::new(stream, peer, permit))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::StreamExt as _;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_client_that_connects_does_not_end_the_handshake_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut incoming = pin!(incoming(listener, None, CancellationToken::new()));
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(addr).await.unwrap());
        }

        // The last one sends first: by then, the others are accepted too.
        for client in clients.iter_mut().rev() {
            client.write_all(b"PRI * HTTP/2.0").await.unwrap();
            let next = timeout(HANDSHAKE_TIMEOUT, incoming.next()).await;
            assert!(matches!(next, Ok(Some(Ok(_)))), "{:?}", next.is_ok());
        }
    }
}
