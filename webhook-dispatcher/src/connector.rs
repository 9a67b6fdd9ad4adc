//! Connects to receivers: at permitted addresses only (by the address guard), over TLS for https,
//! and within a timeout.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tower::{BoxError, Service};

use crate::{
    address_guard::{self, AddressGuard, GuardedStream},
    attempt::Attempt,
};

/// The maximum number of connections that are still being opened after their attempt has ended. An
/// attempt abandons the connection that it opens if another one becomes idle first; once open, the
/// abandoned connection serves a later attempt.
const MAX_ABANDONED: usize = 64;

/// Opens connections to receivers.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<AddressGuard>,
    /// Limit for DNS, TCP and TLS together.
    timeout: Duration,
    abandoned: Arc<Semaphore>,
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("not connected")]
    Guard(#[from] address_guard::Error),
    #[error("TLS handshake failed")]
    Tls(#[source] BoxError),
    #[error("not connected within {0:?}")]
    Timeout(Duration),
    /// [`MAX_ABANDONED`] other connections are already abandoned.
    #[error("too many abandoned connections")]
    TooManyAbandoned,
}

impl Connector {
    pub(crate) fn new(guard: AddressGuard, tls: rustls::ClientConfig, timeout: Duration) -> Self {
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(guard);
        Self {
            https,
            timeout,
            abandoned: Arc::new(Semaphore::new(MAX_ABANDONED)),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<GuardedStream>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.https.poll_ready(cx).map_err(Error::from_boxed)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.https.call(uri));
        let timeout = self.timeout;
        let attempt = Attempt::current();
        let ended = attempt.ended.clone();
        let connecting = async move {
            let connected = connecting.await.map_err(|_| Error::Timeout(timeout))?;
            let stream = connected.map_err(Error::from_boxed)?;
            if let MaybeHttpsStream::Https(stream) = &stream {
                let (_, session) = stream.inner().get_ref();
                attempt.record(|phases, elapsed| {
                    phases.handshake_completed = Some(elapsed);
                    phases.tls_version = session.protocol_version();
                });
            }
            Ok(stream)
        };
        let abandoned = Arc::clone(&self.abandoned);
        Box::pin(async move {
            let mut connecting = pin!(connecting);
            tokio::select! {
                biased;
                connected = &mut connecting => return connected,
                () = ended.cancelled() => {}
            }
            let Ok(_permit) = abandoned.try_acquire() else {
                return Err(Error::TooManyAbandoned);
            };
            connecting.await
        })
    }
}

impl Error {
    /// An error that is not the guard's is a TLS error: only the handshake follows the guard.
    fn from_boxed(error: BoxError) -> Self {
        match error.downcast() {
            Ok(error) => Self::Guard(*error),
            Err(error) => Self::Tls(error),
        }
    }
}
