//! What attacks are made of: connections from an address that no honest client has.

use std::{
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::attacks::{PING, frame};

/// Before a connection that was lost is replaced.
const PAUSE: Duration = Duration::from_secs(1);

/// How many tasks an attack starts in a millisecond: all of its connections are open within a second.
const BATCH: usize = 16;

#[derive(Clone)]
pub(super) struct Target {
    pub(super) addr: SocketAddr,
    /// An access token of a shop's client.
    pub(super) token: String,
}

pub(super) struct Attack {
    pub(super) name: &'static str,
    run: fn(Attacker) -> BoxFuture<'static, ()>,
}

impl Attack {
    pub(super) fn new(name: &'static str, run: fn(Attacker) -> BoxFuture<'static, ()>) -> Self {
        Self { name, run }
    }

    /// Attacks from an address until the result is dropped.
    pub(super) fn start(&self, address: Ipv4Addr, target: &Target) -> Running {
        process::listen::raise_file_limit();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let attacker = Attacker {
            address,
            target: target.clone(),
            connections: Arc::default(),
        };
        let connections = Arc::clone(&attacker.connections);
        runtime.spawn((self.run)(attacker));
        Running {
            runtime: Some(runtime),
            connections,
        }
    }
}

/// An attack in progress. Its connections are closed when it is dropped.
pub(super) struct Running {
    runtime: Option<Runtime>,
    connections: Arc<AtomicUsize>,
}

impl Running {
    /// The number of connections that it has opened.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

#[derive(Clone)]
pub(super) struct Attacker {
    address: Ipv4Addr,
    target: Target,
    connections: Arc<AtomicUsize>,
}

/// What an attacker reads from the connections that it holds.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reads {
    Everything,
    Nothing,
}

impl Attacker {
    pub(super) fn token(&self) -> &str {
        &self.target.token
    }

    /// Connects and sends these bytes.
    pub(super) async fn connect(&self, first: &[u8]) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.address, 0).into())?;
        let mut stream = socket.connect(self.target.addr).await?;
        stream.write_all(first).await?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    /// Runs as many tasks, each repeatedly, with a pause after each time.
    pub(super) fn repeat<R>(
        self,
        tasks: usize,
        pause: Duration,
        task: impl Fn(Self) -> R + Clone + Send + Sync + 'static,
    ) -> BoxFuture<'static, ()>
    where
        R: Future<Output = io::Result<()>> + Send,
    {
        async move {
            let mut running = JoinSet::new();
            for number in 0..tasks {
                let (attacker, task) = (self.clone(), task.clone());
                running.spawn(async move {
                    loop {
                        // Fails if the server closes the connection.
                        let _ = task(attacker.clone()).await;
                        sleep(pause).await;
                    }
                });
                if number % BATCH == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
            }
            running.join_all().await;
        }
        .boxed()
    }

    /// Keeps connections open, on each of which it sends `first` and then `next` at an interval, and
    /// replaces those that are lost.
    pub(super) fn hold(
        self,
        connections: usize,
        reads: Reads,
        first: Vec<u8>,
        interval: Duration,
        next: Vec<u8>,
    ) -> BoxFuture<'static, ()> {
        self.repeat(connections, PAUSE, move |attacker| {
            let (first, next) = (first.clone(), next.clone());
            async move {
                let mut stream = attacker.connect(&first).await?;
                let mut received = [0; 256];
                loop {
                    let read = async {
                        if reads == Reads::Nothing {
                            pending::<()>().await;
                        }
                        stream.read(&mut received).await
                    };
                    match timeout(interval, read).await {
                        Ok(Ok(0)) => return Ok(()),
                        Ok(read) => drop(read?),
                        Err(_) => stream.write_all(&next).await?,
                    }
                }
            }
        })
    }

    /// Sends a request at an interval on each of these connections, and drops the responses.
    pub(super) fn send_requests(
        self,
        connections: usize,
        first: Vec<u8>,
        interval: Duration,
        request: fn(&Self, u32) -> Vec<u8>,
    ) -> BoxFuture<'static, ()> {
        self.repeat(connections, PAUSE, move |attacker| {
            let first = first.clone();
            async move {
                let stream = attacker.connect(&first).await?;
                let (mut reader, mut writer) = stream.into_split();
                let reading = async {
                    let mut received = vec![0; 64 * 1024];
                    while reader.read(&mut received).await? > 0 {}
                    io::Result::Ok(())
                };
                let writing = async {
                    for number in 0.. {
                        writer.write_all(&request(&attacker, number)).await?;
                        sleep(interval).await;
                    }
                    io::Result::Ok(())
                };
                tokio::select! {
                    read = reading => read,
                    written = writing => written,
                }
            }
        })
    }
}

pub(super) fn ping() -> Vec<u8> {
    frame(PING, 0, 0, b"12345678")
}
