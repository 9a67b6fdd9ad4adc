//! A stream whose token expires soon is replaced by one with a new token.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::Ordering,
};

use proto::StreamRequest;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{
    Dispatcher, FakeCore, OK, config, config_with_limit, credit, notification, responding,
};

/// In seconds. A token is renewed at half of it.
const LIFETIME: u32 = 2;

/// Its core can send tests on the new stream before the old one ends.
#[tokio::test]
async fn a_stream_is_replaced_before_it_is_half_closed() {
    let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let (url, mut received) = responding(OK).await;
    let mut old = core.stream().await;
    assert_eq!(old.next_request().await, Some(credit(2)));

    let mut new = core.stream().await;

    assert_eq!(
        [&old.authorization, &new.authorization],
        ["Bearer token-1", "Bearer token-2"]
    );
    assert_eq!(new.next_request().await, Some(StreamRequest::default()));
    assert_eq!(old.next_request().await, None);
    // What core had leased to the old stream is sent, and reported on the new one.
    old.send(vec![notification(1, &url)]).await;
    new.send_test(notification(2, &url)).await;
    drop(old);
    let mut names = Vec::new();
    while names.len() < 2 {
        let request = new.next_request().await.unwrap();
        let tests = request.test_outcomes.into_iter();
        let outcomes = tests
            .filter_map(|test| test.outcome)
            .chain(request.outcomes);
        for outcome in outcomes {
            if !outcome.lease_token.is_empty() {
                new.acknowledge(&outcome).await;
            }
            names.push(outcome.name);
        }
    }
    names.sort();
    assert_eq!(names, [1, 2].map(|number| notification(number, "").name));
    dispatcher.shut_down_with(new).await;
    assert!(received.try_recv().is_ok() && received.try_recv().is_ok());
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn an_error_of_a_replaced_stream_does_not_end_the_new_one() {
    let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let old = core.stream().await;
    let mut new = core.stream().await;
    assert_eq!(new.next_request().await, Some(StreamRequest::default()));

    old.fail().await;

    assert_eq!(new.next_request().await, Some(credit(2)));
    dispatcher.shut_down_with(new).await;
}

#[tokio::test]
async fn a_stream_whose_new_token_is_not_issued_stays_open_and_the_dispatcher_ready() {
    let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let health = free.local_addr().unwrap();
    drop(free);
    let dispatcher = Dispatcher::bind(webhook_dispatcher::Config {
        health_listen: Some(health),
        ..config(&[&core])
    })
    .await;
    let mut old = core.stream().await;
    core.token_request().await;
    core.token_failures.store(2, Ordering::Relaxed);

    core.token_request().await;
    core.token_request().await;

    assert_eq!(readiness(health).await, "HTTP/1.1 200 OK");
    let (url, mut received) = responding(OK).await;
    old.send(vec![notification(1, &url)]).await;
    let outcome = old.next_outcome().await;
    old.acknowledge(&outcome).await;
    assert!(received.try_recv().is_ok());
    let new = core.stream().await;
    assert_eq!(new.authorization, "Bearer token-2");
    old.remaining_requests().await;
    assert_eq!(readiness(health).await, "HTTP/1.1 200 OK");
    drop(old);
    dispatcher.shut_down_with(new).await;
}

/// The status line of `/readyz`.
async fn readiness(health: SocketAddr) -> String {
    let mut connection = TcpStream::connect(health).await.unwrap();
    let request = b"GET /readyz HTTP/1.1\r\nhost: dispatcher\r\nconnection: close\r\n\r\n";
    connection.write_all(request).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    response.lines().next().unwrap().to_owned()
}
