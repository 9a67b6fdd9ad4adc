//! Connects to receivers: at permitted addresses only (by the address guard), over TLS for https
//! with the certificate authorities trusted for receivers, and within a timeout.

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use http::Uri;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use process::tls;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tower::{BoxError, Service as _, service_fn, util::BoxCloneSyncService};

use crate::{
    address_guard::{self, AddressGuard, GuardedStream},
    attempt::Attempt,
};

/// The maximum number of connections that are still being opened after their attempt has ended. An
/// attempt abandons the connection that it opens if another one becomes idle first; once open, the
/// abandoned connection serves a later attempt.
const MAX_ABANDONED: usize = 64;

pub(crate) type Connector =
    BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<GuardedStream>>, Error>;

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

/// Loads the system's certificate authorities and those in PEM files.
pub(crate) fn root_certificates(webhook_ca_files: &[PathBuf]) -> anyhow::Result<RootCertStore> {
    let mut roots = tls::system_authorities();
    roots.extend(tls::authorities(webhook_ca_files)?.roots);
    if roots.is_empty() {
        tracing::warn!("no certificate authorities found: notifications cannot be sent over https");
    }
    Ok(roots)
}

/// TLS settings that verify receivers against the certificate authorities.
pub(crate) fn tls_config(roots: RootCertStore) -> anyhow::Result<ClientConfig> {
    let builder = tls::client(roots).map_err(tls::setup_error)?;
    Ok(builder.with_no_client_auth())
}

/// A connector with a limit for DNS, TCP and TLS together.
pub(crate) fn connector(guard: AddressGuard, tls: ClientConfig, timeout: Duration) -> Connector {
    let guard = service_fn(move |uri| guard.clone().open(uri, Attempt::current()));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(guard);
    let abandoned = Arc::new(Semaphore::new(MAX_ABANDONED));
    BoxCloneSyncService::new(service_fn(move |uri| {
        let connecting = tokio::time::timeout(timeout, https.clone().call(uri));
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
        let abandoned = Arc::clone(&abandoned);
        async move {
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
        }
    }))
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
