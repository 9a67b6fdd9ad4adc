//! How receivers are connected to: where the guard permits, over TLS if the URL says so, and by
//! a deadline.

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

/// How many connections are opened at once that nobody waits for any more: an attempt that finds
/// another one free leaves its own to be opened for the next.
const SPARE: usize = 64;

tokio::task_local! {
    /// The end of the attempt that this task makes.
    static ENDED: CancellationToken;
}

/// Opens connections to what the guard permits.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<AddressGuard>,
    /// Over DNS, TCP and TLS together, whoever waits.
    timeout: Duration,
    spare: Arc<Semaphore>,
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("not connected")]
    Guard(#[from] address_guard::Error),
    #[error("no tls session")]
    Tls(#[source] BoxError),
    #[error("not connected within {0:?}")]
    Timeout(Duration),
    #[error("nobody waits for a connection any more")]
    Unwanted,
}

/// Makes an attempt. When it ends, nobody waits for the connections it has begun to open.
pub(crate) async fn attempt<F: Future>(attempt: F) -> F::Output {
    let ended = CancellationToken::new();
    let _ends = ended.clone().drop_guard();
    ENDED.scope(ended, attempt).await
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
            spare: Arc::new(Semaphore::new(SPARE)),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<GuardedStream>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.https.poll_ready(cx).map_err(Error::of)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.https.call(uri));
        let timeout = self.timeout;
        let connecting = async move {
            match connecting.await {
                Ok(connected) => connected.map_err(Error::of),
                Err(_) => Err(Error::Timeout(timeout)),
            }
        };
        let ended = ENDED.try_with(CancellationToken::clone).unwrap_or_default();
        let spare = Arc::clone(&self.spare);
        Box::pin(async move {
            let mut connecting = pin!(connecting);
            tokio::select! {
                biased;
                connected = &mut connecting => return connected,
                () = ended.cancelled() => {}
            }
            let Ok(_place) = spare.try_acquire() else {
                return Err(Error::Unwanted);
            };
            connecting.await
        })
    }
}

impl Error {
    /// The guard's errors come as they are; what is left of connecting once the guard has
    /// connected is TLS.
    fn of(error: BoxError) -> Self {
        match error.downcast() {
            Ok(error) => Self::Guard(*error),
            Err(error) => Self::Tls(error),
        }
    }
}
