//! Receivers that prevent connections from being opened.

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
    harness::{CoreStream, Dispatcher, FakeCore, config, notification, with_timeout},
    tls::{acceptor, certificate_for},
};

/// A receiver that serves its first connection, with a permit for each response. All others hang in
/// the TLS handshake.
struct PartlyHangingReceiver {
    url: String,
    certificate: NamedTempFile,
    arrivals: UnboundedReceiver<()>,
    permits: Arc<Semaphore>,
    hanging: watch::Receiver<HangingConnections>,
}

/// The number of connections that hang.
#[derive(Default)]
struct HangingConnections {
    opened: usize,
    open: usize,
}

impl PartlyHangingReceiver {
    async fn start() -> Self {
        let (tls, certificate) = acceptor(&certificate_for("localhost"), &["http/1.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let permits = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&permits);
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (count, hanging) = watch::channel(HangingConnections::default());
        tokio::spawn(async move {
            let (first, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(tls, first, arrived, gate));
            while let Ok((mut stream, _)) = listener.accept().await {
                count.send_modify(|hanging| {
                    hanging.opened += 1;
                    hanging.open += 1;
                });
                let count = count.clone();
                tokio::spawn(async move {
                    // A reset closes the connection too.
                    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                    count.send_modify(|hanging| hanging.open -= 1);
                });
            }
        });
        Self {
            url: format!("https://localhost:{port}/"),
            certificate,
            arrivals,
            permits,
            hanging,
        }
    }

    fn config(&self, core: &FakeCore, send_timeout: Duration) -> webhook_dispatcher::Config {
        webhook_dispatcher::Config {
            webhook_ca_files: vec![self.certificate.path().to_owned()],
            send_timeout,
            ..config(&[core])
        }
    }

    /// Serves one notification over the first connection.
    async fn serve_one(&mut self, stream: &mut CoreStream) {
        stream.send(vec![notification(1, &self.url)]).await;
        self.permits.add_permits(1);
        acknowledge_delivered(stream).await;
        with_timeout(self.arrivals.recv()).await.unwrap();
    }

    /// Causes an abandoned connection: of two concurrent notifications, the second reuses the first
    /// connection before its own is open.
    async fn abandon_connection(&mut self, stream: &mut CoreStream) {
        let opened = self.hanging.borrow().opened;
        stream.send(vec![notification(2, &self.url)]).await;
        with_timeout(self.arrivals.recv()).await.unwrap();
        stream.send(vec![notification(3, &self.url)]).await;
        let has_opened = self.hanging.wait_for(|hanging| hanging.opened > opened);
        drop(with_timeout(has_opened).await.unwrap());
        self.permits.add_permits(2);
        acknowledge_delivered(stream).await;
        acknowledge_delivered(stream).await;
        with_timeout(self.arrivals.recv()).await.unwrap();
    }
}

async fn serve(
    tls: TlsAcceptor,
    stream: TcpStream,
    arrived: UnboundedSender<()>,
    gate: Arc<Semaphore>,
) {
    let service = service_fn(|_| async {
        arrived.send(()).unwrap();
        gate.acquire().await.unwrap().forget();
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let stream = TokioIo::new(tls.accept(stream).await.unwrap());
    let _ = http1::Builder::new()
        .serve_connection(stream, service)
        .await;
}

async fn acknowledge_delivered(stream: &mut CoreStream) {
    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.failure(), Failure::Unspecified);
    stream.acknowledge(&outcome);
}

#[tokio::test]
async fn abandoned_connections_time_out() {
    let mut core = FakeCore::start().await;
    let mut receiver = PartlyHangingReceiver::start().await;
    let dispatcher = Dispatcher::start(&receiver.config(&core, Duration::from_secs(5)));
    let mut stream = core.stream().await;

    receiver.serve_one(&mut stream).await;
    receiver.abandon_connection(&mut stream).await;

    let all_closed = receiver.hanging.wait_for(|hanging| hanging.open == 0);
    drop(with_timeout(all_closed).await.unwrap());
    dispatcher.shut_down_with(stream).await;
}

/// The limit applies long before the connections time out.
#[tokio::test]
async fn the_number_of_abandoned_connections_is_limited() {
    const LIMIT: usize = 64;
    let mut core = FakeCore::start().await;
    let mut receiver = PartlyHangingReceiver::start().await;
    let dispatcher = Dispatcher::start(&receiver.config(&core, Duration::from_mins(10)));
    let mut stream = core.stream().await;

    receiver.serve_one(&mut stream).await;
    for _ in 0..LIMIT + 16 {
        receiver.abandon_connection(&mut stream).await;
    }

    let is_limited = receiver.hanging.wait_for(|hanging| hanging.open <= LIMIT);
    drop(with_timeout(is_limited).await.unwrap());
    dispatcher.shut_down_with(stream).await;
}
