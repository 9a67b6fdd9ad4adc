//! What a core is called over TLS with.

use std::{path::PathBuf, sync::Arc};

use process::tls::{self, Watched};
use rustls::{ClientConfig, RootCertStore};

use crate::cores::CoreConfig;

/// Authorities and our own certificate, as the files hold them now.
pub(crate) fn open(config: &CoreConfig) -> Result<Watched<ClientConfig>, tls::Error> {
    let authorities = config.core_tls_ca.clone();
    let identity = config
        .core_tls_certificate
        .clone()
        .zip(config.core_tls_key.clone());
    let own = identity
        .iter()
        .flat_map(|(certificate, key)| [certificate, key]);
    let paths = authorities.iter().chain(own).cloned().collect();
    Watched::open(paths, move || client(&authorities, identity.as_ref()))
}

fn client(
    authorities: &[PathBuf],
    identity: Option<&(PathBuf, PathBuf)>,
) -> Result<ClientConfig, tls::Error> {
    let builder = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(tls::Error::Setup)?
        .with_root_certificates(Arc::new(roots(authorities)?));
    let mut client = match identity {
        Some((certificate, key)) => builder
            .with_client_auth_cert(tls::certificates(certificate)?, tls::private_key(key)?)
            .map_err(|source| tls::identity_mistake(key, certificate, source))?,
        None => builder.with_no_client_auth(),
    };
    client.alpn_protocols = vec![b"h2".to_vec()];
    Ok(client)
}

/// Those in the files; the system's, if no file is named.
fn roots(authorities: &[PathBuf]) -> Result<RootCertStore, tls::Error> {
    let mut roots = RootCertStore::empty();
    for path in authorities {
        roots.extend(tls::authorities(path)?.roots);
    }
    if authorities.is_empty() {
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            tracing::warn!(%error, "part of the system's certificate authorities cannot be read");
        }
        roots.add_parsable_certificates(system.certs);
    }
    Ok(roots)
}
