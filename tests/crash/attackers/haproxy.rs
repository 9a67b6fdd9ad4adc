//! The `HAProxy` of `deploy/compose` in front of a gateway, and its limits of an address.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream},
    net::{TcpListener, TcpSocket},
};

use crate::{eventually, prerequisites, reserved_addr::reserve_addr};

const CONFIG: &str = include_str!("../../../deploy/compose/haproxy.cfg");
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Killed when it is dropped.
pub(super) struct HaProxy {
    pub(super) addr: SocketAddr,
    process: Child,
    _directory: TempDir,
}

impl HaProxy {
    /// Starts it in front of a gateway; `None`, with a message on stderr, on a machine without it.
    pub(super) async fn start(gateway: &str) -> Option<Self> {
        if Command::new("haproxy").arg("-v").output().is_err() {
            prerequisites::skip("attacks behind HAProxy", "haproxy is not installed");
            return None;
        }
        let (addr, directory) = (reserve_addr(), tempfile::tempdir().unwrap());
        let mut config = CONFIG.to_owned();
        for (shipped, here) in [
            ("bind :8080", format!("bind {addr}")),
            (
                "server-template gateway 10 gateway:8080",
                format!("server gateway {gateway}"),
            ),
            (" resolvers containers init-addr none", String::new()),
        ] {
            assert!(config.contains(shipped), "{config}");
            config = config.replace(shipped, &here);
        }
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, config).unwrap();
        let process = Command::new("haproxy")
            .args(["-db", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self {
            addr,
            process,
            _directory: directory,
        };
        eventually(
            START_TIMEOUT,
            "HAProxy does not accept connections",
            async || TcpStream::connect(addr).ok(),
        )
        .await;
        Some(started)
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // Both fail if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// Those of an address.
const MAX_CONNECTIONS: usize = 256;
const MAX_REQUESTS: usize = 3_000;

/// A response: its status line and headers. Its body is empty.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: String,
    headers: BTreeMap<String, String>,
}

/// A connection from an address to the proxy.
struct Client(BufStream<tokio::net::TcpStream>);

impl Client {
    /// Fails if the proxy resets the connection at once.
    async fn connect(address: Ipv4Addr, proxy: &HaProxy) -> io::Result<Self> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        let stream = socket.connect(proxy.addr).await?;
        Ok(Self(BufStream::new(stream)))
    }

    /// The response to a request on a new connection.
    async fn get_anew(address: Ipv4Addr, proxy: &HaProxy) -> io::Result<Head> {
        Self::connect(address, proxy).await?.get().await
    }

    /// The response to a request; fails if the proxy has closed the connection.
    async fn get(&mut self) -> io::Result<Head> {
        let request = b"GET /api/me HTTP/1.1\r\nHost: x\r\n\r\n";
        self.0.write_all(request).await?;
        self.0.flush().await?;
        let status = self.line().await?;
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(": ") else {
                return Ok(Head { status, headers });
            };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// Answers every request with an empty response; its address.
async fn empty_responses() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while stream.read_buf(&mut request).await? > 0 {
                    if request.ends_with(b"\r\n\r\n") {
                        request.clear();
                        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                        stream.write_all(response).await?;
                    }
                }
                io::Result::Ok(())
            });
        }
    });
    addr
}

fn is_ok(response: &io::Result<Head>) -> bool {
    let head = response.as_ref();
    head.is_ok_and(|head| head.status == "HTTP/1.1 200 OK")
}

#[tokio::test]
async fn haproxy_refuses_an_address_with_too_many_connections_and_no_other() {
    let Some(proxy) = HaProxy::start(&empty_responses().await.to_string()).await else {
        return;
    };
    let connect = |_| async {
        let mut client = Client::connect(STRANGER, &proxy).await.unwrap();
        let response = client.get().await;
        assert!(is_ok(&response), "{response:?}");
        client
    };
    let mut connections = join_all((0..MAX_CONNECTIONS).map(connect)).await;

    let refused = Client::get_anew(STRANGER, &proxy).await;
    assert!(refused.is_err(), "{refused:?}");
    let response = Client::get_anew(NEIGHBOUR, &proxy).await;
    assert!(is_ok(&response), "{response:?}");
    let response = connections[0].get().await;
    assert!(is_ok(&response), "{response:?}");

    connections.pop();
    eventually(START_TIMEOUT, "the address stays refused", async || {
        let response = Client::get_anew(STRANGER, &proxy).await;
        is_ok(&response).then_some(())
    })
    .await;
}

#[tokio::test]
async fn haproxy_refuses_an_address_with_too_many_requests_and_no_other() {
    let Some(proxy) = HaProxy::start(&empty_responses().await.to_string()).await else {
        return;
    };
    let mut stranger = Client::connect(STRANGER, &proxy).await.unwrap();
    // More than the limit where they take longer than the time in which it counts.
    let (mut served, mut refused) = (0, stranger.get().await.unwrap());
    while refused.status.ends_with("200 OK") {
        served += 1;
        assert!(served < 10 * MAX_REQUESTS, "none is refused");
        refused = stranger.get().await.unwrap();
    }
    assert!(served >= MAX_REQUESTS, "{served}");
    let request_id = refused.headers.remove("x-request-id").unwrap();
    request_id.parse::<uuid::Uuid>().unwrap();
    let headers = [
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "retry-after, x-request-id"),
        ("content-length", "0"),
        ("retry-after", "10"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let expected = Head {
        status: "HTTP/1.1 429 Too Many Requests".to_owned(),
        headers: headers.into(),
    };
    assert_eq!(refused, expected);
    let response = Client::get_anew(NEIGHBOUR, &proxy).await;
    assert!(is_ok(&response), "{response:?}");
}
