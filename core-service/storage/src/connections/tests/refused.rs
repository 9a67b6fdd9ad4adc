//! Connections that a server refuses, or does not accept yet.

use tokio::net::TcpSocket;

use super::*;
use crate::{Error, connect::RETRY_AFTER};

/// Connections of a role that may open one.
async fn limited_connections(url: &str, max: u32) -> Connections {
    let role = format!("limited_{}", uuid::Uuid::now_v7().simple());
    let create = format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 1");
    let other = connections(url, 1).await;
    other.execute_unprepared(&create).await.unwrap();
    let url = url.replace("//delivery@", &format!("//{role}@"));
    Connections::new(Target::of(&url).unwrap(), max)
}

#[tokio::test]
async fn operations_wait_for_an_open_connection_while_others_are_refused() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = limited_connections(&url, 4).await;
    let started = Instant::now();
    let (session, checkout) = connections.begin().await.unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let connections = connections.clone();
            tokio::spawn(async move { connections.execute_unprepared("SELECT 1").await })
        })
        .collect();
    let refused = || connections.metrics().refused.get();
    while refused() == 0 {
        tokio::task::yield_now().await;
    }

    checkout.end(session, true).await.unwrap();

    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
    // At first three at once, then one at a time.
    let later = started.elapsed().as_millis() / RETRY_AFTER.as_millis();
    assert!(u128::from(refused()) <= 3 + later, "{}", refused());
}

#[tokio::test]
async fn an_operation_without_a_connection_fails_with_the_reason_of_the_refusal() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = limited_connections(&url, 2).await;
    let (_session, _checkout) = connections.begin().await.unwrap();

    let failed = connections
        .execute_unprepared("SELECT 1")
        .await
        .unwrap_err();

    let reason = "too many connections for role";
    assert!(failed.to_string().contains(reason), "{failed}");
    let mut exposition = Exposition::new();
    connections.register_metrics(exposition.registry());
    let exposition = exposition.render().await;
    let timeouts = "timeouts_total{db_client_connection_pool_name=\"postgresql\"} 1";
    assert!(exposition.contains(timeouts), "{exposition}");
}

#[tokio::test]
async fn an_operation_fails_at_once_for_a_reason_other_than_a_refusal() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let missing = url.replace("//delivery@localhost/", "//delivery@localhost/missing_");
    let connections = Connections::new(Target::of(&missing).unwrap(), 1);

    let failed = connections
        .execute_unprepared("SELECT 1")
        .await
        .unwrap_err();

    assert!(failed.to_string().contains("does not exist"), "{failed}");
    assert_eq!(connections.metrics().refused.get(), 0);
}

/// A server that has not started. Its port is reserved while the socket exists.
fn starting() -> (TcpSocket, Target) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let target = Target::of(&format!("postgres://{addr}/delivery"));
    (socket, target.unwrap())
}

#[tokio::test]
async fn a_session_waits_for_a_server_that_does_not_listen_yet_but_for_no_other_one() {
    let (_socket, starting) = starting();
    let begun = timeout(Duration::from_millis(100), starting.session()).await;
    assert!(begun.is_err(), "it waits for up to {ACQUIRE_TIMEOUT:?}");

    let directory = tempfile::tempdir().unwrap();
    let missing = Target::of(&format!("sqlite://{}/missing", directory.path().display()));
    let begun = timeout(ACQUIRE_TIMEOUT / 2, missing.unwrap().session()).await;
    let error = begun.expect("it does not wait").unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn an_operation_waits_for_a_server_that_does_not_listen_yet() {
    let (_socket, starting) = starting();
    let connections = Connections::new(starting, 1);

    let begun = timeout(Duration::from_millis(100), connections.begin()).await;

    assert!(begun.is_err(), "it waits for up to {ACQUIRE_TIMEOUT:?}");
}
