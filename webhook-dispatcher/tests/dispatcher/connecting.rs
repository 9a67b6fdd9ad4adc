//! Receivers that keep connections from being opened.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use proto::outcome::Failure;
use tempfile::NamedTempFile;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{
        Semaphore,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        watch,
    },
};
use tokio_rustls::TlsAcceptor;

use crate::{
    harness::{CoreStream, Dispatcher, FakeCore, config, notification, soon},
    tls::{acceptor, named},
};

/// A receiver that serves its first connection, each request when a permit is added. On others it
/// is silent: they hang in the TLS handshake.
struct HalfSilent {
    url: String,
    certificate: NamedTempFile,
    arrivals: UnboundedReceiver<()>,
    permits: Arc<Semaphore>,
    silent: watch::Receiver<Silent>,
}

/// How many connections are silent.
#[derive(Default)]
struct Silent {
    begun: usize,
    open: usize,
}

impl HalfSilent {
    async fn start() -> Self {
        let (tls, certificate) = acceptor(&named("localhost"), &["http/1.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let permits = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&permits);
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (count, silent) = watch::channel(Silent::default());
        tokio::spawn(async move {
            let (first, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(tls, first, arrived, gate));
            while let Ok((mut stream, _)) = listener.accept().await {
                count.send_modify(|silent| {
                    silent.begun += 1;
                    silent.open += 1;
                });
                let count = count.clone();
                tokio::spawn(async move {
                    // A reset is an end too.
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                    count.send_modify(|silent| silent.open -= 1);
                });
            }
        });
        Self {
            url: format!("https://localhost:{port}/"),
            certificate,
            arrivals,
            permits,
            silent,
        }
    }

    fn config(&self, core: &FakeCore, send_timeout: Duration) -> webhook_dispatcher::Config {
        webhook_dispatcher::Config {
            ca_files: vec![self.certificate.path().to_owned()],
            send_timeout,
            ..config(&[core])
        }
    }

    /// Makes the dispatcher open its first connection.
    async fn serve_one(&mut self, stream: &mut CoreStream) {
        stream.send(vec![notification(1, &self.url)]).await;
        self.permits.add_permits(1);
        deliver(stream).await;
        soon(self.arrivals.recv()).await.unwrap();
    }

    /// Makes it begin another beside it: two notifications come at once, and the second finds
    /// the first connection free again before its own is open.
    async fn begin_another(&mut self, stream: &mut CoreStream) {
        let begun = self.silent.borrow().begun;
        stream.send(vec![notification(2, &self.url)]).await;
        soon(self.arrivals.recv()).await.unwrap();
        stream.send(vec![notification(3, &self.url)]).await;
        let has_begun = self.silent.wait_for(|silent| silent.begun > begun);
        drop(soon(has_begun).await.unwrap());
        self.permits.add_permits(2);
        deliver(stream).await;
        deliver(stream).await;
        soon(self.arrivals.recv()).await.unwrap();
    }
}

async fn serve(
    tls: TlsAcceptor,
    stream: TcpStream,
    arrived: UnboundedSender<()>,
    gate: Arc<Semaphore>,
) {
    let answer = service_fn(|_| async {
        arrived.send(()).unwrap();
        gate.acquire().await.unwrap().forget();
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let stream = TokioIo::new(tls.accept(stream).await.unwrap());
    let _ = http1::Builder::new().serve_connection(stream, answer).await;
}

async fn deliver(stream: &mut CoreStream) {
    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.failure(), Failure::Unspecified);
    stream.record(&outcome).await;
}

#[tokio::test]
async fn connections_that_nobody_waits_for_are_ended_at_the_deadline() {
    let mut core = FakeCore::start().await;
    let mut receiver = HalfSilent::start().await;
    let dispatcher = Dispatcher::start(&receiver.config(&core, Duration::from_secs(5)));
    let mut stream = core.stream().await;

    receiver.serve_one(&mut stream).await;
    receiver.begin_another(&mut stream).await;

    let all_closed = receiver.silent.wait_for(|silent| silent.open == 0);
    drop(soon(all_closed).await.unwrap());
    dispatcher.shut_down_with(stream).await;
}

/// Long before their deadline.
#[tokio::test]
async fn connections_that_nobody_waits_for_are_few() {
    const FEW: usize = 64;
    let mut core = FakeCore::start().await;
    let mut receiver = HalfSilent::start().await;
    let dispatcher = Dispatcher::start(&receiver.config(&core, Duration::from_mins(10)));
    let mut stream = core.stream().await;

    receiver.serve_one(&mut stream).await;
    for _ in 0..FEW + 16 {
        receiver.begin_another(&mut stream).await;
    }

    let are_few = receiver.silent.wait_for(|silent| silent.open <= FEW);
    drop(soon(are_few).await.unwrap());
    dispatcher.shut_down_with(stream).await;
}
