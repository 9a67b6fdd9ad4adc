//! The certificate authorities trusted for receivers.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::ConfigError;

/// Loads the system's certificate authorities and those in PEM files.
pub(crate) fn load(webhook_ca_files: &[PathBuf]) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();

    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "cannot read part of the system's certificate authorities");
    }
    roots.add_parsable_certificates(system.certs);

    for path in webhook_ca_files {
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
        tracing::warn!("no certificate authorities found: webhooks cannot be sent over https");
    }
    Ok(roots)
}

/// TLS settings that verify receivers against the certificate authorities.
pub(crate) fn client_config(roots: RootCertStore) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ConfigError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
