//! A TCP proxy between the cores and PostgreSQL. It can be cut: the cores' connections stay
//! open and silent, and the server's are closed. It also counts the statements sent.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

use crate::statements::StatementCounter;

pub(crate) struct PostgresProxy {
    port: u16,
    /// The number of cuts so far, and whether it is cut now.
    state: watch::Sender<(u32, bool)>,
    statements: Arc<AtomicUsize>,
}

impl PostgresProxy {
    /// Starts a proxy from a loopback port to a server's socket.
    pub(crate) async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = watch::Sender::new((0, false));
        let cuts = state.clone();
        let statements = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&statements);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(forward(stream, socket.clone(), cuts.subscribe(), count));
            }
        });
        Self {
            port,
            state,
            statements,
        }
    }

    pub(crate) fn database_url(&self) -> String {
        format!("postgres://delivery@127.0.0.1:{}/postgres", self.port)
    }

    /// The number of statements sent so far; each costs a round trip.
    pub(crate) fn statements(&self) -> usize {
        self.statements.load(Relaxed)
    }

    /// Stops forwarding on all connections, and on those opened until [`PostgresProxy::restore`].
    /// They stay open, and are never forwarded again.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|(cuts, is_cut)| {
            *cuts += 1;
            *is_cut = true;
        });
    }

    /// Forwards connections opened from now on.
    pub(crate) fn restore(&self) {
        self.state.send_modify(|(_, is_cut)| *is_cut = false);
    }
}

async fn forward(
    mut stream: TcpStream,
    socket: PathBuf,
    mut state: watch::Receiver<(u32, bool)>,
    count: Arc<AtomicUsize>,
) {
    let (cuts, is_cut) = *state.borrow_and_update();
    if !is_cut {
        let Ok(mut server) = UnixStream::connect(socket).await else {
            return;
        };
        tokio::select! {
            () = copy_both_ways(&mut stream, &mut server, &count) => return,
            cut = state.wait_for(|(now, _)| *now > cuts) => drop(cut),
        }
        // Closes the connection to the server, which rolls back its transaction.
        drop(server);
    }
    // The client's side stays open and silent.
    let _open = stream;
    std::future::pending::<()>().await;
}

/// Copies until either side closes.
async fn copy_both_ways(stream: &mut TcpStream, server: &mut UnixStream, count: &AtomicUsize) {
    let (mut from_server, mut to_server) = server.split();
    let (mut from_client, mut to_client) = stream.split();
    tokio::select! {
        () = count_and_copy(&mut from_client, &mut to_server, count) => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
}

async fn count_and_copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicUsize,
) {
    let mut statements = StatementCounter::default();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(size @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(statements.count(&buffer[..size]), Relaxed);
        if to.write_all(&buffer[..size]).await.is_err() {
            return;
        }
    }
}
