//! Bodies that are announced and do not arrive.

use std::time::{Duration, Instant};

use http::Method;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{body::Frame, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rest_gateway::RateLimitConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{Platform, samples::delivery};

/// Far longer than a response takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Less than the gateway's timeout for bodies, and more than a body may stall.
const SOON: Duration = Duration::from_secs(8);

const HEAD: &str = "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";

/// Reads until the text has arrived.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut received = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&received).contains(text) {
            let count = stream.read_buf(&mut received).await.unwrap();
            assert!(
                count > 0,
                "closed after {:?}",
                String::from_utf8_lossy(&received)
            );
        }
    };
    let read = tokio::time::timeout(TIMEOUT, reading).await;
    read.expect("the gateway should respond");
    String::from_utf8(received).unwrap()
}

#[tokio::test]
async fn a_request_without_its_token_is_401_before_its_body_arrives() {
    let platform = Platform::start().await;
    for framing in [
        "Content-Length: 9",
        "Transfer-Encoding: chunked",
        "Content-Length: 1048576",
    ] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        let head = format!("{HEAD}{framing}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();

        let response = read_until(&mut stream, "\"requestId\"").await;

        assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
        assert!(
            response.contains("www-authenticate: Bearer realm=\"delivery\""),
            "{response}"
        );
        assert!(
            response.contains("\"code\":\"token_missing\""),
            "{response}"
        );
        let mut rest = Vec::new();
        let closed = stream.read_to_end(&mut rest);
        let closed = tokio::time::timeout(SOON, closed).await;
        assert!(closed.is_ok(), "{framing}");
    }
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_stream_without_its_token_is_401_before_its_body_arrives() {
    let platform = Platform::start().await;
    let stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let never = futures_util::stream::pending::<Result<Frame<bytes::Bytes>, std::io::Error>>();
    let request = http::Request::post(format!("http://{}/api/deliveries", platform.gateway.addr))
        .header("content-type", "application/json")
        .header("content-length", 1 << 20)
        .body(StreamBody::new(never))
        .unwrap();

    let response = tokio::time::timeout(TIMEOUT, sender.send_request(request)).await;

    let response = response.expect("the gateway should respond").unwrap();
    assert_eq!(response.status(), 401);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("token_missing"));
}

#[tokio::test]
async fn the_body_after_an_early_response_is_not_read_as_a_request() {
    let platform = Platform::start().await;
    let smuggled = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", smuggled.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    let first = read_until(&mut stream, "\"requestId\"").await;
    assert!(first.starts_with("HTTP/1.1 401 "), "{first}");

    let rest = format!("{smuggled}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(rest.as_bytes()).await.unwrap();

    let mut second = String::new();
    let reading = stream.read_to_string(&mut second);
    tokio::time::timeout(TIMEOUT, reading)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(second.matches("HTTP/1.1 ").count(), 1, "{second}");
    assert!(second.ends_with("ok\n"), "{second}");
}

#[tokio::test]
async fn a_body_that_stalls_is_408_within_seconds() {
    let platform = Platform::start().await;
    let begun = Instant::now();

    let request = format!("{HEAD}Authorization: Bearer a\r\nContent-Length: 10\r\n\r\n{{");
    let response = platform.client.send_raw(request.as_bytes()).await;

    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_image_may_arrive_for_longer_than_other_requests_take_but_not_stall() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_millis(100);
        config.request_timeout = Duration::from_millis(100);
    })
    .await;
    let begun = Instant::now();

    let request = "POST /api/task_images HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n\
                   Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 10\r\n\r\n-";
    let response = platform.client.send_raw(request.as_bytes()).await;

    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(begun.elapsed() > Duration::from_secs(2));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// The memory for bodies is shared among peers. Behind a proxy, each of its clients is a peer.
#[tokio::test]
async fn a_proxys_client_that_fills_its_share_of_memory_does_not_affect_another() {
    let platform = Platform::start_with(|config| {
        config.rate_limits = RateLimitConfig::off();
        config.rate_limits.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let head = format!(
        "{HEAD}Authorization: Bearer a\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 1048576\r\n\r\n"
    );
    let body = " ".repeat((1 << 20) - 1);
    let mut streams = Vec::new();
    for _ in 0..80 {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // Fails if the gateway has responded and closed the connection.
        let _ = tokio::time::timeout(TIMEOUT, stream.write_all(body.as_bytes())).await;
        streams.push(stream);
    }

    platform.core.will_respond(delivery());
    let request = platform
        .client
        .request(Method::POST, "/api/deliveries")
        .header("authorization", "Bearer b")
        .header("content-type", "application/json")
        .header("x-forwarded-for", "192.0.2.2");
    let reply = platform.client.send(request, "{}").await;

    assert_eq!(reply.status, 201, "{}", reply.text());
}
