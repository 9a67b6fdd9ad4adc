//! Requests no decent program sends: any bytes over a connection of their own.

use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, header::HeaderName};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Answer;

/// Far beyond what an answer takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// Sends these bytes and waits for the answer; `None` if the connection is closed without one.
/// The request should say `Connection: close`.
pub(crate) async fn send(base_url: &str, request: &[u8]) -> Option<Answer> {
    exchange(base_url, request, false).await
}

/// Sends these bytes, ends the connection's sending side and waits for the answer, if any.
pub(crate) async fn send_and_hang_up(base_url: &str, request: &[u8]) -> Option<Answer> {
    exchange(base_url, request, true).await
}

async fn exchange(base_url: &str, request: &[u8], hang_up: bool) -> Option<Answer> {
    let addr = base_url.strip_prefix("http://").unwrap();
    let (mut reader, mut writer) = TcpStream::connect(addr).await.unwrap().into_split();
    let sending = async {
        // A server that has heard enough may close before it has heard all.
        let _ = writer.write_all(request).await;
        if hang_up {
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
    let (_writer, received) = tokio::time::timeout(DEADLINE, both)
        .await
        .expect("the connection stayed open");
    parse(&received)
}

fn parse(received: &[u8]) -> Option<Answer> {
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
    Some(Answer {
        status,
        headers,
        json: serde_json::from_slice(&body).unwrap_or(Value::Null),
        body,
    })
}
