//! What a core speaks TLS with.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use process::tls::{self, Watched};
use rustls::{ServerConfig, server::WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

/// Settings of TLS. All files are PEM; a change of theirs is in force for the next connection.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsConfig {
    /// Certificate to serve gRPC with over TLS, and those that vouch for it (PEM). Files that
    /// change are read again for the next connection.
    #[arg(
        long,
        env = "DELIVERY_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable by its owner alone.
    #[arg(
        long,
        env = "DELIVERY_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,

    /// Demand a certificate of every caller, from one of these authorities (PEM).
    #[arg(
        long,
        env = "DELIVERY_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_client_ca: Option<PathBuf>,
}

/// Certificates as the files hold them.
pub(crate) struct Tls(Watched<ServerConfig>);

impl Tls {
    /// None if gRPC is to be served without TLS.
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
                .map_err(|source| tls::identity_mistake(&key, &certificate, source))?;
            server.alpn_protocols = vec![b"h2".to_vec()];
            Ok(server)
        };
        Ok(Some(Self(Watched::open(paths, read)?)))
    }

    /// For one connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.current())
    }
}
