//! How receivers are connected to: where the guard permits, over TLS if the URL says so, and by
//! a deadline.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tower::{BoxError, Service};

use crate::address_guard::{self, AddressGuard, GuardedStream};

/// Opens connections to what the guard permits.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<AddressGuard>,
    /// Over DNS, TCP and TLS together. An attempt has a deadline of its own; but one that finds
    /// another connection free leaves this one to be opened for the next, with nobody waiting.
    timeout: Duration,
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
}

impl Connector {
    pub(crate) fn new(guard: AddressGuard, tls: rustls::ClientConfig, timeout: Duration) -> Self {
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(guard);
        Self { https, timeout }
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
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected.map_err(Error::of),
                Err(_) => Err(Error::Timeout(timeout)),
            }
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
