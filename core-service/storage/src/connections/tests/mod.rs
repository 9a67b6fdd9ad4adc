//! Connections that end, are lost, or are used for too long.

mod refused;
mod retries;

use std::{
    path::Path,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use futures_util::poll;
use process::metrics::Exposition;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};

use super::*;
use crate::{connect, fixture, rows};

async fn connections(url: &str, max: u32) -> Connections {
    let target = connect::open(url).await.unwrap();
    Connections::new(target, max)
}

async fn number(connections: &Connections, sql: &str) -> i64 {
    rows::value(connections, sql).await.unwrap()
}

/// The server's process, as each connection has its own.
async fn process(connections: &Connections) -> i64 {
    number(connections, "SELECT pg_backend_pid()::bigint").await
}

/// Otherwise the insertion would be acknowledged, and lost with its connection.
#[tokio::test]
async fn a_connection_whose_begin_was_cancelled_is_not_used_again() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let (tested, other) = (connections(&url, 1).await, connections(&url, 1).await);
    let create = "CREATE TABLE inserted (number BIGINT)";
    other.execute_unprepared(create).await.unwrap();
    loop {
        // Opens the connection: the last one was closed if its `BEGIN` was cancelled.
        number(&tested, "SELECT 1::bigint").await;
        let mut begin = Box::pin(tested.begin());
        // Sends the statement, unless the machine is so slow that the connection is tested first.
        if let Poll::Ready(begun) = poll!(begin.as_mut()) {
            // It was answered at once.
            let (session, checkout) = begun.unwrap();
            checkout.end(session, false).await.unwrap();
            continue;
        }
        let open = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND state = 'idle in transaction'";
        let sent = async { while number(&other, open).await == 0 {} };
        if timeout(TEST_AFTER, sent).await.is_ok() {
            break;
        }
    }

    let insert = "INSERT INTO inserted VALUES (1)";
    tested.execute_unprepared(insert).await.unwrap();

    assert_eq!(number(&other, "SELECT count(*) FROM inserted").await, 1);
}

#[tokio::test]
async fn a_connection_is_used_again_after_success_error_and_cancellation() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = connections(&url, 1).await;
    let first = process(&connections).await;

    connections
        .execute_unprepared("SELECT 1 / 0")
        .await
        .unwrap_err();
    assert_eq!(process(&connections).await, first);

    {
        let mut read = pin!(number(&connections, "SELECT 1 FROM pg_sleep(0.1)"));
        assert!(poll!(read.as_mut()).is_pending());
    }
    assert_eq!(process(&connections).await, first);

    let (session, checkout) = connections.begin().await.unwrap();
    checkout.end(session, false).await.unwrap();
    assert_eq!(process(&connections).await, first);

    let (session, checkout) = connections.begin().await.unwrap();
    checkout.end(session, true).await.unwrap();
    assert_eq!(process(&connections).await, first);
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let (tested, other) = (connections(&url, 1).await, connections(&url, 1).await);
    let lost = process(&tested).await;
    let terminate = format!("SELECT pg_terminate_backend({lost})::int::bigint");
    assert_eq!(number(&other, &terminate).await, 1);

    while tested.execute_unprepared("SELECT 1").await.is_err() {}

    assert_ne!(process(&tested).await, lost);
}

/// Time passes for connections, and not for the database.
async fn advance(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// Two connections, both idle.
async fn two_idle_connections(url: &str) -> Connections {
    let connections = connections(url, 2).await;
    let (first, second) = (connections.begin().await, connections.begin().await);
    for (session, checkout) in [first.unwrap(), second.unwrap()] {
        checkout.end(session, true).await.unwrap();
    }
    assert_eq!(connections.0.status().available, 2);
    connections
}

#[tokio::test]
async fn a_connection_that_was_open_for_too_long_is_replaced() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = connections(&url, 1).await;
    let first = process(&connections).await;

    advance(MAX_LIFETIME).await;

    assert_ne!(process(&connections).await, first);
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_closed() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = two_idle_connections(&url).await;

    advance(MAX_IDLE).await;
    number(&connections, "SELECT 1::bigint").await;

    // Another task closes it.
    let closed = async {
        while connections.0.status().size > 1 {
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(READ_TIMEOUT, closed).await.is_ok());
}

#[tokio::test]
async fn an_operation_finds_that_idle_connections_are_lost_and_opens_another() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let (tested, other) = (two_idle_connections(&url).await, connections(&url, 1).await);
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle' AND pid <> pg_backend_pid()";
    assert!(number(&other, terminate).await >= 2);

    advance(TEST_AFTER).await;

    assert_eq!(number(&tested, "SELECT 1::bigint").await, 1);
    assert_eq!(tested.0.status().size, 1);
}

