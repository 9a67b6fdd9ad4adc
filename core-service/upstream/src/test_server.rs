//! An HTTP server on loopback that sends scripted responses, valid and malformed.
#![expect(
    clippy::unwrap_used,
    reason = "a panic fails the test that uses the server"
)]

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

/// How the server handles a request. It closes the connection afterwards.
pub enum Reply {
    /// A status and a body.
    Text(u16, String),
    /// The raw bytes of a response, head included.
    Bytes(Vec<u8>),
    /// A body without an end.
    Endless,
    /// Closes the connection without a response.
    Close,
    /// Keeps the connection open without a response.
    Hang,
}

/// Stops when dropped.
pub struct TestServer {
    pub url: Url,
    targets: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<Infallible>,
}

impl TestServer {
    /// `reply` receives a request's target (path and query) and the number of earlier requests.
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

    /// The targets of all requests so far.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
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
    // The client may have disconnected.
    let _ = match reply {
        Reply::Text(status, body) => {
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            connection.write_all(response.as_bytes()).await
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
        Reply::Close => Ok(()),
        // Until the client disconnects.
        Reply::Hang => connection.read_u8().await.map(|_| ()),
    };
}
