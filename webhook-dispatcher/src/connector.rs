//! Connects to receivers: through the address guard, over TLS for https, and within a timeout.

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
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::address_guard::{self, AddressGuard, GuardedStream};

/// The maximum number of connections that are still being opened after their attempt has ended. An
/// attempt abandons the connection that it opens if another one becomes idle first; once open, the
/// abandoned connection serves a later attempt.
const MAX_ABANDONED: usize = 64;

tokio::task_local! {
    /// Cancelled at the end of the attempt that this task makes.
    static ATTEMPT_ENDED: CancellationToken;
}

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

/// Runs an attempt. At its end, abandons the connections that it was opening.
pub(crate) async fn run_attempt<F: Future>(attempt: F) -> F::Output {
    let ended = CancellationToken::new();
    let _end_on_return = ended.clone().drop_guard();
    ATTEMPT_ENDED.scope(ended, attempt).await
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
        let connecting = async move {
            match connecting.await {
                Ok(connected) => connected.map_err(Error::from_boxed),
                Err(_) => Err(Error::Timeout(timeout)),
            }
        };
        let ended = ATTEMPT_ENDED
            .try_with(CancellationToken::clone)
            .unwrap_or_default();
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
