//! A stream whose token expires soon is reopened with a new token.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::Ordering,
};

use futures_util::FutureExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{
    Dispatcher, FakeCore, OK, capacity, config, config_with_limit, notification, responding,
};

/// In seconds. A token is renewed at half of it.
const LIFETIME: u32 = 2;

#[tokio::test]
async fn a_stream_is_half_closed_after_its_token_is_renewed_and_reopened_after_its_end() {
    for fails in [false, true] {
        let mut core = FakeCore::start_with_lifetime(LIFETIME).await;
        let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
        let (url, mut received) = responding(OK).await;
        let mut old = core.stream().await;
        core.token_request().await;
        assert_eq!(old.next_request().await, Some(capacity(2)));

        assert_eq!(old.next_request().await, None);

        assert!(core.token_request().now_or_never().is_some());
        // What core had leased to the old stream is still sent, and its outcome reported.
        old.send(vec![notification(1, &url)]).await;
        let outcome = core.reports.next_outcome().await;
        assert!(core.stream().now_or_never().is_none());
        if fails {
            old.fail().await;
        } else {
            drop(old);
        }
        let mut new = core.stream().await;
        assert_eq!(new.authorization, "Bearer token-2");
        assert_eq!(new.next_request().await, Some(capacity(1)));
        core.reports.acknowledge(&outcome);
        assert_eq!(new.next_request().await, Some(capacity(1)));
        dispatcher.shut_down_with(new).await;
        assert!(received.try_recv().is_ok());
        assert!(received.try_recv().is_err());
    }
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
    old.remaining_requests().await;
    drop(old);
    let new = core.stream().await;
    assert_eq!(new.authorization, "Bearer token-2");
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
