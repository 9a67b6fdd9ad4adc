//! Abusive HTTP against the real binary: memory stays bounded and other clients are served.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::harness::{ApiClient, all_in_one::AllInOne, raw};

/// Generous upper bound for each operation.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The largest accepted growth of the process's memory, in KiB: the limit on buffered bodies, and
/// the same again for connections.
pub(super) const GROWTH: u64 = 192 * 1024;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
pub(super) const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;
/// `GET http://x/` in HPACK.
const GET: &[u8] = b"\x82\x86\x84\x41\x01x";
/// `POST http://x/`.
const POST: &[u8] = b"\x83\x86\x84\x41\x01x";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abuse_uses_bounded_memory_and_does_not_affect_other_clients() {
    let directory = tempfile::tempdir().unwrap();
    let platform = AllInOne::start(directory.path(), &[]);
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
    ] {
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let abuser = scope.spawn(|| {
                abuse(&addr);
                finished.store(true, Ordering::Relaxed);
            });
            let runtime = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| {
                runtime.block_on(async {
                    let mut served = 0;
                    while served < 5 || !(finished.load(Ordering::Relaxed) || abuser.is_finished())
                    {
                        let response = tokio::time::timeout(TIMEOUT, client.get("/api/me")).await;
                        assert_eq!(response.expect(name).status, 200, "{name}");
                        served += 1;
                    }
                });
            });
        });
        let grown = resident_kib(platform.process.id()).saturating_sub(before);
        assert!(grown < GROWTH, "{name}: {grown} KiB more");
    }

    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_ambiguous_framing_closes_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let platform = AllInOne::start(directory.path(), &[]);
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
        assert_eq!(response.status, 400, "{framing:?}: {body}");
        assert!(!body.contains("HTTP/1.1 200"), "{framing:?}: {body}");
    }
    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_request_targets_get_regular_responses() {
    let directory = tempfile::tempdir().unwrap();
    let platform = AllInOne::start(directory.path(), &[]);
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
    let directory = tempfile::tempdir().unwrap();
    let platform = AllInOne::start(directory.path(), &[]);
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

fn connect(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    stream
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

/// Announced bodies of which only a byte is sent.
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

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) fn http2(addr: &str) -> TcpStream {
    let mut stream = connect(addr);
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, b"")).unwrap();
    stream
}

/// The ids of client-initiated streams.
pub(super) fn stream_ids(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// CVE-2023-44487.
fn rapid_reset(addr: &str) {
    for _ in 0..5 {
        let mut stream = http2(addr);
        for id in stream_ids(10_000) {
            let mut frames = frame(HEADERS, END_HEADERS | END_STREAM, id, GET);
            frames.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
            if stream.write_all(&frames).is_err() {
                break;
            }
        }
    }
}

/// CVE-2024-27316 and similar attacks.
fn continuation_flood(addr: &str) {
    // A header of 16 KiB, repeated, never indexed.
    let mut header = b"\x10\x01x\x7f\xd1\x7e".to_vec();
    header.resize(16_000, b'a');
    for _ in 0..5 {
        let mut stream = http2(addr);
        let _ = stream.write_all(&frame(HEADERS, 0, 1, GET));
        for _ in 0..4_000 {
            if stream
                .write_all(&frame(CONTINUATION, 0, 1, &header))
                .is_err()
            {
                break;
            }
        }
    }
}

/// More concurrent requests than allowed, none of which completes.
fn open_streams(addr: &str) {
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut stream = http2(addr);
        for id in stream_ids(5_000) {
            if stream
                .write_all(&frame(HEADERS, END_HEADERS, id, POST))
                .is_err()
            {
                break;
            }
        }
        streams.push(stream);
    }
}

/// Resident memory of a process, in KiB; 0 if `/proc` is not available.
pub(super) fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map_or(0, |number| number.parse().unwrap())
}
