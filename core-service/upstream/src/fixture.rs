//! A service on loopback that answers as a test says, byte by byte, well or badly.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use url::Url;

/// What the service does with a request. Its connection is closed afterwards.
pub enum Reply {
    /// A status and a body.
    Text(u16, String),
    /// The bytes of an answer, head included.
    Bytes(Vec<u8>),
    /// A body that does not end.
    Endless,
    /// The connection is closed at once.
    Nothing,
    /// The connection stays, and nothing is said.
    Silence,
}

/// Ends when it is dropped.
pub struct Service {
    pub url: Url,
    targets: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<Infallible>,
}

impl Service {
    /// `reply` is given the request's target (path and query) and how many came before it.
    pub async fn start(reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let targets = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (Arc::clone(&targets), Arc::new(reply));
        let accepting = tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, Arc::clone(&seen), Arc::clone(&reply)));
            }
        });
        Self {
            url: url.parse().unwrap(),
            targets,
            accepting,
        }
    }

    /// What has been asked for so far.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut connection: TcpStream,
    targets: Arc<Mutex<Vec<String>>>,
    reply: Arc<impl Fn(&str, usize) -> Reply>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap().to_owned();
    let reply = {
        let mut targets = targets.lock().unwrap();
        targets.push(target.clone());
        reply(&target, targets.len() - 1)
    };
    // A client that has gone away is nothing to fail over.
    let _ = match reply {
        Reply::Text(status, body) => {
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            connection.write_all(answer.as_bytes()).await
        }
        Reply::Bytes(bytes) => connection.write_all(&bytes).await,
        Reply::Endless => {
            let mut written = connection
                .write_all(b"HTTP/1.1 200 -\r\nconnection: close\r\n\r\n")
                .await;
            while written.is_ok() {
                written = connection.write_all(&[b' '; 8192]).await;
            }
            written
        }
        Reply::Nothing => Ok(()),
        // Until the client gives up.
        Reply::Silence => connection.read_u8().await.map(|_| ()),
    };
}
