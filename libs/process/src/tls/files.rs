//! Certificates, keys and authorities in PEM files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    InconsistentKeys, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};

use crate::secret_file;

/// Why TLS can't be spoken with what is in the files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not in PEM form: {what} between BEGIN and END lines is needed")]
    NotPem { path: PathBuf, what: &'static str },
    #[error(transparent)]
    Secret(#[from] secret_file::Error),
    #[error("a certificate in {path} cannot be used")]
    Certificate {
        path: PathBuf,
        source: rustls::Error,
    },
    #[error(
        "the key {key} does not belong to the certificate {certificate}: give those made together"
    )]
    Unmatched { key: PathBuf, certificate: PathBuf },
    #[error("the key {key} or the certificate {certificate} cannot be used")]
    Identity {
        key: PathBuf,
        certificate: PathBuf,
        source: rustls::Error,
    },
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
    #[error("client certificates cannot be demanded")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The one implementation of cryptography in use.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A certificate and those that vouch for it, in the file's order.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |error| match error {
        pem::Error::Io(source) => Error::Read {
            path: path.to_owned(),
            source,
        },
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

/// A private key, in a file that others may not read.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = secret_file::read(path)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| not_pem(path, "a private key"))
}

/// The certificate authorities in a file.
pub fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|source| Error::Certificate {
                path: path.to_owned(),
                source,
            })?;
    }
    Ok(roots)
}

/// What is wrong with a key and a certificate that were refused together.
pub fn identity_mistake(key: &Path, certificate: &Path, source: rustls::Error) -> Error {
    let (key, certificate) = (key.to_owned(), certificate.to_owned());
    match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            Error::Unmatched { key, certificate }
        }
        source => Error::Identity {
            key,
            certificate,
            source,
        },
    }
}

fn not_pem(path: &Path, what: &'static str) -> Error {
    Error::NotPem {
        path: path.to_owned(),
        what,
    }
}
