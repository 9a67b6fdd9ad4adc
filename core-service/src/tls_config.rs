//! TLS of the gRPC listener.

use std::path::PathBuf;

use clap::Args;
use process::tls;

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

impl TlsConfig {
    /// `None` if TLS is not configured.
    pub fn files(&self) -> Option<tls::ServerFiles> {
        Some(tls::ServerFiles {
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
            client_ca: self.tls_client_ca.clone(),
        })
    }

    /// `None` if TLS is not configured.
    pub(crate) fn open(&self) -> Result<Option<tls::Server>, tls::Error> {
        let server = self.files().map(|files| tls::Server::open(files, &["h2"]));
        server.transpose()
    }
}
