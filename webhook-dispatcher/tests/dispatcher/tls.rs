//! Receivers behind TLS: only those that a trusted authority vouches for.

use std::{convert::Infallible, io::Write, path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use proto::outcome::Failure;
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
    webhook_tests::test_with,
};

/// A receiver with a certificate of its own making. Answers with the HTTP version it was asked in.
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

    fn ca_files(&self) -> Vec<PathBuf> {
        vec![self.certificate.path().to_owned()]
    }
}

/// TLS with a certificate of its own making, which the file has.
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
            let answer = service_fn(|request| {
                std::future::ready(Ok::<_, Infallible>(answer(&request, handshake)))
            });
            let mut server = auto::Builder::new(TokioExecutor::new());
            server.http1().keep_alive(keep_alive);
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// The HTTP version, and whether it came over a session of before.
fn answer(request: &Request<Incoming>, handshake: Option<HandshakeKind>) -> Response<Full<Bytes>> {
    let version = match request.version() {
        Version::HTTP_2 => "h2",
        Version::HTTP_11 => "http/1.1",
        _ => "another",
    };
    let again = match handshake {
        Some(HandshakeKind::Resumed) => " again",
        _ => "",
    };
    Response::new(Full::from(format!("{version}{again}")))
}

pub(crate) fn named(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

#[tokio::test]
async fn http_2_is_spoken_with_those_who_can() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], "h2"),
        (&["http/1.1"], "http/1.1"),
        (&[], "http/1.1"),
    ] {
        let receiver = TlsReceiver::start(named("localhost"), protocols).await;

        let trust = |config: &mut webhook_dispatcher::Config| {
            config.ca_files = receiver.ca_files();
        };
        let outcome = attempt_with(trust, &receiver.url).await;

        assert_eq!(outcome, delivered(version), "{protocols:?}");
    }
}

#[tokio::test]
async fn a_test_tells_of_tls_and_why_there_is_none() {
    let receiver = TlsReceiver::start(named("localhost"), &["h2"]).await;
    let trust = |config: &mut webhook_dispatcher::Config| {
        config.ca_files = receiver.ca_files();
    };

    let (told, passed) = test_with(trust, &receiver.url).await;

    assert_eq!(told.outcome, Some(delivered("h2")));
    assert_eq!((told.tls_version.as_str(), passed), ("TLSv1.3", [true; 3]));

    let (told, passed) = test_with(|_| {}, &receiver.url).await;

    assert_eq!(told.outcome, Some(failed(Failure::Tls, None)));
    assert_eq!(
        (told.tls_version.as_str(), passed),
        ("", [true, true, false])
    );
    assert!(told.detail.contains("certificate"), "{}", told.detail);
}

#[tokio::test]
async fn a_tls_session_goes_on_over_the_next_connection() {
    let receiver = TlsReceiver::start_with(named("localhost"), &[], false).await;
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    config.ca_files = receiver.ca_files();
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    let mut answers = Vec::new();
    for number in 1..=3 {
        stream.send(vec![notification(number, &receiver.url)]).await;
        let outcome = stream.next_outcome().await;
        stream.record(&outcome).await;
        answers.push(outcome.answer);
    }

    assert_eq!(answers, ["http/1.1", "http/1.1 again", "http/1.1 again"]);
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_certificate_of_nobody_trusted_is_refused() {
    let receiver = TlsReceiver::start(named("localhost"), &[]).await;

    let outcome = attempt(&receiver.url).await;

    assert_eq!(outcome, failed(Failure::Tls, None));
}

#[tokio::test]
async fn a_trusted_certificate_must_be_current_and_for_the_host() {
    let mut expired = named("localhost");
    expired.not_before = date_time_ymd(2000, 1, 1);
    expired.not_after = date_time_ymd(2001, 1, 1);

    for params in [expired, named("elsewhere.example")] {
        let receiver = TlsReceiver::start(params, &[]).await;

        let trust = |config: &mut webhook_dispatcher::Config| {
            config.ca_files = receiver.ca_files();
        };
        let outcome = attempt_with(trust, &receiver.url).await;

        assert_eq!(outcome, failed(Failure::Tls, None));
    }
}

#[tokio::test]
async fn plain_http_where_tls_was_asked_for_is_a_tls_failure() {
    let addr = receiver(|_, mut connection| async move {
        connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        connection.closed().await;
    })
    .await;

    let outcome = attempt(&format!("https://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Tls, None));
}
