//! Raw requests: any bytes over a separate connection.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use hyper::{HeaderMap, header::HeaderName};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Response;

/// Far longer than a response takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends these bytes and waits for the response; `None` if the connection is closed without one.
/// The request should contain `Connection: close`.
pub(crate) async fn send(base_url: &str, request: &[u8]) -> Option<Response> {
    exchange(base_url, request, false).await
}

/// The metrics that a health listener exposes.
pub(crate) async fn metrics(addr: SocketAddr) -> String {
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let response = send(&format!("http://{addr}"), request).await.unwrap();
    assert_eq!(response.status, 200);
    String::from_utf8(response.body.to_vec()).unwrap()
}

/// Sends these bytes, closes the sending side and waits for the response, if any.
pub(crate) async fn send_and_half_close(base_url: &str, request: &[u8]) -> Option<Response> {
    exchange(base_url, request, true).await
}

async fn exchange(base_url: &str, request: &[u8], half_close: bool) -> Option<Response> {
    let addr = base_url.strip_prefix("http://").unwrap();
    let (mut reader, mut writer) = TcpStream::connect(addr).await.unwrap().into_split();
    let sending = async {
        // The server may close the connection before it has read everything.
        let _ = writer.write_all(request).await;
        if half_close {
            let _ = writer.shutdown().await;
        }
        writer
    };
    let receiving = async {
        let mut received = Vec::new();
        let _ = reader.read_to_end(&mut received).await;
        received
    };
    let both = async { tokio::join!(sending, receiving) };
    let (_writer, received) = tokio::time::timeout(TIMEOUT, both)
        .await
        .expect("the server should close the connection");
    parse(&received)
}

fn parse(received: &[u8]) -> Option<Response> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&received[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers: HeaderMap = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            let name: HeaderName = name.parse().unwrap();
            (name, value.trim().parse().unwrap())
        })
        .collect();
    let body = Bytes::copy_from_slice(&received[end + 4..]);
    Some(Response {
        status,
        headers,
        json: serde_json::from_slice(&body).unwrap_or(Value::Null),
        body,
    })
}
