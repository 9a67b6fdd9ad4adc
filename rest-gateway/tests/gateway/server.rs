//! The server: limits, timeouts, both versions of HTTP, draining.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proto::{GetTaskRequest, task};
use rest_gateway::{Config, CoreConfig, RestGateway};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::harness::{
    Client, Platform,
    samples::{ID, task},
};

fn task_path() -> String {
    format!("/api/tasks/{ID}")
}

#[tokio::test]
async fn both_versions_of_http_are_served_on_one_port() {
    let platform = Platform::start().await;

    for client in [
        Client::new(platform.gateway.addr),
        Client::http2(platform.gateway.addr),
    ] {
        assert_eq!(client.get("/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn a_request_that_exceeds_its_timeout_is_504() {
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
async fn a_request_above_the_concurrency_limit_waits_for_its_turn() {
    let platform = Platform::start_with(|config| {
        config.max_requests = 1;
        config.max_wait = Duration::from_mins(1);
    })
    .await;
    platform.core.will_hang();
    let mut running = Box::pin(platform.client.get("/api/tasks/1"));
    tokio::select! {
        reply = &mut running => panic!("{}", reply.status),
        () = platform.core.next_call() => {}
    }
    platform.core.will_respond(task(task::Kind::Pickup));
    let path = task_path();
    // One connection: when its second request is answered, its first has been read.
    let client = Client::http2(platform.gateway.addr);
    let mut waiting = Box::pin(client.get(&path));
    tokio::select! {
        biased;
        reply = &mut waiting => panic!("{}", reply.status),
        reply = client.get("/healthz") => assert_eq!(reply.status, 200),
    }

    drop(running);

    assert_eq!(waiting.await.status, 200);
}

#[tokio::test]
async fn a_request_that_waits_too_long_for_its_turn_is_503() {
    let platform = Platform::start_with(|config| {
        config.max_requests = 1;
        config.max_wait = Duration::from_millis(50);
    })
    .await;
    platform.core.will_hang();
    let mut running = Box::pin(platform.client.get("/api/tasks/1"));
    tokio::select! {
        reply = &mut running => panic!("{}", reply.status),
        () = platform.core.next_call() => {}
    }

    let form = "grant_type=client_credentials&client_id=key&client_secret=secret";
    for rejected in [
        platform.client.get("/api/tasks/2").await,
        platform.client.post_form("/oauth2/token", form, None).await,
    ] {
        assert_eq!(rejected.status, 503);
        assert_eq!(rejected.header("retry-after"), Some("1"));
        assert_eq!(rejected.error()["code"], "overloaded");
        assert!(rejected.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn only_as_many_requests_wait_as_there_may_be_connections() {
    let platform = Platform::start_with(|config| {
        config.max_requests = 1;
        config.max_connections = 1;
        config.max_wait = Duration::from_mins(1);
    })
    .await;
    platform.core.will_hang();
    let client = Client::http2(platform.gateway.addr);

    let requests = [(); 3].map(|()| Box::pin(client.get("/api/tasks/1")));
    let (first, _, others) = futures_util::future::select_all(requests).await;

    assert_eq!(first.status, 503);
    assert_eq!(first.error()["code"], "overloaded");
    // One is executed, one waits.
    for other in others {
        assert!(other.now_or_never().is_none());
    }
}

#[tokio::test]
async fn slow_senders_do_not_count_against_the_concurrency_limit() {
    let platform = Platform::start_with(|config| config.max_requests = 1).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream
            .write_all(b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nContent-Length: 9\r\n\r\n{")
            .await
            .unwrap();
        slow.push(stream);
    }
    platform.core.will_respond(task(task::Kind::Pickup));

    assert_eq!(platform.client.get(&task_path()).await.status, 200);
    assert_eq!(platform.client.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_peer_that_never_reads_its_responses_loses_its_connection() {
    let platform = Platform::start_with(|config| {
        config.idle_timeout = Duration::from_millis(100);
    })
    .await;
    // The responses to the first are far larger than the buffers of both sockets, those to the second
    // have no body.
    for request in ["GET /api/docs.json", "OPTIONS /api/tasks/1"] {
        let mut silent = TcpStream::connect(platform.gateway.addr).await.unwrap();
        let requests = format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(1000);

        // Fails once the connection is closed, although nothing was read.
        let closed = async { while silent.write_all(requests.as_bytes()).await.is_ok() {} };

        let closed = tokio::time::timeout(Duration::from_secs(30), closed).await;
        assert!(closed.is_ok(), "{request}");
    }
}

#[tokio::test]
async fn a_peer_with_all_connections_loses_the_one_idle_for_longest_to_another() {
    let platform = Platform::start_with(|config| config.max_connections = 3).await;
    let addr = platform.gateway.addr;
    let connect = async |source: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        socket.connect(addr).await.unwrap()
    };
    let get = async |stream: &mut TcpStream| {
        let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"ok\n") {
            assert!(stream.read_buf(&mut received).await.unwrap() > 0, "closed");
        }
    };
    let mut holding = Vec::new();
    for _ in 0..3 {
        let mut stream = connect([127, 0, 0, 2]).await;
        get(&mut stream).await;
        holding.push(stream);
    }

    let mut honest = Vec::new();
    let mut rest = Vec::new();
    for evicted in &mut holding[..2] {
        let mut stream = connect([127, 0, 0, 1]).await;
        get(&mut stream).await;
        honest.push(stream);
        assert_eq!(evicted.read_to_end(&mut rest).await.unwrap(), 0);
    }
    // Now it is the peer with most, and replaces its own.
    let mut third = connect([127, 0, 0, 1]).await;
    get(&mut third).await;
    assert_eq!(honest[0].read_to_end(&mut rest).await.unwrap(), 0);
    get(&mut holding[2]).await;
}

#[tokio::test]
async fn an_idle_connection_outlives_the_timeout_of_heads() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_millis(50);
        config.idle_timeout = Duration::from_millis(500);
    })
    .await;
    let begun = Instant::now();
    let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();

    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();

    assert!(received.ends_with(b"ok\n"));
    assert!(
        begun.elapsed() >= Duration::from_millis(400),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_body_that_is_not_well_formed_http_is_400() {
    let platform = Platform::start().await;

    let response = platform
        .client
        .send_raw(
            b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
              Authorization: Bearer a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        )
        .await;

    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.contains(r#""retryable":false"#), "{response}");
    assert!(response.contains(r#""code":"malformed""#), "{response}");
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_408() {
    let platform = Platform::start().await;
    let head = "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Authorization: Bearer a\r\nConnection: close\r\n";
    for body in [
        "Content-Length: 10\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\na\r\n{}",
    ] {
        let mut connection = TcpStream::connect(platform.gateway.addr).await.unwrap();
        let request = format!("{head}{body}");
        connection.write_all(request.as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();

        assert!(response.starts_with("HTTP/1.1 408 "), "{body}: {response}");
        assert!(response.contains(r#""retryable":true"#), "{response}");
    }
}

#[tokio::test]
async fn a_draining_gateway_asks_clients_to_reconnect() {
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
        (503, &b"this gateway is shutting down\n"[..])
    );
}

#[tokio::test]
async fn a_remote_core_requires_tls_unless_plaintext_is_allowed() {
    let config = |allow_plaintext_core| Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        core_url: vec!["http://192.0.2.1:50051".parse().unwrap()],
        core: CoreConfig {
            allow_plaintext_core,
            ..CoreConfig::default()
        },
        ..Config::default()
    };

    let Err(error) = RestGateway::bind(config(false)) else {
        panic!("secrets would be sent in plaintext");
    };
    let message = error.to_string();
    assert!(message.contains("--allow-plaintext-core"), "{message}");
    assert!(RestGateway::bind(config(true)).is_ok());
}

#[tokio::test]
async fn a_connection_without_a_complete_request_is_closed() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = Duration::from_millis(100);
    })
    .await;

    for sent in ["", "P", "GET /healthz HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();

        let mut received = Vec::new();
        let closed = stream.read_to_end(&mut received);
        let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;

        assert!(closed.is_ok(), "{sent}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_over_both_versions_of_http() {
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
            .header("host", "gateway")
            .body(Empty::<Bytes>::new())
            .unwrap()
    };

    let (mut http1, connection) = http1::handshake(connect().await).await.unwrap();
    let http1_closed = tokio::spawn(connection);
    assert_eq!(http1.send_request(request()).await.unwrap().status(), 200);
    let executor = TokioExecutor::new();
    let (mut http2, connection) = http2::handshake(executor, connect().await).await.unwrap();
    let http2_closed = tokio::spawn(connection);
    assert_eq!(http2.send_request(request()).await.unwrap().status(), 200);

    for closed in [http1_closed, http2_closed] {
        let closed = tokio::time::timeout(Duration::from_secs(20), closed).await;
        assert!(closed.expect("the connection is closed").unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_draining_gateway_finishes_requests_in_flight() {
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
async fn the_default_public_url_is_the_bound_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RestGateway::new(Config::default(), listener).unwrap();
    let addr = gateway.addr();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let _shutdown = shutdown.clone().drop_guard();
    tokio::spawn(gateway.run(shutdown));

    let reply = Client::new(addr).get("/nowhere").await;

    let expected = format!("http://{addr}/errors/not_found");
    assert_eq!(reply.error()["type"], expected);
}
