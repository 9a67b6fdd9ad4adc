//! The network between the cores and PostgreSQL, which can be cut: what was connected stays so,
//! and never hears anything again.

use std::path::PathBuf;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

pub(crate) struct Wire {
    port: u16,
    /// How many times it was cut, and whether it is.
    state: watch::Sender<(u32, bool)>,
}

impl Wire {
    /// Leads from a loopback port to a server's socket.
    pub(crate) async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = watch::Sender::new((0, false));
        let cuts = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(lead(stream, socket.clone(), cuts.subscribe()));
            }
        });
        Self { port, state }
    }

    pub(crate) fn database_url(&self) -> String {
        format!("postgres://delivery@127.0.0.1:{}/postgres", self.port)
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

async fn lead(mut stream: TcpStream, socket: PathBuf, mut state: watch::Receiver<(u32, bool)>) {
    let (times, is_cut) = *state.borrow_and_update();
    if !is_cut {
        let Ok(mut server) = UnixStream::connect(socket).await else {
            return;
        };
        tokio::select! {
            _ = copy_bidirectional(&mut stream, &mut server) => return,
            cut = state.wait_for(|(now, _)| *now > times) => drop(cut),
        }
        // The server is lost; what it had under way ends with it.
        drop(server);
    }
    // Open, and silent, for as long as the other side cares.
    let _open = stream;
    std::future::pending::<()>().await;
}
