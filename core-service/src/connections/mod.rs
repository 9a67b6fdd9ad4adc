//! The connections of callers: accepted, and over TLS if a certificate is given.

mod calls;
mod io;
mod tls;

use std::{io::Error as IoError, sync::Arc, time::Duration};

use futures_util::Stream;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

pub use self::tls::TlsConfig;
pub(crate) use self::{calls::Calls, io::Connection, tls::Tls};

/// After an accept failed for want of resources, which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a caller may take to say its first bytes, the TLS handshake included.
const GREETING: Duration = Duration::from_secs(10);

/// How long callers that are just connecting when the core is told to end may still take.
const LAST_GREETINGS: Duration = Duration::from_secs(1);

/// How many callers may be connecting at once; more wait to be accepted.
const MAX_GREETING: usize = 1024;

/// The connections as they come, each once its caller has said something, until `shutdown`.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Option<Tls>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Connection, IoError>> {
    let door = Door {
        listener: Some(listener),
        tls: tls.map(Arc::new),
        greeting: JoinSet::new(),
        shutdown,
    };
    futures_util::stream::unfold(door, async |mut door| {
        let connection = door.next().await?;
        Some((Ok(connection), door))
    })
}

struct Door {
    /// None once nobody is let in any more.
    listener: Option<TcpListener>,
    tls: Option<Arc<Tls>>,
    /// Those who are connecting.
    greeting: JoinSet<Result<Connection, IoError>>,
    shutdown: CancellationToken,
}

impl Door {
    async fn next(&mut self) -> Option<Connection> {
        while let Some(listener) = &self.listener {
            tokio::select! {
                () = self.shutdown.cancelled() => self.close().await,
                Some(greeted) = self.greeting.join_next() => match greeted {
                    Ok(Ok(connection)) => return Some(connection),
                    Ok(Err(error)) => tracing::debug!(%error, "a caller did not connect"),
                    Err(error) => tracing::error!(%error, "a connection was lost"),
                },
                accepted = listener.accept(), if self.greeting.len() < MAX_GREETING => {
                    match accepted {
                        Ok((stream, _)) => self.greet(stream),
                        Err(error) => {
                            tracing::warn!(%error, "a connection could not be accepted");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    }
                }
            }
        }
        self.last().await
    }

    /// Lets nobody in any more but those who are at the door, as far as the kernel knows.
    async fn close(&mut self) {
        if let Some(listener) = self.listener.take() {
            while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
                self.greet(stream);
            }
        }
    }

    /// The next of those who were at the door in time.
    async fn last(&mut self) -> Option<Connection> {
        let next = async {
            while let Some(greeted) = self.greeting.join_next().await {
                if let Ok(Ok(connection)) = greeted {
                    return Some(connection);
                }
            }
            None
        };
        timeout(LAST_GREETINGS, next).await.ok().flatten()
    }

    fn greet(&mut self, stream: TcpStream) {
        let tls = self.tls.clone();
        self.greeting.spawn(async move {
            timeout(GREETING, greet(stream, tls.as_deref()))
                .await
                .unwrap_or_else(|_| Err(IoError::from(std::io::ErrorKind::TimedOut)))
        });
    }
}

async fn greet(stream: TcpStream, tls: Option<&Tls>) -> Result<Connection, IoError> {
    // Small answers wait for nothing.
    stream.set_nodelay(true)?;
    if let Some(tls) = tls {
        return Ok(Connection::new(tls.acceptor().accept(stream).await?));
    }
    // Who never says anything holds no connection.
    stream.readable().await?;
    Ok(Connection::new(stream))
}
