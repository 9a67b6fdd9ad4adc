//! Receivers with endless, malformed or hostile responses. None may exhaust or mislead the
//! dispatcher.

use proto::{Outcome, outcome::Failure};
use tokio::net::TcpSocket;

use crate::harness::{
    Canary, Dispatcher, FakeCore, attempt, config, delivered, failed, notification, receiver,
    receiver_at, responding, with_timeout,
};

#[tokio::test]
async fn endless_headers_are_a_protocol_failure() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n").await;
        while connection.write(b"x-more: and more\r\n").await {}
    })
    .await;

    let outcome = attempt(&format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Protocol, None));
}

#[tokio::test]
async fn only_the_beginning_of_a_gigabyte_is_read() {
    const GIGABYTE: usize = 1 << 30;
    const MEGABYTE: usize = 1 << 20;
    const CHUNK: usize = 16 * 1024;
    let (written_tx, mut written) = tokio::sync::mpsc::unbounded_channel();
    // A small send buffer, so that bytes written are bytes the dispatcher has received.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16 * 1024).unwrap();
    let addr = receiver_at(socket, move |_, mut connection| {
        let written = written_tx.clone();
        async move {
            connection.read_request().await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {GIGABYTE}\r\n\r\n");
            connection.write(head.as_bytes()).await;
            let mut count = 0;
            while count < GIGABYTE && connection.write(&[b'a'; CHUNK]).await {
                count += CHUNK;
            }
            written.send(count).unwrap();
        }
    })
    .await;

    let outcome = attempt(&format!("http://{addr}/")).await;

    assert_eq!(outcome, delivered(&"a".repeat(4096)));
    // 64 KiB, and the receive buffer of its socket.
    let written = with_timeout(written.recv()).await.unwrap();
    assert!(written < MEGABYTE, "{written}");
}

#[tokio::test]
async fn malformed_and_truncated_responses_are_protocol_failures() {
    for (response, status, text) in [
        ("SSH-2.0-OpenSSH_9.2\r\n", None, ""),
        ("HTTP/1.1 200\r\nno colon\r\n\r\n", None, ""),
        ("", None, ""),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
            Some(200),
            "half",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello",
            Some(200),
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            None,
            "",
        ),
    ] {
        let addr = receiver(move |_, mut connection| async move {
            connection.read_request().await;
            connection.write(response.as_bytes()).await;
        })
        .await;

        let outcome = attempt(&format!("http://{addr}/")).await;

        let expected = Outcome {
            response_body: text.to_owned(),
            ..failed(Failure::Protocol, status)
        };
        assert_eq!(outcome, expected, "{response}");
    }
}

#[tokio::test]
async fn a_reset_in_the_body_is_a_protocol_failure() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
            .await;
        connection.reset();
    })
    .await;

    let outcome = attempt(&format!("http://{addr}/")).await;

    assert_eq!(outcome.failure(), Failure::Protocol);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let canary = Canary::start().await;
        let location = canary.addr();
        let response = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: http://{location}/\r\ncontent-length: 0\r\n\r\n"
        );
        let (url, _received) = responding(response).await;

        assert_eq!(attempt(&url).await, failed(Failure::Status, Some(status)));
        assert!(canary.has_no_connections().await);
    }
}

#[tokio::test]
async fn headers_and_bodies_with_invalid_utf8_are_handled() {
    let response = b"HTTP/1.1 200 OK\r\nx-bad: \xff\xfe\r\ncontent-length: 3\r\n\r\n\xff\0!";
    let (url, _received) = responding(*response).await;
    assert_eq!(attempt(&url).await, delivered("\u{fffd}\u{fffd}!"));

    let response = b"HTTP/1.1 503 Busy\r\nretry-after: \xff\r\ncontent-length: 0\r\n\r\n";
    let (url, _received) = responding(*response).await;
    assert_eq!(attempt(&url).await, failed(Failure::Status, Some(503)));
}

#[tokio::test]
async fn a_compressed_response_is_not_decompressed() {
    let response =
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let (url, mut received) = responding(*response).await;

    let outcome = attempt(&url).await;

    assert_eq!(outcome, delivered("\u{1f}\u{fffd}\u{8}\u{fffd}"));
    let request = received.recv().await.unwrap();
    assert_eq!(request.header("Accept-Encoding"), None);
}

#[tokio::test]
async fn an_idle_connection_closed_on_reuse_costs_no_attempt() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    // The first connection responds once and closes on the second request.
    let addr = receiver(|number, mut connection| async move {
        while connection.read_request().await.is_some() {
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            connection.write(response.as_bytes()).await;
            if number == 0 {
                connection.read_request().await;
                break;
            }
        }
    })
    .await;

    for number in 1..=2 {
        let url = format!("http://{addr}/");
        stream.send(vec![notification(number, &url)]).await;
        let outcome = stream.next_outcome().await;
        assert_eq!(outcome.failure(), Failure::Unspecified);
        assert_eq!(outcome.response_body, (number - 1).to_string());
        stream.acknowledge(&outcome).await;
    }

    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_refused_connection_is_a_connect_failure() {
    // Bound, which reserves the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let addr = socket.local_addr().unwrap();

    for scheme in ["http", "https"] {
        let outcome = attempt(&format!("{scheme}://{addr}/")).await;
        assert_eq!(outcome, failed(Failure::Connect, None), "{scheme}");
    }
}
