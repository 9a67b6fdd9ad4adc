//! Receivers on real sockets that respond with raw bytes.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{
        Semaphore,
        mpsc::{self, UnboundedReceiver},
    },
};

use super::with_timeout;

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks";

/// A request as it came over the wire.
#[derive(Debug)]
pub(crate) struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header; the name is case-sensitive.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A connection from the receiver's side.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The next request; `None` if the dispatcher disconnects first.
    pub(crate) async fn read_request(&mut self) -> Option<Received> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let mut received = Received {
            head,
            body: Vec::new(),
        };
        let length = received.header("Content-Length")?.parse().ok()?;
        received.body.resize(length, 0);
        self.0.read_exact(&mut received.body).await.ok()?;
        Some(received)
    }

    /// Writes; false once the dispatcher has disconnected.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).await.is_ok()
    }

    /// Waits until the dispatcher disconnects.
    pub(crate) async fn closed(&mut self) {
        // A reset closes the connection too.
        let _ = tokio::io::copy(&mut self.0, &mut tokio::io::sink()).await;
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        self.0.get_ref().set_zero_linger().unwrap();
    }
}

/// Starts a receiver that serves each connection with `serve`. Returns its address.
pub(crate) async fn receiver<F, Fut>(serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    receiver_at(TcpSocket::new_v4().unwrap(), serve).await
}

/// Like [`receiver`], on a configured socket.
pub(crate) async fn receiver_at<F, Fut>(socket: TcpSocket, serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    receiver_on(socket.listen(1024).unwrap(), serve)
}

/// Like [`receiver`], on a bound listener.
pub(crate) fn receiver_on<F, Fut>(listener: TcpListener, serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(serve(number, Connection(BufReader::new(stream))));
            number += 1;
        }
    });
    addr
}

/// Starts a receiver that sends the same response to every request.
pub(crate) async fn responding(
    response: impl Into<Vec<u8>>,
) -> (String, UnboundedReceiver<Received>) {
    let response = response.into();
    let (received_tx, received) = mpsc::unbounded_channel();
    let addr = receiver(move |_, mut connection| {
        let response = response.clone();
        let received = received_tx.clone();
        async move {
            while let Some(request) = connection.read_request().await {
                // Fails if the test does not read requests.
                let _ = received.send(request);
                connection.write(&response).await;
            }
        }
    })
    .await;
    (format!("http://{addr}/hook"), received)
}

/// A receiver that announces each request and responds to it when a permit is added.
pub(crate) struct GatedReceiver {
    pub url: String,
    pub arrived: UnboundedReceiver<()>,
    pub permits: Arc<Semaphore>,
}

impl GatedReceiver {
    pub(crate) async fn start() -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&permits);
        let (arrived_tx, arrived) = mpsc::unbounded_channel();
        let addr = receiver(move |_, mut connection| {
            let gate = Arc::clone(&gate);
            let arrived = arrived_tx.clone();
            async move {
                while connection.read_request().await.is_some() {
                    // Fails if the test does not wait for requests.
                    let _ = arrived.send(());
                    gate.acquire().await.unwrap().forget();
                    connection.write(OK).await;
                }
            }
        })
        .await;
        Self {
            url: format!("http://{addr}/"),
            arrived,
            permits,
        }
    }

    pub(crate) async fn next_request_arrived(&mut self) {
        with_timeout(self.arrived.recv()).await.unwrap();
    }
}

/// A listener that must get no connections.
pub(crate) struct Canary(TcpListener);

impl Canary {
    pub(crate) async fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0).into()).await
    }

    pub(crate) async fn at(addr: SocketAddr) -> Self {
        Self(TcpListener::bind(addr).await.unwrap())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Whether there was no connection: the first one in the backlog is the test's own.
    pub(crate) async fn has_no_connections(self) -> bool {
        let own = TcpStream::connect(self.addr()).await.unwrap();
        let (_, first) = self.0.accept().await.unwrap();
        first == own.local_addr().unwrap()
    }
}
