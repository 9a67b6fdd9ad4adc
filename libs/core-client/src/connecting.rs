//! One connection to a core.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::rt::TokioIo;
use process::tls::Watched;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::{cores::CoreAddr, failure::tls_advice};

/// How long connecting may take, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a core's first words are waited for, which tell whether it took our certificate.
const FIRST_WORDS: Duration = Duration::from_millis(250);

/// Why there is no connection: nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct ConnectError {
    sentence: String,
}

impl ConnectError {
    pub(crate) fn no_address(urls: &str) -> Self {
        Self {
            sentence: format!("{urls} has no address: is the name right?"),
        }
    }

    /// What the connector said, without what others put around it.
    pub(crate) fn of_channel(error: &tonic::transport::Error) -> Self {
        let sentence = crate::causes(error)
            .find_map(|cause| cause.downcast_ref::<Self>())
            .map_or_else(|| error.to_string(), |found| found.sentence.clone());
        Self { sentence }
    }
}

/// Connects to one address of a core, whatever the URI.
#[derive(Clone)]
pub(crate) struct Connector {
    core: CoreAddr,
    tls: Option<Arc<Watched<ClientConfig>>>,
}

pub(crate) trait Io: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

type Connection = TokioIo<Pin<Box<dyn Io>>>;

impl Connector {
    pub(crate) fn new(core: &CoreAddr, tls: Option<Arc<Watched<ClientConfig>>>) -> Self {
        Self {
            core: core.clone(),
            tls,
        }
    }

    async fn connect(self) -> Result<Connection, ConnectError> {
        let core = self.core.clone();
        let connected = timeout(CONNECT_TIMEOUT, self.connect_at_leisure()).await;
        let why = match connected {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => match tls_advice(&error) {
                Some(advice) => format!("{core} cannot be spoken to over TLS: {advice}"),
                None => format!("no core answers at {core}: {error}"),
            },
            Err(_) => format!("no core answers at {core} within {CONNECT_TIMEOUT:?}"),
        };
        Err(ConnectError { sentence: why })
    }

    async fn connect_at_leisure(self) -> io::Result<Connection> {
        let stream = TcpStream::connect(self.core.addr).await?;
        // Small calls wait for nothing.
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls else {
            return Ok(TokioIo::new(Box::pin(stream)));
        };
        let name = match self.core.url.ip() {
            Some(ip) => ServerName::from(ip),
            None => ServerName::try_from(self.core.url.host())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        };
        let mut stream = TlsConnector::from(tls.current())
            .connect(name, stream)
            .await?;
        // A server judges a client's certificate after the client is done. It speaks first when
        // it is content; one that waits for us is, too.
        if let Ok(first) = timeout(FIRST_WORDS, stream.fill_buf()).await
            && first?.is_empty()
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(TokioIo::new(Box::pin(stream)))
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}
