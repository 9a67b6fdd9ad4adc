//! Graceful shutdown: prompt although clients are connected, immediate at the second signal; and
//! programs that start before any core.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    SLACK,
    files::Files,
    health::{get, readiness, wait_until_ready},
    program::PROGRAMS,
    reserved_addr::reserve_addr,
    server::Server,
};

/// Less than the 30 s that calls in flight may take to drain.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The connection preface of an HTTP/2 client, with empty settings.
const CONNECTION_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn a_core_does_not_wait_for_idle_connections() {
    let files = Files::new();
    let (mut arguments, _) = files.bootstrap();
    let addr = reserve_addr();
    let health = reserve_addr();
    arguments.extend([
        format!("--listen={addr}"),
        format!("--health-listen={health}"),
        "--geocoder=none".to_owned(),
    ]);
    let mut core = Server::core("core", arguments);
    core.start().await;
    assert_eq!(
        readiness(health).await,
        ("200".to_owned(), "ok\n".to_owned())
    );

    let _silent = TcpStream::connect(addr).await.unwrap();
    let mut idle = TcpStream::connect(addr).await.unwrap();
    idle.write_all(CONNECTION_PREFACE).await.unwrap();
    // Core's settings frame: it has accepted the connection.
    idle.read_exact(&mut [0; 9]).await.unwrap();
    let signalled = Instant::now();
    let status = core.terminate().await;

    assert_eq!(status.code(), Some(0));
    assert!(
        signalled.elapsed() < SHUTDOWN_TIMEOUT,
        "{:?}",
        signalled.elapsed()
    );
}

#[tokio::test]
async fn a_second_signal_exits_a_process_at_once() {
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let arguments = vec![
            format!("--listen={}", reserve_addr()),
            // With one signal it would drain for an hour.
            "--drain-grace=1h".to_owned(),
        ];
        let mut gateway = Server::gateway("gateway", arguments);
        gateway.start().await;

        gateway.signal("-TERM");
        gateway.wait_for_line("draining work in flight").await;
        let signalled = Instant::now();
        gateway.signal(signal);

        assert_eq!(
            gateway.wait_for_exit().await.code(),
            Some(status),
            "{signal}"
        );
        let exited_after = signalled.elapsed();
        assert!(exited_after < SLACK, "{signal}: {exited_after:?}");
    }
}

/// SIGHUP is sent when the terminal of a process is closed.
#[tokio::test]
async fn a_process_drains_at_sighup_unless_it_was_started_to_ignore_it() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = vec![
        format!("--data-dir={}", directory.path().display()),
        "--rest-listen=127.0.0.1:0".to_owned(),
        "--core-listen=127.0.0.1:0".to_owned(),
    ];
    let mut all_in_one = Server::new("delivery", &PROGRAMS.delivery, arguments, ("ready: ", 1));
    all_in_one.start().await;
    // The shell sends one, and the kernel another.
    all_in_one.signal("-HUP");
    all_in_one.signal("-HUP");
    all_in_one.wait_for_line("draining work in flight").await;
    assert_eq!(all_in_one.wait_for_exit().await.code(), Some(0));
    assert!(!directory.path().join("ready.json").exists());

    let gateway_arguments = |addr| vec![format!("--listen={addr}"), "--drain-grace=1ms".to_owned()];
    let mut gateway = Server::gateway("gateway", gateway_arguments(reserve_addr()));
    gateway.start().await;
    gateway.signal("-HUP");
    assert_eq!(gateway.wait_for_exit().await.code(), Some(0));

    // Like `nohup`.
    let addr = reserve_addr();
    let ignoring = ["-c", "trap '' HUP; exec \"$@\"", "sh"].map(str::to_owned);
    let program = PROGRAMS.gateway.to_str().unwrap().to_owned();
    let arguments = [&ignoring[..], &[program], &gateway_arguments(addr)].concat();
    let ready = ("serving the REST API", 1);
    let mut gateway = Server::new("gateway", Path::new("/bin/sh"), arguments, ready);
    gateway.start().await;
    gateway.signal("-HUP");
    assert_eq!(get(addr, "/healthz").await.0, "200");
    assert_eq!(gateway.terminate().await.code(), Some(0));
}

#[tokio::test]
async fn a_dispatcher_starts_without_a_core_and_is_ready_once_one_has_started() {
    let files = Files::new();
    let (mut core_arguments, clients) = files.bootstrap();
    let client = &clients["dispatcher_client"];
    let (core_addr, health, gateway_addr) = (reserve_addr(), reserve_addr(), reserve_addr());
    let arguments = vec![
        format!("--core-url=http://{core_addr}"),
        format!("--client-key={}", client["api_key"].as_str().unwrap()),
        format!("--health-listen={health}"),
    ];
    let ready = ("serving /healthz and /readyz", 1);
    let mut dispatcher = Server::new("dispatcher", &PROGRAMS.dispatcher, arguments, ready)
        .with_variable(
            "DELIVERY_CLIENT_SECRET",
            client["api_secret"].as_str().unwrap(),
        );
    let arguments = vec![
        format!("--core-url=http://{core_addr}"),
        format!("--listen={gateway_addr}"),
    ];
    let mut gateway = Server::gateway("gateway", arguments);
    core_arguments.extend([
        format!("--listen={core_addr}"),
        "--geocoder=none".to_owned(),
    ]);
    let mut core = Server::core("core", core_arguments);

    dispatcher.start().await;
    gateway.start().await;
    assert_eq!(
        readiness(health).await,
        (
            "503".to_owned(),
            "no open stream from any core\n".to_owned()
        )
    );
    assert_eq!(readiness(gateway_addr).await.0, "503");
    core.start().await;
    dispatcher.wait_for_line("stream from core is open").await;

    assert_eq!(
        readiness(health).await,
        ("200".to_owned(), "ok\n".to_owned())
    );
    wait_until_ready(gateway_addr).await;
    for process in [&mut gateway, &mut dispatcher, &mut core] {
        // Sent when the terminal of a process is closed.
        process.signal("-HUP");
        assert_eq!(process.wait_for_exit().await.code(), Some(0));
    }
}
