//! The server itself: limits, both versions of HTTP, its end.

use std::time::Duration;

use proto::GetTaskRequest;
use rest_gateway::{Config, RestGateway};
use tokio::{io::AsyncReadExt, net::TcpStream};

use crate::harness::{Client, Platform, samples::ID};

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
async fn who_says_nothing_is_not_waited_for() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_millis(100);
    })
    .await;

    for begun in ["", "P", "GET /healthz HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, begun.as_bytes())
            .await
            .unwrap();

        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;

        assert!(ended.is_ok(), "{begun}");
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

#[tokio::test]
async fn what_is_no_address_of_a_core_is_refused_at_the_start() {
    for wrong in ["ftp://core:1", "/core", "core"] {
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            core_url: vec![wrong.parse().unwrap()],
            ..Config::default()
        };

        assert!(RestGateway::bind(config).await.is_err(), "{wrong}");
    }
}
