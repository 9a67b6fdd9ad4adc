//! Processes that are told to end: soon, whoever is connected, and at once when told twice.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    program::{self, PROGRAMS},
    server::{Server, reserve_addr},
};

/// Below the 30 s that calls in flight are given.
const SOON: Duration = Duration::from_secs(20);

/// What a client of HTTP/2 says first, and its empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn a_core_does_not_wait_for_who_is_connected_but_calls_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let arguments = [
        format!("--database-url=sqlite://{}?mode=rwc", path("sqlite")),
        format!("--master-key-file={}", path("master.key")),
    ];
    program::json(
        program::command(&PROGRAMS.core)
            .arg("bootstrap")
            .args(&arguments),
    );
    let addr = reserve_addr();
    let health = reserve_addr();
    let more = [
        format!("--listen={addr}"),
        format!("--health-listen={health}"),
    ];
    let arguments = arguments.into_iter().chain(more).collect();
    let mut core = Server::new("core", &PROGRAMS.core, arguments, ("serving addr", 1));
    core.start().await;
    assert_eq!(ready(health).await, ("200".to_owned(), "ok\n".to_owned()));

    let _silent = TcpStream::connect(addr).await.unwrap();
    let mut greeted = TcpStream::connect(addr).await.unwrap();
    greeted.write_all(GREETING).await.unwrap();
    // Its own settings are core's first answer: it has taken the connection.
    greeted.read_exact(&mut [0; 9]).await.unwrap();
    let told = Instant::now();
    let status = core.terminate().await;

    assert_eq!(status.code(), Some(0));
    assert!(told.elapsed() < SOON, "{:?}", told.elapsed());
}

#[tokio::test]
async fn a_second_signal_ends_a_process_at_once() {
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let arguments = vec![
            format!("--listen={}", reserve_addr()),
            // By itself it would go on for an hour.
            "--drain-grace=1h".to_owned(),
        ];
        let ready = ("serving the REST API", 1);
        let mut gateway = Server::new("gateway", &PROGRAMS.gateway, arguments, ready);
        gateway.start().await;

        gateway.send("-TERM");
        gateway.printed("finishing what is in flight").await;
        gateway.send(signal);

        assert_eq!(gateway.ended().await.code(), Some(status), "{signal}");
    }
}

#[tokio::test]
async fn a_dispatcher_starts_before_any_core_and_is_ready_once_there_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let database = format!("--database-url=sqlite://{}?mode=rwc", path("sqlite"));
    let key = format!("--master-key-file={}", path("master.key"));
    let clients =
        program::json(program::command(&PROGRAMS.core).args(["bootstrap", &database, &key]));
    let client = &clients["dispatcher_client"];
    let (core_addr, health, gateway_addr) = (reserve_addr(), reserve_addr(), reserve_addr());
    let arguments = vec![
        format!("--core-url=http://{core_addr}"),
        format!("--client-key={}", client["api_key"].as_str().unwrap()),
        format!("--health-listen={health}"),
    ];
    let ready_line = ("serving /healthz and /readyz", 1);
    let mut dispatcher = Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, ready_line)
        .with_environment(
            "DELIVERY_CLIENT_SECRET",
            client["api_secret"].as_str().unwrap(),
        );
    let arguments = vec![
        format!("--core-url=http://{core_addr}"),
        format!("--listen={gateway_addr}"),
    ];
    let ready_line = ("serving the REST API", 1);
    let mut gateway = Server::new("gateway", &PROGRAMS.gateway, arguments, ready_line);
    let arguments = vec![database, key, format!("--listen={core_addr}")];
    let mut core = Server::new("core", &PROGRAMS.core, arguments, ("serving addr", 1));

    dispatcher.start().await;
    gateway.start().await;
    assert_eq!(
        ready(health).await,
        (
            "503".to_owned(),
            "there is no stream from any core\n".to_owned()
        )
    );
    assert_eq!(ready(gateway_addr).await.0, "503");
    core.start().await;
    dispatcher.printed("stream from core is open").await;

    assert_eq!(ready(health).await, ("200".to_owned(), "ok\n".to_owned()));
    becomes_ready(gateway_addr).await;
    for process in [&mut gateway, &mut dispatcher, &mut core] {
        assert_eq!(process.terminate().await.code(), Some(0));
    }
}

/// Waits until `/readyz` says so: whoever looks for a core looks again a moment later.
pub(crate) async fn becomes_ready(addr: SocketAddr) {
    let is_ready = async {
        while ready(addr).await.0 != "200" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let is_ready = tokio::time::timeout(Duration::from_mins(1), is_ready).await;
    assert!(is_ready.is_ok(), "{addr} does not become ready");
}

/// Status and body of `/readyz`.
pub(crate) async fn ready(addr: SocketAddr) -> (String, String) {
    ask(addr, "/readyz").await
}

/// What a health listener answers to a path: the status, and the body.
pub(crate) async fn ask(addr: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}
