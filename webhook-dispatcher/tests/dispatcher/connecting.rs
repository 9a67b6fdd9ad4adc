//! Receivers that keep connections from being opened.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use proto::outcome::Failure;
use tokio::{
    io::AsyncReadExt,
    net::TcpListener,
    sync::{Semaphore, mpsc},
};

use crate::{
    harness::{Dispatcher, FakeCore, config, notification, soon},
    tls::{acceptor, named},
};

/// Its first connection is kept and used by all; those that were begun beside it, because it was
/// taken just then, hang in the TLS handshake. Nobody waits for them any more.
#[tokio::test]
async fn connections_that_nobody_waits_for_are_ended_at_the_deadline() {
    let mut core = FakeCore::start().await;
    let (tls, certificate) = acceptor(named("localhost"), &["http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}/",
        listener.local_addr().unwrap().port()
    );
    let dispatcher = Dispatcher::start(&webhook_dispatcher::Config {
        ca_files: vec![certificate.path().to_owned()],
        send_timeout: Duration::from_secs(5),
        ..config(&[&core])
    });
    let mut stream = core.stream().await;
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(1));

    stream.send(vec![notification(1, &url)]).await;
    let (first, _) = listener.accept().await.unwrap();
    let gate = Arc::clone(&permits);
    tokio::spawn(async move {
        let answer = service_fn(|_| async {
            arrived.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let first = TokioIo::new(tls.accept(first).await.unwrap());
        let _ = http1::Builder::new().serve_connection(first, answer).await;
    });
    assert_eq!(stream.next_outcome().await.failure(), Failure::Unspecified);
    arrivals.recv().await.unwrap();

    // Two at once: one over the first connection, and one that has to open another until the
    // first is free again.
    stream.send(vec![notification(2, &url)]).await;
    soon(arrivals.recv()).await.unwrap();
    stream.send(vec![notification(3, &url)]).await;
    let (mut silent, _) = soon(listener.accept()).await.unwrap();
    permits.add_permits(2);
    for _ in 0..2 {
        assert_eq!(stream.next_outcome().await.failure(), Failure::Unspecified);
    }

    let mut hello = Vec::new();
    // A reset is an end too.
    let _ = soon(silent.read_to_end(&mut hello)).await;
    drop(stream);
    dispatcher.shut_down();
}
