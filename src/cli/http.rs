//! One HTTP request over a connection of its own, for commands that call a program over HTTP.

use std::sync::Arc;

use anyhow::anyhow;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{Client, Error},
    rt::TokioExecutor,
};
use process::tls::{self, provider, system_authorities};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// The most bytes read of a response's body.
const MAX_BODY: usize = 64 * 1024;

/// Gets a URL without verifying a certificate: a probe sends no secret, and a program is probed by an
/// address that its certificate does not name.
pub(crate) async fn probe(url: &str) -> anyhow::Result<Response<Vec<u8>>> {
    let verifier = Arc::new(AnyCertificate(provider()));
    let tls = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    send(Request::get(url).body(Vec::new())?, tls).await
}

/// Sends a request, and verifies the certificate by the system's authorities.
pub(crate) async fn send_verified(request: Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>> {
    let tls = tls::client(system_authorities())?.with_no_client_auth();
    send(request, tls).await
}

async fn send(request: Request<Vec<u8>>, tls: ClientConfig) -> anyhow::Result<Response<Vec<u8>>> {
    let uri = request.uri().clone();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .build();
    let failed = |error: Error| match uri.authority() {
        Some(host) if error.is_connect() => {
            let error = anyhow::Error::from(error);
            anyhow!("cannot connect to {host}: {}", error.root_cause())
        }
        _ => anyhow!("{uri} does not respond with HTTP"),
    };
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let response = client.request(request.map(Full::<Bytes>::from)).await;
    let (head, body) = response.map_err(failed)?.into_parts();
    let read = Limited::new(body, MAX_BODY).collect().await;
    let body = read.map_err(|error| anyhow!("cannot read the response of {uri}: {error}"))?;
    Ok(Response::from_parts(head, body.to_bytes().into()))
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
