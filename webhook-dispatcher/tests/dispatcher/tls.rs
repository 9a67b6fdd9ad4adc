//! Receivers with TLS: only certificates of trusted authorities are accepted.

use std::{convert::Infallible, io::Write, path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use proto::{Outcome, outcome::Failure};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    HandshakeKind, ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{
    harness::{
        Dispatcher, FakeCore, attempt, attempt_with, config, delivered, failed, notification,
        receiver,
    },
    test_send::{test_send_outcome, test_with},
};

/// A receiver with a self-signed certificate. Responds with the HTTP version of the request.
struct TlsReceiver {
    url: String,
    certificate: NamedTempFile,
}

impl TlsReceiver {
    async fn start(params: CertificateParams, protocols: &[&str]) -> Self {
        Self::start_with(params, protocols, true).await
    }

    async fn start_with(params: CertificateParams, protocols: &[&str], keep_alive: bool) -> Self {
        let (acceptor, certificate) = acceptor(&params, protocols);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(serve(listener, acceptor, keep_alive));
        Self {
            url: format!("https://localhost:{port}/"),
            certificate,
        }
    }

    fn webhook_ca_files(&self) -> Vec<PathBuf> {
        vec![self.certificate.path().to_owned()]
    }
}

/// A TLS acceptor with a self-signed certificate, which is written to the file.
pub(crate) fn acceptor(
    params: &CertificateParams,
    protocols: &[&str],
) -> (TlsAcceptor, NamedTempFile) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(certificate.pem().as_bytes()).unwrap();

    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().into())
        .collect();
    (TlsAcceptor::from(Arc::new(config)), file)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, keep_alive: bool) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let handshake = stream.get_ref().1.handshake_kind();
            let service = service_fn(|request| {
                std::future::ready(Ok::<_, Infallible>(respond(&request, handshake)))
            });
            let mut server = auto::Builder::new(TokioExecutor::new());
            server.http1().keep_alive(keep_alive);
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// The HTTP version, and whether the TLS session was resumed.
fn respond(request: &Request<Incoming>, handshake: Option<HandshakeKind>) -> Response<Full<Bytes>> {
    let version = match request.version() {
        Version::HTTP_2 => "h2",
        Version::HTTP_11 => "http/1.1",
        _ => "another",
    };
    let resumed = match handshake {
        Some(HandshakeKind::Resumed) => " resumed",
        _ => "",
    };
    Response::new(Full::from(format!("{version}{resumed}")))
}

pub(crate) fn certificate_for(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

#[tokio::test]
async fn http_2_is_used_if_the_receiver_supports_it() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], "h2"),
        (&["http/1.1"], "http/1.1"),
        (&[], "http/1.1"),
    ] {
        let receiver = TlsReceiver::start(certificate_for("localhost"), protocols).await;

        let trust = |config: &mut webhook_dispatcher::Config| {
            config.webhook_ca_files = receiver.webhook_ca_files();
        };
        let outcome = attempt_with(trust, &receiver.url).await;

        assert_eq!(outcome, delivered(version), "{protocols:?}");
    }
}

#[tokio::test]
async fn a_test_send_reports_the_tls_version_or_the_reason_for_its_failure() {
    let receiver = TlsReceiver::start(certificate_for("localhost"), &["h2"]).await;
    let trust = |config: &mut webhook_dispatcher::Config| {
        config.webhook_ca_files = receiver.webhook_ca_files();
    };

    let (test, completed) = test_with(trust, &receiver.url).await;

    let expected = Outcome {
        tls_version: "TLSv1.3".to_owned(),
        ..test_send_outcome(delivered("h2"))
    };
    assert_eq!((test, completed), (expected, [true; 3]));

    let (test, completed) = test_with(|_| {}, &receiver.url).await;

    assert!(test.detail.contains("certificate"), "{}", test.detail);
    let expected = Outcome {
        detail: test.detail.clone(),
        ..test_send_outcome(failed(Failure::Tls, None))
    };
    assert_eq!((test, completed), (expected, [true, true, false]));
}

#[tokio::test]
async fn a_tls_session_is_resumed_on_the_next_connection() {
    let receiver = TlsReceiver::start_with(certificate_for("localhost"), &[], false).await;
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    config.webhook_ca_files = receiver.webhook_ca_files();
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    let mut responses = Vec::new();
    for number in 1..=3 {
        stream.send(vec![notification(number, &receiver.url)]).await;
        let outcome = stream.next_outcome().await;
        stream.acknowledge(&outcome);
        responses.push(outcome.response_body);
    }

    assert_eq!(
        responses,
        ["http/1.1", "http/1.1 resumed", "http/1.1 resumed"]
    );
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let receiver = TlsReceiver::start(certificate_for("localhost"), &[]).await;

    let outcome = attempt(&receiver.url).await;

    assert_eq!(outcome, failed(Failure::Tls, None));
}

#[tokio::test]
async fn a_trusted_certificate_must_be_current_and_for_the_host() {
    let mut expired = certificate_for("localhost");
    expired.not_before = date_time_ymd(2000, 1, 1);
    expired.not_after = date_time_ymd(2001, 1, 1);

    for params in [expired, certificate_for("elsewhere.example")] {
        let receiver = TlsReceiver::start(params, &[]).await;

        let trust = |config: &mut webhook_dispatcher::Config| {
            config.webhook_ca_files = receiver.webhook_ca_files();
        };
        let outcome = attempt_with(trust, &receiver.url).await;

        assert_eq!(outcome, failed(Failure::Tls, None));
    }
}

#[tokio::test]
async fn a_plain_http_response_to_a_tls_handshake_is_a_tls_failure() {
    let addr = receiver(|_, mut connection| async move {
        connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        connection.closed().await;
    })
    .await;

    let outcome = attempt(&format!("https://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Tls, None));
}
