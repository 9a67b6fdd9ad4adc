//! TLS of the all-in-one's gRPC listener. Its flags are not `--core-tls-…`: those are of programs that call
//! a core.

use std::path::PathBuf;

use clap::Args;

/// TLS of the gRPC API. All files are PEM and are reloaded when they change.
#[derive(Args, Clone, Debug, Default)]
pub struct GrpcTlsConfig {
    /// Certificate chain of the gRPC API (PEM). Enables TLS. Changed TLS files are reloaded for new
    /// connections. Default: none. Example: `/etc/delivery/grpc.pem`
    ///
    /// The operator's commands with --data-dir then use another port, without TLS, on loopback.
    #[arg(
        long,
        env = "DELIVERY_GRPC_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "grpc_tls_key"
    )]
    pub grpc_tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/grpc.key`
    #[arg(
        long,
        env = "DELIVERY_GRPC_TLS_KEY",
        value_name = "FILE",
        requires = "grpc_tls_certificate"
    )]
    pub grpc_tls_key: Option<PathBuf>,

    /// Require client certificates, issued by one of these authorities (PEM). Default: none. Example:
    /// `/etc/delivery/ca.pem`
    #[arg(
        long,
        env = "DELIVERY_GRPC_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "grpc_tls_certificate"
    )]
    pub grpc_tls_client_ca: Option<PathBuf>,
}

impl GrpcTlsConfig {
    /// `https` with a certificate, otherwise `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.grpc_tls_certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    pub fn of_core(&self) -> core_service::TlsConfig {
        core_service::TlsConfig {
            tls_certificate: self.grpc_tls_certificate.clone(),
            tls_key: self.grpc_tls_key.clone(),
            tls_client_ca: self.grpc_tls_client_ca.clone(),
        }
    }
}
