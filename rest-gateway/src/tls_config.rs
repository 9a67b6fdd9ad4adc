//! TLS of the REST listener.

use std::path::PathBuf;

use clap::Args;
use process::tls;

/// The REST API's certificate. Both files are PEM and are reloaded when they change.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificate chain of the REST API (PEM). Enables TLS. Changed TLS files are reloaded for new
    /// connections. Default: none. Example: `/etc/delivery/rest.pem`
    #[arg(
        long,
        env = "DELIVERY_REST_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/rest.key`
    #[arg(
        long,
        env = "DELIVERY_REST_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,
}

impl TlsConfig {
    /// `https` with a certificate, otherwise `http`.
    pub fn scheme(&self) -> &'static str {
        match self.tls_certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    /// `None` if TLS is not configured.
    pub fn files(&self) -> Option<tls::ServerFiles> {
        Some(tls::ServerFiles {
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
            client_ca: None,
        })
    }

    /// `None` if TLS is not configured.
    pub(crate) fn open(&self) -> Result<Option<tls::Server>, tls::Error> {
        let server = self
            .files()
            .map(|files| tls::Server::open(files, &["h2", "http/1.1"]));
        server.transpose()
    }
}
