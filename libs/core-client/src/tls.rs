//! TLS client settings for calls to cores.

use std::path::PathBuf;

use process::{reloading::Reloading, tls};
use rustls::ClientConfig;

use crate::config::CoreConfig;

/// Certificate authorities and the client certificate, reloaded when their files change.
pub(crate) fn open(config: &CoreConfig) -> Result<Reloading<ClientConfig>, tls::Error> {
    let authorities = config.core_tls_ca.clone();
    let identity = config
        .core_tls_certificate
        .clone()
        .zip(config.core_tls_key.clone());
    let identity_paths = identity
        .iter()
        .flat_map(|(certificate, key)| [certificate, key]);
    let paths = authorities.iter().chain(identity_paths).cloned().collect();
    Reloading::open(paths, move || {
        client_config(&authorities, identity.as_ref())
    })
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
