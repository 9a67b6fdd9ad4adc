//! Health checks over sockets, and among connections of peers that send nothing.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

struct FixedReadiness(Result<(), String>);

impl Readiness for FixedReadiness {
    async fn check(&self) -> Result<(), String> {
        self.0.clone()
    }
}

struct HangingReadiness;

impl Readiness for HangingReadiness {
    async fn check(&self) -> Result<(), String> {
        std::future::pending().await
    }
}

fn listener() -> HealthListener {
    let addr = ([127, 0, 0, 1], 0).into();
    let bound = HealthListener::bind(Some(addr));
    bound.unwrap().unwrap()
}

/// Status line and body of the response to one request over a socket.
async fn fetch(
    health: HealthListener,
    readiness: impl Readiness,
    request: &str,
) -> (String, String) {
    let addr = health.addr();
    let running = tokio::spawn(health.run(Arc::new(readiness), Exposition::default()));
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    running.abort();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap();
    (status.to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_connection_serves_one_request() {
    let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz";

    let (status, body) = fetch(listener(), FixedReadiness(Ok(())), request).await;

    assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", "ok\n"));
}

/// Connections that send nothing.
async fn silent_connections(addr: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut silent = Vec::new();
    for _ in 0..count {
        silent.push(TcpStream::connect(addr).await.unwrap());
    }
    silent
}

async fn assert_answered(mut probe: TcpStream) {
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    probe.write_all(request).await.unwrap();
    let mut response = String::new();
    probe.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
}

#[tokio::test]
async fn a_probe_replaces_the_connection_of_a_peer_that_sends_nothing() {
    let mut listener = listener();
    listener.connection_timeout = Duration::from_hours(1);
    listener.min_lifetime = Duration::from_millis(1);
    let addr = listener.addr();
    let running =
        tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(()))), Exposition::default()));
    let _silent = silent_connections(addr, 2 * MAX_CONNECTIONS).await;

    assert_answered(TcpStream::connect(addr).await.unwrap()).await;

    running.abort();
}

#[tokio::test]
async fn a_probe_that_has_just_connected_is_not_replaced() {
    let mut listener = listener();
    listener.min_lifetime = Duration::from_hours(1);
    let addr = listener.addr();
    let running =
        tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(()))), Exposition::default()));
    let probe = TcpStream::connect(addr).await.unwrap();
    // A few more than the maximum: where the queue is short, further ones would not connect.
    let _silent = silent_connections(addr, MAX_CONNECTIONS + 50).await;

    assert_answered(probe).await;

    running.abort();
}

#[tokio::test]
async fn a_connection_that_ends_makes_room_for_the_next() {
    let mut listener = listener();
    listener.connection_timeout = Duration::from_hours(1);
    listener.min_lifetime = Duration::from_hours(1);
    let addr = listener.addr();
    let running =
        tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(()))), Exposition::default()));
    let mut silent = silent_connections(addr, MAX_CONNECTIONS + 1).await;
    let probe = TcpStream::connect(addr).await.unwrap();

    silent.pop();

    assert_answered(probe).await;
    running.abort();
}

#[tokio::test]
async fn the_oldest_connection_is_kept_while_there_is_room() {
    let mut connections = Connections::default();
    for _ in 0..MAX_CONNECTIONS {
        connections.spawn(std::future::pending());
    }
    connections.make_room(Duration::ZERO).await;
    assert_eq!(connections.tasks.len(), MAX_CONNECTIONS);
    let (_, oldest) = connections.oldest_first[0].clone();

    connections.spawn(std::future::pending());
    connections.make_room(Duration::ZERO).await;

    assert_eq!(connections.tasks.len(), MAX_CONNECTIONS);
    assert!(oldest.is_finished());
}

#[tokio::test]
async fn a_peer_that_sends_nothing_is_disconnected() {
    let mut listener = listener();
    listener.connection_timeout = Duration::from_millis(5);
    let addr = listener.addr();
    let running =
        tokio::spawn(listener.run(Arc::new(FixedReadiness(Ok(()))), Exposition::default()));
    let mut silent = TcpStream::connect(addr).await.unwrap();

    let received = silent.read(&mut [0; 1]).await.unwrap();

    assert_eq!(received, 0);
    running.abort();
}

#[tokio::test]
async fn a_running_process_is_healthy_and_gives_the_reason_it_is_not_ready() {
    let ready = || FixedReadiness(Ok(()));
    let unready = || FixedReadiness(Err("the database does not answer".to_owned()));
    let unavailable = "HTTP/1.1 503 Service Unavailable";
    for (readiness, request, status, body) in [
        (ready(), "GET /healthz", "HTTP/1.1 200 OK", "ok\n"),
        (unready(), "GET /healthz", "HTTP/1.1 200 OK", "ok\n"),
        (ready(), "GET /readyz?verbose", "HTTP/1.1 200 OK", "ok\n"),
        (ready(), "HEAD /readyz", "HTTP/1.1 200 OK", ""),
        (
            unready(),
            "GET /readyz",
            unavailable,
            "the database does not answer\n",
        ),
        (
            ready(),
            "POST /readyz",
            "HTTP/1.1 405 Method Not Allowed",
            "method not allowed: use GET or HEAD\n",
        ),
    ] {
        let response = fetch(listener(), readiness, request).await;
        assert_eq!(response, (status.to_owned(), body.to_owned()), "{request}");
    }
}

#[tokio::test]
async fn metrics_are_served_even_by_a_process_that_is_not_ready() {
    let unready = || FixedReadiness(Err("the database does not answer".to_owned()));
    for (request, status, body) in [
        ("GET /metrics", "HTTP/1.1 200 OK", "# EOF\n"),
        (
            "GET /",
            "HTTP/1.1 404 Not Found",
            "not found: use /healthz, /readyz or /metrics\n",
        ),
        (
            "POST /metrics",
            "HTTP/1.1 405 Method Not Allowed",
            "method not allowed: use GET or HEAD\n",
        ),
    ] {
        let response = fetch(listener(), unready(), request).await;
        assert_eq!(response, (status.to_owned(), body.to_owned()), "{request}");
    }
}

#[tokio::test]
async fn a_readiness_check_that_hangs_means_not_ready() {
    let readiness = &HangingReadiness;
    let metrics = Exposition::default();
    let response = respond(&Method::GET, "/readyz", readiness, &metrics, Duration::ZERO).await;

    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}
