//! Connects to one address of a core, over TLS if its URL is `https`.

use std::{io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use process::reloading::Reloading;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{io::AsyncBufReadExt as _, net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::either::Either;

use crate::{
    core_url::CoreAddr,
    error_chain::{causes, tls_advice},
};

/// Limit for connecting, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for the first bytes of a core, which show that it accepted the client
/// certificate.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_millis(250);

/// Why a connection to a core could not be opened; so no request was sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub(crate) String);

impl ConnectError {
    /// The connector's error inside a transport error, without the layers around it.
    pub(crate) fn from_channel(error: &tonic::transport::Error) -> Self {
        let found = causes(error).find_map(|cause| cause.downcast_ref::<Self>());
        Self(found.map_or_else(|| error.to_string(), Self::to_string))
    }
}

/// Connects to one address of a core.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) core: CoreAddr,
    pub(crate) tls: Option<Arc<Reloading<ClientConfig>>>,
}

pub(crate) type Connection = TokioIo<Either<TcpStream, TlsStream<TcpStream>>>;

impl Connector {
    pub(crate) async fn connect(self) -> Result<Connection, ConnectError> {
        let core = self.core.clone();
        let connected = timeout(CONNECT_TIMEOUT, self.connect_without_timeout()).await;
        let message = match connected {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => match tls_advice(&error) {
                Some(advice) => format!("cannot connect to {core} over TLS: {advice}"),
                None => format!("cannot connect to {core}: {error}"),
            },
            Err(_) => format!("cannot connect to {core} within {CONNECT_TIMEOUT:?}"),
        };
        Err(ConnectError(message))
    }

    async fn connect_without_timeout(self) -> io::Result<Connection> {
        let stream = TcpStream::connect(self.core.addr).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls else {
            return Ok(TokioIo::new(Either::Left(stream)));
        };
        let name = ServerName::try_from(self.core.url.host())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut stream = TlsConnector::from(tls.current())
            .connect(name, stream)
            .await?;
        // A server verifies the client certificate after the client has finished the handshake.
        // The server closes the connection to reject it; data or silence counts as acceptance.
        if let Ok(first) = timeout(FIRST_BYTES_TIMEOUT, stream.fill_buf()).await
            && first?.is_empty()
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(TokioIo::new(Either::Right(stream)))
    }
}
