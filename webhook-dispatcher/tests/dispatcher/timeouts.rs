//! Receivers that are slow in one phase of a request: no attempt outlasts its timeout.

use std::{iter, net::SocketAddr, sync::Arc, time::Duration};

use proto::{Outcome, outcome::Failure};
use tokio::sync::Notify;
use webhook_dispatcher::Config;

use crate::harness::{
    Dispatcher, FakeCore, attempt_with, config, delivered, failed, notification, receiver,
    short_timeout, with_timeout,
};

/// A receiver that accepts connections and reads, but never responds. Notifies when the dispatcher
/// disconnects.
async fn hanging() -> (SocketAddr, Arc<Notify>) {
    let disconnected = Arc::new(Notify::new());
    let notify = Arc::clone(&disconnected);
    let addr = receiver(move |_, mut connection| {
        let disconnected = Arc::clone(&notify);
        async move {
            connection.closed().await;
            disconnected.notify_one();
        }
    })
    .await;
    (addr, disconnected)
}

#[tokio::test]
async fn a_receiver_that_hangs_times_out() {
    let (addr, disconnected) = hanging().await;

    let outcome = attempt_with(short_timeout, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    with_timeout(disconnected.notified()).await;
}

/// Although the configured timeout is far longer.
#[tokio::test]
async fn an_attempt_times_out_before_its_lease_expires() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&Config {
        send_timeout: Duration::from_mins(10),
        ..config(&[&core])
    });
    let mut stream = core.stream().await;
    let (addr, _) = hanging().await;
    let mut leased = notification(1, &format!("http://{addr}/"));
    leased.lease = Some(prost_types::Duration {
        seconds: 0,
        nanos: 200_000_000,
    });

    stream.send(vec![leased]).await;
    let outcome = stream.next_outcome().await;

    assert_eq!(outcome.failure(), Failure::Timeout);
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_success_status_counts_even_if_its_body_never_ends() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        while connection.write(b"1\r\na\r\n").await {
            tick.tick().await;
        }
    })
    .await;

    let outcome = attempt_with(short_timeout, &format!("http://{addr}/")).await;

    assert!(outcome.response_body.chars().all(|c| c == 'a') && !outcome.response_body.is_empty());
    let expected = Outcome {
        response_body: outcome.response_body.clone(),
        ..delivered("")
    };
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn a_head_sent_byte_by_byte_times_out() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        for byte in b"HTTP/1.1 200 OK\r\nx-slow: "
            .iter()
            .chain(iter::repeat(&b'a'))
        {
            tick.tick().await;
            if !connection.write(&[*byte]).await {
                break;
            }
        }
    })
    .await;

    let outcome = attempt_with(short_timeout, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
}

#[tokio::test]
async fn a_tls_handshake_that_hangs_times_out() {
    let (addr, disconnected) = hanging().await;

    let outcome = attempt_with(short_timeout, &format!("https://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    with_timeout(disconnected.notified()).await;
}

#[tokio::test]
async fn a_failure_status_counts_even_if_its_body_never_ends() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection
            .write(b"HTTP/1.1 410 Gone\r\ncontent-length: 100\r\n\r\ngone")
            .await;
        connection.closed().await;
    })
    .await;

    let outcome = attempt_with(short_timeout, &format!("http://{addr}/")).await;

    let expected = Outcome {
        response_body: "gone".to_owned(),
        ..failed(Failure::Status, Some(410))
    };
    assert_eq!(outcome, expected);
}

/// Each interim response is complete, but none is final.
#[tokio::test]
async fn endless_interim_responses_time_out() {
    let disconnected = Arc::new(Notify::new());
    let notified = Arc::clone(&disconnected);
    let addr = receiver(move |_, mut connection| {
        let disconnected = Arc::clone(&disconnected);
        async move {
            connection.read_request().await;
            let responses = b"HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n".repeat(64);
            while connection.write(&responses).await {}
            disconnected.notify_one();
        }
    })
    .await;

    let outcome = attempt_with(short_timeout, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    with_timeout(notified.notified()).await;
}
