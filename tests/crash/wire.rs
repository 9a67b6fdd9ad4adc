//! The network between the cores and PostgreSQL. It can be cut: what was connected stays so, and
//! never hears anything again. And it counts the statements that pass.

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

use crate::statements::Statements;

pub(crate) struct Wire {
    port: u16,
    /// How many times it was cut, and whether it is.
    state: watch::Sender<(u32, bool)>,
    statements: Arc<AtomicUsize>,
}

impl Wire {
    /// Leads from a loopback port to a server's socket.
    pub(crate) async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = watch::Sender::new((0, false));
        let cuts = state.clone();
        let statements = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&statements);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(lead(stream, socket.clone(), cuts.subscribe(), count));
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

    /// How many statements PostgreSQL was told to execute so far, each a round trip.
    pub(crate) fn statements(&self) -> usize {
        self.statements.load(Relaxed)
    }

    /// Nothing that is connected now, or connects until [`Wire::join`], is ever heard again.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|(times, is_cut)| {
            *times += 1;
            *is_cut = true;
        });
    }

    /// Who connects from now on is heard.
    pub(crate) fn join(&self) {
        self.state.send_modify(|(_, is_cut)| *is_cut = false);
    }
}

async fn lead(
    mut stream: TcpStream,
    socket: PathBuf,
    mut state: watch::Receiver<(u32, bool)>,
    count: Arc<AtomicUsize>,
) {
    let (times, is_cut) = *state.borrow_and_update();
    if !is_cut {
        let Ok(mut server) = UnixStream::connect(socket).await else {
            return;
        };
        tokio::select! {
            () = pass(&mut stream, &mut server, &count) => return,
            cut = state.wait_for(|(now, _)| *now > times) => drop(cut),
        }
        // The server is lost; what it had under way ends with it.
        drop(server);
    }
    // Open, and silent, for as long as the other side cares.
    let _open = stream;
    std::future::pending::<()>().await;
}

/// Until either side ends.
async fn pass(stream: &mut TcpStream, server: &mut UnixStream, count: &AtomicUsize) {
    let (mut answers, mut asked) = server.split();
    let (mut questions, mut answered) = stream.split();
    tokio::select! {
        () = count_and_copy(&mut questions, &mut asked, count) => {}
        _ = copy(&mut answers, &mut answered) => {}
    }
}

async fn count_and_copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicUsize,
) {
    let mut statements = Statements::default();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(size @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(statements.read(&buffer[..size]), Relaxed);
        if to.write_all(&buffer[..size]).await.is_err() {
            return;
        }
    }
}
