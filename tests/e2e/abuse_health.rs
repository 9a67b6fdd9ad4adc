//! Abusive HTTP against the listener of health checks and metrics: probes are answered meanwhile.

use std::{io::Write as _, net::TcpStream};

use crate::harness::{
    all_in_one::AllInOne,
    attacks::{
        MAX_GROWTH_KIB, assert_served, begun_connections, connect, open_files, resident_kib,
        wait_until_closed,
    },
    raw, reserve_addr,
};

/// Heads without end, of 4 MB each.
fn huge_heads(addr: &str) -> Vec<TcpStream> {
    let headers = "X-Many: yes\r\n".repeat(5_000);
    let connections = (0..100).map(|_| {
        let mut connection = connect(addr);
        let _ = connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n");
        for _ in 0..64 {
            if connection.write_all(headers.as_bytes()).is_err() {
                break;
            }
        }
        connection
    });
    connections.collect()
}

/// Requests whose responses are not read.
fn unread_metrics(addr: &str) -> Vec<TcpStream> {
    let requests = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000);
    begun_connections(addr, 500, requests.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_answered_during_attacks_on_their_listener() {
    let directory = tempfile::tempdir().unwrap();
    let addr = reserve_addr().to_string();
    let health = format!("--health-listen={addr}");
    let platform = AllInOne::start(directory.path(), &[&health]);
    let base_url = format!("http://{addr}");
    let process = platform.process.id();
    let (memory, files) = (resident_kib(process), open_files(process));
    let probe = async || {
        for path in ["/healthz", "/readyz", "/metrics"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let response = raw::send(&base_url, request.as_bytes()).await;
            if response.is_none_or(|response| response.status != 200) {
                return false;
            }
        }
        true
    };

    for (name, attack) in [
        (
            "silent connections",
            (|addr| begun_connections(addr, 1_000, b"")) as fn(&str) -> Vec<TcpStream>,
        ),
        ("unfinished heads", |addr| {
            begun_connections(addr, 1_000, b"GET /healthz HTTP/1.1\r\nX")
        }),
        ("unfinished bodies", |addr| {
            let request = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{";
            begun_connections(addr, 1_000, request)
        }),
        ("huge heads", huge_heads),
        ("unread responses", unread_metrics),
    ] {
        let addr = addr.clone();
        assert_served(name, move || attack(&addr), &probe).await;
        let grown = resident_kib(process).saturating_sub(memory);
        assert!(grown < MAX_GROWTH_KIB, "{name}: {grown} KiB more");
        wait_until_closed(process, files).await;
    }

    assert!(platform.stop("-TERM").success());
}
