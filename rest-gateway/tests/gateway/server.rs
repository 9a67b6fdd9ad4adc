//! The server itself: limits, both versions of HTTP, its end.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proto::{GetTaskRequest, task};
use rest_gateway::{Config, CoreConfig, RestGateway};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{
    Client, Platform,
    samples::{ID, task},
};

fn task_path() -> String {
    format!("/api/tasks/{ID}")
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_on_one_port() {
    let platform = Platform::start().await;

    for client in [
        Client::new(platform.gateway.addr),
        Client::http2(platform.gateway.addr),
    ] {
        assert_eq!(client.get("/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn a_core_that_takes_too_long_is_504() {
    let platform = Platform::start_with(|config| {
        config.request_timeout = Duration::from_millis(100);
    })
    .await;
    platform.core.will_hang();

    let reply = platform.client.get(&task_path()).await;

    assert_eq!(reply.status, 504);
    assert_eq!(reply.error()["code"], "deadline_exceeded");
}

#[tokio::test]
async fn more_requests_than_may_be_worked_on_are_503_at_once() {
    let platform = Platform::start_with(|config| {
        config.max_requests = 1;
        config.request_timeout = Duration::from_millis(500);
    })
    .await;
    platform.core.will_hang();
    platform.core.will_hang();

    let (first, second) = tokio::join!(
        platform.client.get("/api/tasks/1"),
        platform.client.get("/api/tasks/2")
    );

    let (shed, worked_on) = if first.status == 503 {
        (first, second)
    } else {
        (second, first)
    };
    assert_eq!(worked_on.status, 504);
    assert_eq!(shed.status, 503);
    assert_eq!(shed.header("retry-after"), Some("1"));
    assert_eq!(shed.error()["code"], "overloaded");
    assert!(shed.header("x-request-id").is_some());
}

#[tokio::test]
async fn clients_that_are_slow_to_send_take_nobodys_place() {
    let platform = Platform::start_with(|config| config.max_requests = 1).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream
            .write_all(b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            .await
            .unwrap();
        slow.push(stream);
    }
    platform.core.will_answer(task(task::Kind::Pickup));

    assert_eq!(platform.client.get(&task_path()).await.status, 200);
    assert_eq!(platform.client.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_body_that_breaks_the_rules_of_http_is_400() {
    let platform = Platform::start().await;

    let answer = platform
        .client
        .send_raw(
            b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
              Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        )
        .await;

    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains(r#""retryable":false"#), "{answer}");
    assert!(answer.contains(r#""code":"malformed""#), "{answer}");
}

#[tokio::test]
async fn a_gateway_that_is_told_to_end_asks_clients_to_connect_elsewhere() {
    let platform = Platform::start_with(|config| {
        config.drain_grace = Duration::from_hours(1);
    })
    .await;
    assert_eq!(
        platform.client.get("/healthz").await.header("connection"),
        None
    );

    platform.gateway.shutdown.cancel();

    let reply = Client::new(platform.gateway.addr).get("/healthz").await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("connection")),
        (200, Some("close"))
    );
    let ready = Client::new(platform.gateway.addr).get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.body[..]),
        (503, &b"this gateway is ending\n"[..])
    );
}

#[tokio::test]
async fn a_core_elsewhere_is_called_over_tls_unless_told_otherwise() {
    let elsewhere = |allow_plaintext_core| Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        core_url: vec!["http://192.0.2.1:50051".parse().unwrap()],
        core: CoreConfig {
            allow_plaintext_core,
            ..CoreConfig::default()
        },
        ..Config::default()
    };

    let Err(refusal) = RestGateway::bind(elsewhere(false)).await else {
        panic!("secrets would pass in the clear");
    };
    assert!(
        refusal.to_string().contains("--allow-plaintext-core"),
        "{refusal}"
    );
    assert!(RestGateway::bind(elsewhere(true)).await.is_ok());
}

#[tokio::test]
async fn who_says_nothing_is_not_waited_for() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_millis(100);
    })
    .await;

    for begun in ["", "P", "GET /healthz HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();

        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;

        assert!(ended.is_ok(), "{begun}");
    }
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_asked_is_closed_whatever_its_version_of_http() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_hours(1);
        config.idle_timeout = Duration::from_millis(100);
    })
    .await;
    let connect = async || {
        let stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        TokioIo::new(stream)
    };
    let request = || {
        http::Request::get("http://gateway/healthz")
            .body(Empty::<Bytes>::new())
            .unwrap()
    };

    let (mut old, connection) = http1::handshake(connect().await).await.unwrap();
    let old_ended = tokio::spawn(connection);
    assert_eq!(old.send_request(request()).await.unwrap().status(), 200);
    let executor = TokioExecutor::new();
    let (mut new, connection) = http2::handshake(executor, connect().await).await.unwrap();
    let new_ended = tokio::spawn(connection);
    assert_eq!(new.send_request(request()).await.unwrap().status(), 200);

    for ended in [old_ended, new_ended] {
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        assert!(ended.expect("it is closed").unwrap().is_ok());
    }
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let platform = Platform::start().await;
    let headers = "X: y\r\n".repeat(1000);

    let answer = platform
        .client
        .send_raw(format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes())
        .await;

    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn a_gateway_that_is_told_to_end_finishes_what_is_in_flight() {
    let platform = Platform::start_with(|config| {
        config.request_timeout = Duration::from_millis(300);
    })
    .await;
    platform.core.will_hang();
    let path = task_path();
    let in_flight = platform.client.get(&path);
    let stop = async {
        platform.core.next_call().await;
        platform.gateway.shutdown.cancel();
    };

    let (reply, ()) = tokio::join!(in_flight, stop);

    assert_eq!(reply.status, 504);
    platform.gateway.running.await.unwrap();
    assert!(TcpStream::connect(platform.gateway.addr).await.is_err());
    platform.core.received::<GetTaskRequest>();
}

#[tokio::test]
async fn without_public_url_the_bound_address_is_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RestGateway::new(Config::default(), listener).unwrap();
    let addr = gateway.addr();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let _ends = shutdown.clone().drop_guard();
    tokio::spawn(gateway.run(shutdown));

    let reply = Client::new(addr).get("/nowhere").await;

    assert_eq!(
        reply.error()["type"],
        format!("http://{addr}/errors/not_found")
    );
}
