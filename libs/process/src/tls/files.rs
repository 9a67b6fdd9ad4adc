//! Reads certificates, private keys and certificate authorities from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rustls::{
    ClientConfig, ConfigBuilder, InconsistentKeys, RootCertStore,
    client::WantsClientCert,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};

use crate::secret_file;

/// Why TLS cannot be set up from the files, for the operator.
pub type Error = anyhow::Error;

/// The cryptography implementation of all TLS connections.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Reads a certificate chain, in the order of the file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |error| match error {
        pem::Error::Io(source) => {
            anyhow!(source).context(format!("cannot read {}", path.display()))
        }
        _ => not_pem(path, "a certificate"),
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed)?;
    if certificates.is_empty() {
        return Err(not_pem(path, "a certificate"));
    }
    Ok(certificates)
}

/// Reads a private key. Fails if other users can access the file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = secret_file::read(path)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| not_pem(path, "a private key"))
}

/// Reads certificate authorities.
pub fn authorities(paths: &[PathBuf]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for path in paths {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .with_context(|| format!("{} contains an unusable certificate", path.display()))?;
        }
    }
    Ok(roots)
}

/// The system's certificate authorities.
pub fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "cannot read part of the system's certificate authorities");
    }
    roots.add_parsable_certificates(system.certs);
    roots
}

/// Settings of a client that verifies servers by these authorities.
pub fn client(
    authorities: RootCertStore,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(authorities))
}

/// The error of a configuration that rustls rejects.
pub fn setup_error(source: rustls::Error) -> Error {
    anyhow!(source).context("TLS cannot be set up")
}

/// The error for a key and a certificate that rustls rejects together.
pub fn identity_error(key: &Path, certificate: &Path, source: rustls::Error) -> Error {
    let (key, certificate) = (key.display(), certificate.display());
    match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => anyhow!(
            "key {key} does not match certificate {certificate}: use a key and certificate of the same pair"
        ),
        source => anyhow!(source).context(format!(
            "key {key} or certificate {certificate} is unusable"
        )),
    }
}

fn not_pem(path: &Path, expected: &str) -> Error {
    let path = path.display();
    anyhow!("{path} is not a PEM file: {expected} between BEGIN and END lines is required")
}
