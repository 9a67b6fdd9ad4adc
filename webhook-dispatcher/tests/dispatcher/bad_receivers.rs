//! Receivers with endless, malformed or hostile responses. None may exhaust or mislead the
//! dispatcher.

use proto::outcome::Failure;
use tokio::{
    net::TcpSocket,
    sync::mpsc::{self, UnboundedReceiver},
};

use crate::harness::{
    Canary, Dispatcher, FakeCore, OK, Received, attempt, config, delivered, failed, notification,
    receiver, receiver_at, responding, with_timeout,
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
    // The dispatcher reads at most 64 KiB; its socket's receive buffer takes some more.
    let written = with_timeout(written.recv()).await.unwrap();
    assert!(written < MEGABYTE, "{written}");
}

#[tokio::test]
async fn a_response_without_a_complete_head_is_a_protocol_failure_and_a_status_counts_without_a_body()
 {
    let failure = || failed(Failure::Protocol, None);
    for (response, expected) in [
        ("SSH-2.0-OpenSSH_9.2\r\n", failure()),
        ("HTTP/1.1 200\r\nno colon\r\n\r\n", failure()),
        ("", failure()),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n", failure()),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            failure(),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
            delivered("half"),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello",
            delivered(""),
        ),
        (
            "HTTP/1.1 500 Oops\r\ncontent-length: 9\r\n\r\n",
            failed(Failure::Status, Some(500)),
        ),
    ] {
        let addr = receiver(move |_, mut connection| async move {
            connection.read_request().await;
            connection.write(response.as_bytes()).await;
        })
        .await;

        let outcome = attempt(&format!("http://{addr}/")).await;

        assert_eq!(outcome, expected, "{response}");
    }
}

#[tokio::test]
async fn a_reset_in_the_body_does_not_undo_the_status() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
            .await;
        connection.reset();
    })
    .await;

    let outcome = attempt(&format!("http://{addr}/")).await;

    assert_eq!(outcome, delivered(""));
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
    let request = received.try_recv().unwrap();
    assert_eq!(request.header("Accept-Encoding"), None);
}

/// The request may have been processed: another one could be a repeat.
#[tokio::test]
async fn a_new_connection_that_is_closed_without_a_response_is_not_replaced() {
    for resets in [false, true] {
        let (requests_tx, mut requests) = mpsc::unbounded_channel();
        let addr = receiver(move |number, mut connection| {
            let requests = requests_tx.clone();
            async move {
                let request = connection.read_request().await.unwrap();
                requests
                    .send((number, notification_number(&request)))
                    .unwrap();
                if resets {
                    connection.reset();
                }
            }
        })
        .await;

        let outcome = attempt(&format!("http://{addr}/")).await;

        assert_eq!(outcome, failed(Failure::Protocol, None), "{resets}");
        assert_eq!(received(&mut requests), [(0, 1)], "{resets}");
    }
}

/// It is replaced by a new one, once.
#[tokio::test]
async fn an_idle_connection_closed_on_reuse_costs_no_attempt() {
    // Whether the receiver responds on the new connection, too, and the failure if it does not.
    for (responds, failure, status) in [
        (true, Failure::Unspecified, Some(200)),
        (false, Failure::Protocol, None),
    ] {
        let mut core = FakeCore::start().await;
        let dispatcher = Dispatcher::start(&config(&[&core]));
        let mut stream = core.stream().await;
        // The first connection responds once and closes on the second request.
        let (requests_tx, mut requests) = mpsc::unbounded_channel();
        let addr = receiver(move |number, mut connection| {
            let requests = requests_tx.clone();
            async move {
                for nth in 0.. {
                    let Some(request) = connection.read_request().await else {
                        break;
                    };
                    requests
                        .send((number, notification_number(&request)))
                        .unwrap();
                    let is_answered = if number == 0 { nth == 0 } else { responds };
                    if !is_answered {
                        break;
                    }
                    connection.write(OK).await;
                }
            }
        })
        .await;

        let mut outcomes = Vec::new();
        for number in 1..=2 {
            let url = format!("http://{addr}/");
            stream.send(vec![notification(number, &url)]).await;
            let outcome = stream.next_outcome().await;
            stream.acknowledge(&outcome);
            outcomes.push((outcome.failure(), outcome.status));
        }

        let delivered = (Failure::Unspecified, Some(200));
        assert_eq!(outcomes, [delivered, (failure, status)]);
        dispatcher.shut_down_with(stream).await;
        assert_eq!(received(&mut requests), [(0, 1), (0, 2), (1, 2)]);
    }
}

/// The number passed to [`notification`]: the last byte of `Webhook-Id`.
fn notification_number(request: &Received) -> u8 {
    let id = request.header("Webhook-Id").unwrap();
    u8::from_str_radix(&id[id.len() - 2..], 16).unwrap()
}

/// The requests so far: the numbers of their connections and notifications.
fn received(requests: &mut UnboundedReceiver<(usize, u8)>) -> Vec<(usize, u8)> {
    std::iter::from_fn(|| requests.try_recv().ok()).collect()
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
