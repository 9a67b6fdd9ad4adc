//! Abusive HTTP against the real binary: memory stays bounded and other clients are served.

use std::{
    io::{Read, Write},
    time::Duration,
};

use crate::harness::{
    ApiClient,
    all_in_one::AllInOne,
    attacks::{
        MAX_GROWTH_KIB, connect, continuation_flood, idle_connections, open_streams, ping_flood,
        rapid_reset, resident_kib, settings_flood,
    },
    raw,
};

/// Generous upper bound for each operation.
const TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abuse_uses_bounded_memory_and_does_not_affect_other_clients() {
    let platform = AllInOne::start_new(&[]);
    let base_url = platform.text("/base_url").to_owned();
    let credentials = platform.demo_client();
    let client = ApiClient::authorized(&base_url, &credentials, &["deliveries"]).await;
    let addr = base_url.strip_prefix("http://").unwrap().to_owned();
    let before = resident_kib(platform.process.id());

    for (name, abuse) in [
        ("slow headers", slow_headers as fn(&str)),
        ("slow bodies", slow_bodies),
        ("very many headers", many_headers),
        ("huge bodies", huge_bodies),
        ("streams opened and reset", rapid_reset),
        ("a flood of continuation frames", continuation_flood),
        ("streams left open", open_streams),
        ("a flood of pings", |addr| drop(ping_flood(addr))),
        ("a flood of settings", |addr| drop(settings_flood(addr))),
        ("idle connections", |addr| drop(idle_connections(addr))),
    ] {
        std::thread::scope(|scope| {
            let abuser = scope.spawn(|| abuse(&addr));
            let runtime = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| {
                runtime.block_on(async {
                    let mut served = 0;
                    while served < 5 || !abuser.is_finished() {
                        let response = tokio::time::timeout(TIMEOUT, client.get("/api/me")).await;
                        assert_eq!(response.expect(name).status, 200, "{name}");
                        served += 1;
                    }
                });
            });
        });
        let grown = resident_kib(platform.process.id()).saturating_sub(before);
        assert!(grown < MAX_GROWTH_KIB, "{name}: {grown} KiB more");
    }

    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_ambiguous_framing_closes_the_connection() {
    let platform = AllInOne::start_new(&[]);
    let base_url = platform.text("/base_url");
    // A proxy that parses the framing differently would see the last line as a second request.
    let request = |framing: &str| {
        format!(
            "POST /oauth2/token HTTP/1.1\r\nHost: x\r\n{framing}\r\n0\r\n\r\n\
             GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
    };
    let unambiguous = request("Content-Length: 5\r\n");
    let both = raw::send(base_url, unambiguous.as_bytes()).await.unwrap();
    assert!(both.body.ends_with(b"ok\n"));
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5x\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding : chunked\r\n",
        " Content-Length: 5\r\n",
    ] {
        let response = raw::send(base_url, request(framing).as_bytes()).await;

        let Some(response) = response else { continue };
        let body = String::from_utf8_lossy(&response.body);
        // With both lengths, the request itself is executed.
        let has_both = framing.contains("Content-Length") && framing.contains("chunked");
        assert!(has_both || response.status == 400, "{framing:?}: {body}");
        assert!(!body.contains("HTTP/1.1 "), "{framing:?}: {body}");
    }
    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_request_targets_get_regular_responses() {
    let platform = AllInOne::start_new(&[]);
    let base_url = platform.text("/base_url");
    let long = format!("/api/tasks/{}", "a".repeat(60_000));
    let too_long = format!("/api/tasks/{}", "a".repeat(200_000));
    for (target, statuses) in [
        // Absolute form, as sent to proxies (RFC 9112 §3.2.2).
        ("http://elsewhere.example/healthz", &[200][..]),
        ("/api/../healthz", &[404]),
        ("/%68ealthz", &[404]),
        ("/errors/%00", &[404]),
        ("/errors/\0", &[400]),
        ("/errors/a b", &[400]),
        ("*", &[404]),
        (&long, &[404, 401]),
        (&too_long, &[414, 431]),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

        let response = raw::send(base_url, request.as_bytes()).await.unwrap();

        let status = response.status;
        assert!(statuses.contains(&status), "{target:.40?}: {status}");
    }
    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_order() {
    let platform = AllInOne::start_new(&[]);
    let request = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let requests = [
        request("/errors/not_found", ""),
        request("/nowhere", ""),
        request("/healthz", "Connection: close\r\n"),
    ];

    let response = raw::send(platform.text("/base_url"), requests.concat().as_bytes()).await;

    let responses = response.unwrap();
    assert_eq!(responses.status, 200);
    let body = String::from_utf8_lossy(&responses.body);
    let second = body.find("HTTP/1.1 404").unwrap();
    let third = body.find("HTTP/1.1 200").unwrap();
    assert!(second < third && body.ends_with("ok\n"), "{body}");
    assert!(platform.stop("-TERM").success());
}

/// Connections with incomplete request heads.
fn slow_headers(addr: &str) {
    let mut streams: Vec<_> = (0..300).map(|_| connect(addr)).collect();
    for byte in b"GET /api HTTP/1.1\r\nX" {
        for stream in &mut streams {
            let _ = stream.write_all(&[*byte]);
        }
    }
}

/// Announced bodies of which only the beginning is sent.
fn slow_bodies(addr: &str) {
    let head = "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Content-Length: 1000000\r\n\r\n{";
    let mut streams: Vec<_> = (0..300).map(|_| connect(addr)).collect();
    for _ in 0..3 {
        for stream in &mut streams {
            let _ = stream.write_all(head.as_bytes());
        }
    }
}

fn many_headers(addr: &str) {
    for _ in 0..10 {
        let mut stream = connect(addr);
        let _ = stream.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\n");
        let _ = stream.write_all("X-Many: yes\r\n".repeat(100_000).as_bytes());
        let _ = stream.read(&mut [0; 1024]);
    }
}

/// One gigabyte in total if the server accepted it all.
fn huge_bodies(addr: &str) {
    let megabyte = "a".repeat(1 << 20);
    let chunk = format!("100000\r\n{megabyte}\r\n");
    for _ in 0..16 {
        let mut stream = connect(addr);
        let head = "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        for _ in 0..64 {
            if stream.write_all(chunk.as_bytes()).is_err() {
                break;
            }
        }
    }
}
