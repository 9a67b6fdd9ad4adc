//! Settings of calls to cores: TLS files and what they contain, and whether plain text is allowed.

use std::path::PathBuf;

use clap::Args;
use process::{local_calls::LocalChannel, reloading::Reloading, tls};
use rustls::ClientConfig;

/// The heading of these flags in `--help`.
const HEADING: &str = "Connection to cores";

/// Settings of calls to cores. All files are PEM and are read again for the next connection after
/// they change.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreConfig {
    /// Certificate authorities to trust for cores instead of the system's (PEM); repeatable.
    /// Changed files are read again for the next connection. Default: the system's. Example:
    /// `/etc/delivery/ca.pem`
    #[arg(long, env = "DELIVERY_CORE_TLS_CA", value_name = "FILE")]
    #[arg(value_delimiter = ',', global = true, help_heading = HEADING)]
    pub core_tls_ca: Vec<PathBuf>,

    /// Client certificate for cores that require one (PEM). Default: none. Example:
    /// `/etc/delivery/client.pem`
    #[arg(long, env = "DELIVERY_CORE_TLS_CERTIFICATE", value_name = "FILE")]
    #[arg(requires = "core_tls_key", global = true, help_heading = HEADING)]
    pub core_tls_certificate: Option<PathBuf>,

    /// Private key of the client certificate (PEM), readable by its owner only. Default: none.
    /// Example: `/etc/delivery/client.key`
    #[arg(long, env = "DELIVERY_CORE_TLS_KEY", value_name = "FILE")]
    #[arg(requires = "core_tls_certificate", global = true)]
    #[arg(help_heading = HEADING)]
    pub core_tls_key: Option<PathBuf>,

    /// Allow calls without TLS to a core on another machine: tokens and secrets are sent
    /// unencrypted. Default: no. Example: `DELIVERY_ALLOW_PLAINTEXT_CORE=yes`
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT_CORE", global = true)]
    #[arg(help_heading = HEADING)]
    pub allow_plaintext_core: bool,

    /// Calls the core of the same process, instead of connecting to its address.
    #[arg(skip)]
    pub local: Option<LocalChannel>,
}

impl CoreConfig {
    /// Certificate authorities and the client certificate, reloaded when their files change.
    pub(crate) fn open_tls(&self) -> Result<Reloading<ClientConfig>, tls::Error> {
        let authorities = self.core_tls_ca.clone();
        let identity = self
            .core_tls_certificate
            .clone()
            .zip(self.core_tls_key.clone());
        let identity_paths = identity
            .iter()
            .flat_map(|(certificate, key)| [certificate, key]);
        let paths = authorities.iter().chain(identity_paths).cloned().collect();
        Reloading::open(paths, move || {
            client_config(&authorities, identity.as_ref())
        })
    }
}

/// Trusts the system's authorities if there are no files.
fn client_config(
    authorities: &[PathBuf],
    identity: Option<&(PathBuf, PathBuf)>,
) -> Result<ClientConfig, tls::Error> {
    let roots = if authorities.is_empty() {
        tls::system_authorities()
    } else {
        tls::authorities(authorities)?
    };
    let builder = tls::client(roots).map_err(tls::setup_error)?;
    let mut config = match identity {
        Some((certificate, key)) => builder
            .with_client_auth_cert(tls::certificates(certificate)?, tls::private_key(key)?)
            .map_err(|source| tls::identity_error(key, certificate, source))?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
