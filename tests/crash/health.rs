//! Requests to health listeners.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::eventually;

/// Longer than a program takes to respond, and to find a core that has started.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Waits until `/readyz` responds with 200.
pub(crate) async fn wait_until_ready(addr: SocketAddr) {
    let what = format!("{addr} does not become ready");
    eventually(TIMEOUT, &what, async || {
        (readiness(addr).await.0 == "200").then_some(())
    })
    .await;
}

/// Status and body of `/readyz`.
pub(crate) async fn readiness(addr: SocketAddr) -> (String, String) {
    get(addr, "/readyz").await
}

/// Status and body of a `GET`.
pub(crate) async fn get(addr: SocketAddr, path: &str) -> (String, String) {
    let response = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    };
    let response = tokio::time::timeout(TIMEOUT, response).await;
    let response = response.unwrap_or_else(|_| panic!("{addr} does not respond to {path}"));
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}
