//! The certificate authorities that receivers and cores are verified with.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::ConfigError;

/// The system's authorities and those in PEM files.
pub(crate) fn roots(ca_files: &[PathBuf]) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();

    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "part of the system's certificate authorities cannot be read");
    }
    roots.add_parsable_certificates(system.certs);

    for path in ca_files {
        let unreadable = |source| ConfigError::CaFile {
            path: path.clone(),
            source,
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            roots
                .add(certificate.map_err(unreadable)?)
                .map_err(|source| ConfigError::Ca {
                    path: path.clone(),
                    source,
                })?;
        }
    }

    if roots.is_empty() {
        tracing::warn!("no certificate authority is known: nothing can be sent by https");
    }
    Ok(roots)
}

/// TLS as a client of whoever the authorities vouch for.
pub(crate) fn tls(roots: RootCertStore) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ConfigError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
