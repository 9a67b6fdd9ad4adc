//! When a connection ends, and what gives way.

use std::net::Ipv4Addr;

use process::metrics::Counters;
use tokio::time::advance;

use super::*;

const REQUEST: usize = 10;
const SECOND: Duration = Duration::from_secs(1);
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(10),
    idle: Some(Duration::from_mins(1)),
    unread: Duration::from_secs(30),
};

fn connection() -> Arc<Connection> {
    let pool = || Pool::new(10 * REQUEST, 10 * REQUEST, Counters::new("reason", &[]), "");
    let peer = Ipv4Addr::LOCALHOST.into();
    let permit = pool()
        .take(peer, 1, Usage::Idle, CancellationToken::new())
        .unwrap();
    Connection::new(peer, permit, CancellationToken::new(), pool(), TIMEOUTS)
}

/// What is to be done after this time, and not a second before.
async fn due(connection: &Connection, seconds: u32) -> Check {
    advance(SECOND * (seconds - 1)).await;
    let before = connection.check(Instant::now());
    assert!(matches!(before, Check::Again(_)), "{before:?}");
    advance(SECOND).await;
    connection.check(Instant::now())
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_the_idle_timeout_and_aborted_after_it_again() {
    for is_http2 in [false, true] {
        let connection = connection();
        drop(connection.begin(connection.peer, is_http2, REQUEST));

        assert_eq!(due(&connection, 60).await, Check::Close);
        connection.set_closing();
        assert_eq!(due(&connection, 60).await, Check::Abort);
    }
}

#[tokio::test]
async fn a_request_beyond_the_share_of_its_client_gets_no_permit_and_the_others_go_on() {
    for is_http2 in [false, true] {
        let connection = connection();
        let request = || connection.begin(connection.peer, is_http2, REQUEST);
        let begun: Vec<_> = (0..10).map(|_| request()).collect();

        let refused = request();

        assert!(!refused.is_admitted());
        assert_eq!(refused.ended.is_cancelled(), is_http2);
        let is_ended =
            |exchange: &Arc<Exchange>| !exchange.is_admitted() || exchange.ended.is_cancelled();
        assert!(!begun.iter().any(is_ended) && !connection.ended.is_cancelled());
        drop((begun, refused));
        assert!(request().is_admitted());
    }
}

#[tokio::test]
async fn a_connection_whose_request_is_executed_is_evicted_after_all_others() {
    let pool = |limit| Pool::new(limit, limit, Counters::new("reason", &[]), "");
    let (connections, memory, peer) = (pool(4), pool(10 * REQUEST), Ipv4Addr::LOCALHOST.into());
    let [executing, receiving, responding, idle] = [(); 4].map(|()| {
        let ended = CancellationToken::new();
        let permit = connections.take(peer, 1, Usage::Idle, ended.clone());
        let memory = Arc::clone(&memory);
        Connection::new(peer, permit.unwrap(), ended, memory, TIMEOUTS)
    });
    let begun = [&executing, &receiving, &responding].map(|of| of.begin(peer, false, REQUEST));
    begun[0].enter(Phase::Executing);
    begun[2].enter(Phase::Executing);
    begun[2].enter(Phase::Responding);
    begun[2].enter(Phase::Executing);

    let mut of_others = Vec::new();
    for expected in [
        [true, false, false, false],
        [true, true, false, false],
        [true, true, true, false],
    ] {
        let other = IpAddr::from([192, 0, 2, u8::try_from(of_others.len()).unwrap()]);
        let permit = connections.take(other, 1, Usage::Kept, CancellationToken::new());
        of_others.push(permit.unwrap());
        let ended = [&idle, &receiving, &responding, &executing];
        assert_eq!(ended.map(|of| of.ended.is_cancelled()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_request_in_flight_is_not_idle() {
    let connection = connection();
    let exchange = connection.begin(connection.peer, false, REQUEST);
    advance(600 * SECOND).await;
    let check = connection.check(Instant::now());
    assert!(matches!(check, Check::Again(_)), "{check:?}");

    drop(exchange);
    assert_eq!(due(&connection, 60).await, Check::Close);
}

#[tokio::test(start_paused = true)]
async fn responses_wait_for_those_before_them_to_be_written_and_not_for_ever() {
    let connection = connection();
    let respond = async || {
        let response = connection.wait_for_write();
        timeout(Duration::ZERO, response).await.is_ok()
    };
    for _ in 0..2 {
        for _ in 0..MAX_UNWRITTEN {
            assert!(respond().await);
        }
        assert!(!respond().await);
        connection.write();
    }
    while respond().await {}

    let started = Instant::now();
    connection.wait_for_write().await;
    assert_eq!(started.elapsed(), TIMEOUTS.unread);
    assert!(connection.ended.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn every_head_and_the_preface_must_be_complete_in_time() {
    let silent = connection();
    assert_eq!(due(&silent, 10).await, Check::Abort);

    let http1 = connection();
    http1.receive(b"GET / HTTP/1.1");
    drop(http1.begin(http1.peer, false, REQUEST));
    advance(30 * SECOND).await;
    http1.receive(b"G");
    http1.receive(b"E");
    assert_eq!(due(&http1, 10).await, Check::Abort);

    let half = connection();
    half.receive(&PREFACE[..20]);
    assert_eq!(due(&half, 10).await, Check::Abort);

    let http2 = connection();
    for bytes in [&PREFACE[..20], &PREFACE[20..], b"settings"] {
        http2.receive(bytes);
    }
    assert_eq!(due(&http2, 60).await, Check::Close);
}
