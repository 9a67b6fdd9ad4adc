//! A stream whose token expires soon is replaced by one with a new token.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::Ordering,
};

use proto::ReceiveRequest;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{
    Dispatcher, FakeCore, OK, capacity, config, config_with_limit, notification, responding, sample,
};

/// In seconds. A token is renewed at half of it.
const LIFETIME: u32 = 2;

/// So core always has a stream for test sends.
#[tokio::test]
async fn a_stream_is_replaced_before_it_is_half_closed() {
    let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let (url, mut received) = responding(OK).await;
    let mut old = core.stream().await;
    assert_eq!(old.next_request().await, Some(capacity(2)));

    let mut new = core.stream().await;

    assert_eq!(
        [&old.authorization, &new.authorization],
        ["Bearer token-1", "Bearer token-2"]
    );
    assert_eq!(new.next_request().await, Some(ReceiveRequest::default()));
    assert_eq!(old.next_request().await, None);
    // What core had leased to the old stream is still sent, and its outcome reported.
    old.send(vec![notification(1, &url)]).await;
    new.send(vec![sample(2, &url)]).await;
    drop(old);
    let outcomes = [new.next_outcome().await, new.next_outcome().await];
    for outcome in &outcomes {
        new.acknowledge(outcome);
    }
    let mut names = outcomes.map(|outcome| outcome.name);
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
    assert_eq!(new.next_request().await, Some(ReceiveRequest::default()));

    old.fail().await;

    assert_eq!(new.next_request().await, Some(capacity(2)));
    dispatcher.shut_down_with(new).await;
}

#[tokio::test]
async fn a_stream_whose_new_token_is_not_issued_stays_open_and_the_dispatcher_ready() {
    let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let health = free.local_addr().unwrap();
    drop(free);
    let dispatcher = Dispatcher::bind(&webhook_dispatcher::Config {
        health_listen: Some(health),
        ..config(&[&core])
    });
    let mut old = core.stream().await;
    core.token_request().await;
    core.token_failures.store(2, Ordering::Relaxed);

    core.token_request().await;
    core.token_request().await;

    assert_eq!(readiness(health).await, "HTTP/1.1 200 OK");
    let (url, mut received) = responding(OK).await;
    old.send(vec![notification(1, &url)]).await;
    let outcome = old.next_outcome().await;
    old.acknowledge(&outcome);
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
