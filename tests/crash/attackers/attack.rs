//! What attacks are made of: connections from an address that no honest client has.

use std::{
    collections::BTreeMap,
    fmt,
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest, Ready},
    net::{TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::attacks::{PING, frame};

/// Before a connection that was lost is replaced.
const PAUSE: Duration = Duration::from_secs(1);

/// After which a connection that reads nothing is replaced: the server has ended what it did not read.
const UNREAD_TIME: Duration = Duration::from_secs(45);

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
            times: Arc::default(),
        };
        let times = Arc::clone(&attacker.times);
        runtime.spawn((self.run)(attacker));
        Running {
            runtime: Some(runtime),
            times,
        }
    }
}

/// An attack in progress. Its connections are closed when it is dropped.
pub(super) struct Running {
    runtime: Option<Runtime>,
    times: Arc<Mutex<Times>>,
}

impl Running {
    pub(super) fn connections(&self) -> Connections {
        let times = self.times.lock().unwrap();
        let open = times.open.values().map(Instant::elapsed);
        Connections {
            opened: times.opened,
            open: times.open.len(),
            last: times.last.map(|last| last.elapsed()),
            longest: open.fold(times.longest, Duration::max),
        }
    }
}

/// The connections that an attack has opened so far.
pub(super) struct Connections {
    opened: usize,
    open: usize,
    /// How long ago the last one was opened.
    last: Option<Duration>,
    /// How long the one was held that was held for longest.
    longest: Duration,
}

impl Connections {
    /// Whether there was an attack all the time: at its end connections are open, or one was a moment ago.
    pub(super) fn lasted(&self) -> bool {
        self.open > 0 || self.last.is_some_and(|last| last <= 2 * PAUSE)
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opened, open, .. } = self;
        let longest = self.longest.as_secs_f32();
        write!(
            f,
            "{opened} connections, {open} at the end, one for {longest:.1} s"
        )
    }
}

#[derive(Default)]
struct Times {
    opened: usize,
    /// By number, when each was opened that is open.
    open: BTreeMap<usize, Instant>,
    last: Option<Instant>,
    /// Of those that have ended.
    longest: Duration,
}

/// A connection of an attacker.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// To be dropped with the stream.
    pub(super) open: Open,
}

/// Notes when a connection ends.
pub(super) struct Open {
    number: usize,
    begun: Instant,
    times: Arc<Mutex<Times>>,
}

impl Open {
    fn new(times: Arc<Mutex<Times>>) -> Self {
        let mut state = times.lock().unwrap();
        let (number, begun) = (state.opened, Instant::now());
        state.opened += 1;
        state.open.insert(number, begun);
        state.last = Some(begun);
        drop(state);
        Self {
            number,
            begun,
            times,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut times = self.times.lock().unwrap();
        times.open.remove(&self.number);
        times.longest = times.longest.max(self.begun.elapsed());
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
    times: Arc<Mutex<Times>>,
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
    pub(super) async fn connect(&self, first: &[u8]) -> io::Result<Connection> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.address, 0).into())?;
        let mut stream = socket.connect(self.target.addr).await?;
        stream.write_all(first).await?;
        let open = Open::new(Arc::clone(&self.times));
        Ok(Connection { stream, open })
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
                let Connection { mut stream, open } = attacker.connect(&first).await?;
                let mut received = [0; 256];
                while reads == Reads::Everything || !is_ended(&stream, &open) {
                    let read = async {
                        if reads == Reads::Nothing {
                            pending::<()>().await;
                        }
                        stream.read(&mut received).await
                    };
                    match timeout(interval, read).await {
                        Ok(Ok(0)) => break,
                        Ok(read) => drop(read?),
                        Err(_) => stream.write_all(&next).await?,
                    }
                }
                Ok(())
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
                let Connection { stream, open } = attacker.connect(&first).await?;
                let _open = open;
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

/// Whether the server has closed a connection, or must have ended all that is not read on it.
fn is_ended(stream: &TcpStream, open: &Open) -> bool {
    let ready = stream.ready(Interest::READABLE).now_or_never();
    let is_closed = ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed));
    is_closed || open.begun.elapsed() > UNREAD_TIME
}

pub(super) fn ping() -> Vec<u8> {
    frame(PING, 0, 0, b"12345678")
}
