//! A TCP proxy in front of a core, which can stop forwarding without closing its connections.

use rest_gateway::CoreUrl;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// Forwards connections to a core. Stops with the runtime of its test.
pub(crate) struct StallingProxy {
    url: CoreUrl,
    forwarding: watch::Sender<bool>,
}

impl StallingProxy {
    pub(crate) async fn in_front_of(core: &CoreUrl) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (forwarding, is_forwarding) = watch::channel(true);
        let core = (core.host(), core.port());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(core.clone()).await else {
                    continue;
                };
                let ((client_reader, client_writer), (server_reader, server_writer)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(forward(client_reader, server_writer, is_forwarding.clone()));
                tokio::spawn(forward(server_reader, client_writer, is_forwarding.clone()));
            }
        });
        Self {
            url: url.parse().unwrap(),
            forwarding,
        }
    }

    pub(crate) fn url(&self) -> CoreUrl {
        self.url.clone()
    }

    /// Stops forwarding bytes. Connections stay open.
    pub(crate) fn stall(&self) {
        self.forwarding.send_replace(false);
    }

    /// Forwards bytes again, first those that were sent in the meantime.
    pub(crate) fn resume(&self) {
        self.forwarding.send_replace(true);
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut is_forwarding: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if is_forwarding.wait_for(|is| *is).await.is_err()
            || to.write_all(&bytes[..count]).await.is_err()
        {
            break;
        }
    }
}
