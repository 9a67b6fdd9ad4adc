//! TLS of a listener, with certificates that are reloaded when their files change.

use std::{path::PathBuf, slice, sync::Arc};

use anyhow::Context as _;
use rustls::{ServerConfig, server::WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

use super::{Error, authorities, certificates, identity_error, private_key, provider, setup_error};
use crate::reloading::Reloading;

/// The files of a listener.
#[derive(Clone, Debug)]
pub struct ServerFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Authorities of which one must have issued each client's certificate.
    pub client_ca: Option<PathBuf>,
}

/// The TLS configuration of a listener, reloaded from its files.
pub struct Server(Reloading<ServerConfig>);

impl Server {
    /// `protocols` are those that clients can choose (ALPN), in order of preference.
    pub fn open(files: ServerFiles, protocols: &'static [&'static str]) -> Result<Self, Error> {
        let own = [&files.certificate, &files.key].into_iter();
        let paths = own.chain(&files.client_ca).cloned().collect();
        let read = move || server(&files, protocols);
        Ok(Self(Reloading::open(paths, read)?))
    }

    /// An acceptor for one connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.current())
    }
}

fn server(files: &ServerFiles, protocols: &[&str]) -> Result<ServerConfig, Error> {
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(setup_error)?;
    let verifying = match &files.client_ca {
        Some(path) => {
            let roots = Arc::new(authorities(slice::from_ref(path))?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .context("verification of client certificates cannot be set up")?;
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let mut server = verifying
        .with_single_cert(certificates(&files.certificate)?, private_key(&files.key)?)
        .map_err(|source| identity_error(&files.key, &files.certificate, source))?;
    server.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Ok(server)
}
