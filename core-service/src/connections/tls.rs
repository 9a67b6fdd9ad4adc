//! TLS of the gRPC listener, with certificates that are reloaded when their files change.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use process::{reloading::Reloading, tls};
use rustls::{ServerConfig, server::WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

/// TLS settings. All files are PEM and are reloaded when they change.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsConfig {
    /// Certificate chain of the gRPC API (PEM). Enables TLS. Changed TLS files are reloaded for
    /// new connections. Default: none. Example: `/etc/delivery/core.pem`.
    #[arg(
        long,
        env = "DELIVERY_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/core.key`.
    #[arg(
        long,
        env = "DELIVERY_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,

    /// Require client certificates, issued by one of these authorities (PEM). Default: none.
    /// Example: `/etc/delivery/ca.pem`.
    #[arg(
        long,
        env = "DELIVERY_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_client_ca: Option<PathBuf>,
}

/// The TLS configuration, reloaded from its files.
pub(crate) struct Tls(Reloading<ServerConfig>);

impl Tls {
    /// None if TLS is not configured.
    pub(crate) fn open(config: &TlsConfig) -> Result<Option<Self>, tls::Error> {
        let (Some(certificate), Some(key)) = (&config.tls_certificate, &config.tls_key) else {
            return Ok(None);
        };
        let client_ca = config.tls_client_ca.clone();
        let paths = [Some(certificate), Some(key), client_ca.as_ref()];
        let paths = paths.into_iter().flatten().cloned().collect();
        let (certificate, key) = (certificate.clone(), key.clone());
        let read = move || {
            let provider = tls::provider();
            let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(tls::Error::Setup)?;
            let builder = match &client_ca {
                Some(path) => {
                    let roots = Arc::new(tls::authorities(path)?);
                    let verifier =
                        WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
                    builder.with_client_cert_verifier(verifier)
                }
                None => builder.with_no_client_auth(),
            };
            let mut server = builder
                .with_single_cert(tls::certificates(&certificate)?, tls::private_key(&key)?)
                .map_err(|source| tls::identity_error(&key, &certificate, source))?;
            server.alpn_protocols = vec![b"h2".to_vec()];
            Ok(server)
        };
        Ok(Some(Self(Reloading::open(paths, read)?)))
    }

    /// An acceptor for one connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.current())
    }
}
