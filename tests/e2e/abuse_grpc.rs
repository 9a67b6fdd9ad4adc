//! Abusive gRPC against the real binary: callers without a token take no place from others.

use std::{io::Write, net::TcpStream};

use serde_json::json;

use crate::{
    abuse::{END_HEADERS, GROWTH, HEADERS, frame, http2, resident_kib, stream_ids},
    harness::{ApiClient, all_in_one::AllInOne},
};

const DATA: u8 = 0;

/// More on each connection than it may have, and in total more than all calls that core serves at a
/// time.
const CALLS: u32 = 1_500;
const CONNECTIONS: usize = 4;

/// Header fields of a `POST` to a path (RFC 7541), with a token that is none.
fn call(path: &str) -> Vec<u8> {
    let literal = |name: &[u8], value: &str| {
        let length = u8::try_from(value.len()).unwrap();
        [name, &[length], value.as_bytes()].concat()
    };
    [
        b"\x83\x86\x41\x01x".to_vec(),
        literal(b"\x04", path),
        literal(b"\x0f\x10", "application/grpc"),
        literal(b"\x00\x02te", "trailers"),
        literal(b"\x0f\x08", "Bearer none"),
    ]
    .concat()
}

/// Calls whose messages never end.
fn unfinished_calls(addr: &str, path: &str) -> Vec<TcpStream> {
    let call = call(path);
    let connections = (0..CONNECTIONS).map(|_| {
        let mut connection = http2(addr);
        for id in stream_ids(CALLS) {
            let mut frames = frame(HEADERS, END_HEADERS, id, &call);
            frames.extend(frame(DATA, 0, id, b"\0\0\0"));
            if connection.write_all(&frames).is_err() {
                break;
            }
        }
        connection
    });
    connections.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_calls_without_a_token_affect_no_other_client() {
    let directory = tempfile::tempdir().unwrap();
    let platform = AllInOne::start(directory.path(), &[]);
    let base_url = platform.text("/base_url").to_owned();
    let credentials = platform.demo_client();
    let addr = platform.text("/core_url").strip_prefix("http://").unwrap();
    let delivery = json!({
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 18:00" },
    });
    let before = resident_kib(platform.process.id());

    for path in [
        "/delivery.v1.Tokens/IssueToken",
        "/delivery.v1.Tasks/GetTask",
        "/grpc.health.v1.Health/Watch",
        "/delivery.v1.Unknown/Unknown",
    ] {
        let _connections = tokio::task::block_in_place(|| unfinished_calls(addr, path));
        for _ in 0..20 {
            // Panics unless a token is issued.
            let client = ApiClient::authorized(&base_url, &credentials, &["deliveries"]).await;
            let created = client.post("/api/deliveries", delivery.clone()).await;
            assert_eq!(created.status, 201, "{path}: {created:?}");
        }
        let grown = resident_kib(platform.process.id()).saturating_sub(before);
        assert!(grown < GROWTH, "{path}: {grown} KiB more");
    }

    assert!(platform.stop("-TERM").success());
}
