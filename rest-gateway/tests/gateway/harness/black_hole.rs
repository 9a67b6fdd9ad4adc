//! The network before a core, which can swallow everything that passes.

use rest_gateway::CoreUrl;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// A way to a core. Ends with the runtime of its test.
pub(crate) struct Network {
    url: CoreUrl,
    passes: watch::Sender<bool>,
}

impl Network {
    pub(crate) async fn before(core: &CoreUrl) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (passes, open) = watch::channel(true);
        let core = (core.host(), core.port());
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let Ok(callee) = TcpStream::connect(core.clone()).await else {
                    continue;
                };
                let ((asked, answered), (answering, asking)) =
                    (caller.into_split(), callee.into_split());
                tokio::spawn(pass(asked, asking, open.clone()));
                tokio::spawn(pass(answering, answered, open.clone()));
            }
        });
        Self {
            url: url.parse().unwrap(),
            passes,
        }
    }

    pub(crate) fn url(&self) -> CoreUrl {
        self.url.clone()
    }

    /// From now on nothing comes through, and nobody is told.
    pub(crate) fn swallow(&self) {
        self.passes.send_replace(false);
    }

    /// What was sent meanwhile arrives after all.
    pub(crate) fn mend(&self) {
        self.passes.send_replace(true);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if open.wait_for(|open| *open).await.is_err()
            || to.write_all(&bytes[..count]).await.is_err()
        {
            break;
        }
    }
}
