//! One `GET` over a connection of its own, for commands that check a program.

use std::sync::Arc;

use anyhow::{Context, bail};
use process::tls;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use url::Url;

/// The most bytes read of a response.
const MAX_RESPONSE: u64 = 64 * 1024;

/// A response to `GET`.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// The server's, in DER; none with `http`.
    pub(crate) certificate: Option<Vec<u8>>,
}

/// Gets a URL without verifying a certificate: a probe sends no secret, and a program is probed by an
/// address that its certificate does not name.
pub(crate) async fn get(url: &Url) -> anyhow::Result<Response> {
    get_with(url, unverified).await
}

/// Gets a URL and verifies the certificate by the system's authorities, as clients do.
pub(crate) async fn get_verified(url: &Url) -> anyhow::Result<Response> {
    let verified = || Ok(tls::client(tls::system_authorities())?.with_no_client_auth());
    get_with(url, verified).await
}

async fn get_with(
    url: &Url,
    tls: impl FnOnce() -> Result<ClientConfig, rustls::Error>,
) -> anyhow::Result<Response> {
    let host = url.host_str().context("the URL has no host")?;
    let port = url.port_or_known_default().context("the URL has no port")?;
    let bare_host = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((bare_host, port))
        .await
        .with_context(|| format!("cannot connect to {host}:{port}"))?;
    match url.scheme() {
        "http" => exchange(stream, url, host).await,
        "https" => {
            let name = ServerName::try_from(bare_host.to_owned())?;
            let connector = TlsConnector::from(Arc::new(tls()?));
            let stream = connector.connect(name, stream).await;
            let stream = stream.context("the TLS handshake failed")?;
            let (_, session) = stream.get_ref();
            let chain = session.peer_certificates().unwrap_or_default();
            let certificate = chain.first().map(|first| first.to_vec());
            let response = exchange(stream, url, host).await?;
            Ok(Response {
                certificate,
                ..response
            })
        }
        scheme => bail!("the URL has the scheme {scheme}: use http or https"),
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    url: &Url,
    host: &str,
) -> anyhow::Result<Response> {
    let path = url.path();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut response = Vec::new();
    // A server that closes the connection without a TLS `close_notify` has still responded.
    let read = stream.take(MAX_RESPONSE).read_to_end(&mut response).await;
    let response = String::from_utf8_lossy(&response);
    let Some((head, body)) = response.split_once("\r\n\r\n") else {
        read?;
        bail!("{url} does not respond with HTTP");
    };
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("{url} does not respond with HTTP"))?;
    Ok(Response {
        status,
        body: body.trim().to_owned(),
        certificate: None,
    })
}

fn unverified() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// Accepts every certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