/// A deferred constraint is checked at the commit, after the row was sent.
#[tokio::test]
async fn a_commit_that_fails_after_a_row_fails_its_statement() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let connections = connections(&url, 1).await;
    let create = "CREATE TABLE kept (id BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED);
        INSERT INTO kept VALUES (1)";
    connections.execute_unprepared(create).await.unwrap();

    let insert = "INSERT INTO kept VALUES (1) RETURNING id";
    let insert = Statement::from_string(DbBackend::Postgres, insert);
    let inserted = connections.query_one_raw(insert).await;

    assert!(inserted.is_err(), "{inserted:?}");
    assert_eq!(number(&connections, "SELECT count(*) FROM kept").await, 1);
}

#[tokio::test]
async fn operations_in_progress_end_before_the_connections_are_closed() {
    let (directory, _storage) = fixture::sqlite().await;
    let connections = connections(&fixture::url(&directory), 2).await;
    let (session, checkout) = connections.begin().await.unwrap();
    let mut closing = pin!(connections.clone().close());
    assert!(poll!(closing.as_mut()).is_pending());

    checkout.end(session, true).await.unwrap();
    closing.await;

    let failed = connections.execute_unprepared("SELECT 1").await;
    assert_eq!(failed.unwrap_err(), CLOSED);
}

/// The name of a server's socket in its directory.
const SOCKET: &str = ".s.PGSQL.5432";

/// Forwards one connection from a socket in `directory` to one of `PostgreSQL`, and counts the
/// messages that the server answers at once: Sync and Query.
async fn forward(directory: &Path, server: &str, count: Arc<AtomicUsize>) {
    let listener = UnixListener::bind(directory.join(SOCKET)).unwrap();
    let server = UnixStream::connect(Path::new(server).join(SOCKET)).await;
    let (mut answers, mut server) = server.unwrap().into_split();
    tokio::spawn(async move {
        let (mut client, mut to_client) = listener.accept().await.unwrap().0.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut answers, &mut to_client).await });
        // The first message has no type.
        let mut kind = None;
        loop {
            let Ok(length) = client.read_u32().await else {
                return;
            };
            let mut message = vec![0; usize::try_from(length).unwrap() - 4];
            client.read_exact(&mut message).await.unwrap();
            server.write_all(kind.as_slice()).await.unwrap();
            server.write_u32(length).await.unwrap();
            server.write_all(&message).await.unwrap();
            if matches!(kind, Some(b'S' | b'Q')) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            kind = client.read_u8().await.ok();
        }
    });
}

#[tokio::test]
async fn a_statement_costs_one_round_trip_and_a_transaction_two_more() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let (_, server) = url.split_once("host=").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let round_trips = Arc::new(AtomicUsize::new(0));
    forward(directory.path(), server, Arc::clone(&round_trips)).await;
    let url = url.replace(server, directory.path().to_str().unwrap());
    // Otherwise the first message would ask for TLS.
    let url = format!("{url}&sslmode=disable");
    let connections = Connections::new(Target::of(&url).unwrap(), 1);
    let select = "SELECT 1::bigint";
    // Prepares it.
    number(&connections, select).await;

    round_trips.store(0, Ordering::Relaxed);
    for _ in 0..10 {
        assert_eq!(number(&connections, select).await, 1);
    }
    assert_eq!(round_trips.swap(0, Ordering::Relaxed), 10);

    let (session, checkout) = connections.begin().await.unwrap();
    let found: i64 = rows::value(&session, select).await.unwrap();
    checkout.end(session, true).await.unwrap();
    assert_eq!((found, round_trips.load(Ordering::Relaxed)), (1, 3));
}

#[tokio::test]
async fn connections_in_use_and_operations_that_wait_are_counted() {
    let (directory, _storage) = fixture::sqlite().await;
    let connections = connections(&fixture::url(&directory), 2).await;
    let mut exposition = Exposition::new();
    connections.register_metrics(exposition.registry());
    let assert_counts = async |used: u32, idle: u32, pending: u32, waited: u32| {
        let rendered = exposition.render().await;
        let pool = "db_client_connection_pool_name=\"sqlite\"";
        let count = format!("db_client_connection_count{{{pool},db_client_connection_state");
        for line in [
            format!("{count}=\"used\"}} {used}.0\n"),
            format!("{count}=\"idle\"}} {idle}.0\n"),
            format!("db_client_connection_pending_requests{{{pool}}} {pending}.0\n"),
        ] {
            assert!(rendered.contains(&line), "{line}{rendered}");
        }
        let count = format!("db_client_connection_wait_time_seconds_count{{{pool}}} ");
        let line = rendered.lines().find_map(|line| line.strip_prefix(&count));
        assert_eq!(line.unwrap_or("0"), waited.to_string());
    };

    assert_counts(0, 0, 0, 0).await;
    let first = connections.acquire().await.unwrap();
    assert_counts(1, 0, 0, 1).await;
    let second = connections.acquire().await.unwrap();
    {
        let mut waiting = pin!(connections.execute_unprepared("SELECT 1"));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert_counts(2, 0, 1, 2).await;
    }
    assert_counts(2, 0, 0, 2).await;
    first.finish(Ok::<_, DbErr>(())).unwrap();
    assert_counts(1, 1, 0, 2).await;
    drop(second);
}
