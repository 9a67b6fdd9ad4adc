//! Receivers that take their time, in each phase of an exchange: none may hold up the dispatcher.

use std::{iter, net::SocketAddr, sync::Arc, time::Duration};

use proto::{Outcome, outcome::Failure};
use tokio::sync::Notify;

use crate::harness::{
    Dispatcher, FakeCore, attempt_with, briefly, config, failed, notification, receiver, soon,
};

/// A receiver that takes the connection, and what is said over it, and says nothing. It tells when
/// it has been left.
async fn hanging() -> (SocketAddr, Arc<Notify>) {
    let left = Arc::new(Notify::new());
    let leaving = Arc::clone(&left);
    let addr = receiver(move |_, mut connection| {
        let left = Arc::clone(&leaving);
        async move {
            connection.closed().await;
            left.notify_one();
        }
    })
    .await;
    (addr, left)
}

#[tokio::test]
async fn one_that_hangs_is_left_at_the_deadline() {
    let (addr, left) = hanging().await;

    let outcome = attempt_with(briefly, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    soon(left.notified()).await;
}

#[tokio::test]
async fn a_deadline_never_outlasts_the_lease() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
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
    stream.record(&outcome).await;
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn an_answer_byte_by_byte_is_left_at_the_deadline() {
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

    let outcome = attempt_with(briefly, &format!("http://{addr}/")).await;

    assert!(outcome.answer.chars().all(|c| c == 'a') && !outcome.answer.is_empty());
    let expected = Outcome {
        answer: outcome.answer.clone(),
        ..failed(Failure::Timeout, Some(200))
    };
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn a_head_byte_by_byte_is_left_at_the_deadline() {
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

    let outcome = attempt_with(briefly, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
}

#[tokio::test]
async fn a_silent_tls_handshake_is_left_at_the_deadline() {
    let (addr, left) = hanging().await;

    let outcome = attempt_with(briefly, &format!("https://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    soon(left.notified()).await;
}

#[tokio::test]
async fn a_refusal_counts_even_if_its_text_never_ends() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection
            .write(b"HTTP/1.1 410 Gone\r\ncontent-length: 100\r\n\r\ngone")
            .await;
        connection.closed().await;
    })
    .await;

    let outcome = attempt_with(briefly, &format!("http://{addr}/")).await;

    let expected = Outcome {
        answer: "gone".to_owned(),
        ..failed(Failure::Status, Some(410))
    };
    assert_eq!(outcome, expected);
}

/// Each is complete, and none is the answer.
#[tokio::test]
async fn endless_interim_answers_are_left_at_the_deadline() {
    let left = Arc::new(Notify::new());
    let seen = Arc::clone(&left);
    let addr = receiver(move |_, mut connection| {
        let left = Arc::clone(&left);
        async move {
            connection.read_request().await;
            let answers = b"HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n".repeat(64);
            while connection.write(&answers).await {}
            left.notify_one();
        }
    })
    .await;

    let outcome = attempt_with(briefly, &format!("http://{addr}/")).await;

    assert_eq!(outcome, failed(Failure::Timeout, None));
    soon(seen.notified()).await;
}
