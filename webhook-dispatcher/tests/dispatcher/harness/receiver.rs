//! Receivers on real sockets, that answer in bytes.

use std::{future::Future, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc::{self, UnboundedReceiver},
};

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks";

/// A request as it came over the wire.
#[derive(Debug)]
pub(crate) struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header, its name spelled exactly so.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A connection from the receiver's side.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The next request; none if the dispatcher closes before it.
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

    /// Writes; false once the dispatcher is gone.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).await.is_ok()
    }

    /// Waits until the dispatcher closes.
    pub(crate) async fn closed(&mut self) {
        // A reset is an end too.
        let _ = tokio::io::copy(&mut self.0, &mut tokio::io::sink()).await;
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        self.0.get_ref().set_zero_linger().unwrap();
    }
}

/// Starts a receiver that serves each connection as told and gives its address.
pub(crate) async fn receiver<F, Fut>(serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    receiver_at(TcpSocket::new_v4().unwrap(), serve).await
}

/// As [`receiver`], on a socket as it is.
pub(crate) async fn receiver_at<F, Fut>(socket: TcpSocket, serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    receiver_on(socket.listen(1024).unwrap(), serve)
}

/// As [`receiver`], where somebody listens already.
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

/// Starts a receiver that gives every request the same answer.
pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> (String, UnboundedReceiver<Received>) {
    let answer = answer.into();
    let (received_tx, received) = mpsc::unbounded_channel();
    let addr = receiver(move |_, mut connection| {
        let answer = answer.clone();
        let received = received_tx.clone();
        async move {
            while let Some(request) = connection.read_request().await {
                // The test may have ended without looking.
                let _ = received.send(request);
                connection.write(&answer).await;
            }
        }
    })
    .await;
    (format!("http://{addr}/hook"), received)
}

/// A listener that nobody should call.
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

    /// Whether nobody has called: then the first in the backlog is our own call.
    pub(crate) async fn untouched(self) -> bool {
        let own = TcpStream::connect(self.addr()).await.unwrap();
        let (_, first) = self.0.accept().await.unwrap();
        first == own.local_addr().unwrap()
    }
}
