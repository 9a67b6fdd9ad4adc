//! The certificate authorities trusted for receivers.

use std::path::PathBuf;

use process::tls;
use rustls::{ClientConfig, RootCertStore};

/// Loads the system's certificate authorities and those in PEM files.
pub(crate) fn load(webhook_ca_files: &[PathBuf]) -> anyhow::Result<RootCertStore> {
    let mut roots = tls::system_authorities();
    roots.extend(tls::authorities(webhook_ca_files)?.roots);
    if roots.is_empty() {
        tracing::warn!("no certificate authorities found: notifications cannot be sent over https");
    }
    Ok(roots)
}

/// TLS settings that verify receivers against the certificate authorities.
pub(crate) fn client_config(roots: RootCertStore) -> anyhow::Result<ClientConfig> {
    let builder = tls::client(roots).map_err(tls::setup_error)?;
    Ok(builder.with_no_client_auth())
}
