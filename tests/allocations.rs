//! How often a request allocates memory, which depends little on how busy the machine is: only background
//! tasks allocate meanwhile. The program itself has another allocator; this one counts.
#![expect(clippy::unwrap_used, reason = "a panic fails the test and shows where")]
#![expect(clippy::print_stdout, reason = "the counts are for the next bounds")]

use std::{
    alloc::System,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use delivery::{Clock, Credentials, Platform, Settings};
use jiff::Timestamp;
use process::command_line;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio_util::sync::CancellationToken;

/// How many requests are counted, after as many that fill caches.
const REQUESTS: usize = 50;

/// Larger than any response of the test.
const RESPONSE_BYTES: usize = 256 * 1024;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A connection that does not allocate while it sends a request and reads the response.
struct Connection {
    stream: TcpStream,
    response: Vec<u8>,
}

impl Connection {
    fn open(base_url: &str) -> Self {
        let addr = base_url.strip_prefix("http://").unwrap();
        Self {
            stream: TcpStream::connect(addr).unwrap(),
            response: vec![0; RESPONSE_BYTES],
        }
    }

    /// The body of the response, whose status must be 2xx.
    fn send(&mut self, request: &[u8]) -> &[u8] {
        self.stream.write_all(request).unwrap();
        let mut read = 0;
        loop {
            let bytes = self.stream.read(&mut self.response[read..]).unwrap();
            assert!(
                bytes > 0,
                "the connection is closed, or the response too large"
            );
            read += bytes;
            let Some(body) = position(&self.response[..read], b"\r\n\r\n") else {
                continue;
            };
            let head = str::from_utf8(&self.response[..body]).unwrap();
            assert!(head.starts_with("HTTP/1.1 2"), "{head}");
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next());
            let end = body + length.unwrap().parse::<usize>().unwrap();
            if read >= end {
                return &self.response[body..end];
            }
        }
    }

    /// The allocations of a request, on average.
    fn allocations(&mut self, request: &[u8]) -> usize {
        for _ in 0..REQUESTS {
            self.send(request);
        }
        let counted = Region::new(ALLOCATOR);
        for _ in 0..REQUESTS {
            self.send(request);
        }
        let counted = counted.change();
        (counted.allocations + counted.reallocations) / REQUESTS
    }
}

/// Where the bytes after the first occurrence begin.
fn position(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    let found = bytes.windows(sought.len()).position(|part| part == sought);
    found.map(|start| start + sought.len())
}

fn request(line: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn token_request(client: &Credentials) -> Vec<u8> {
    let body = format!(
        "grant_type=client_credentials&scope=deliveries%20tasks&client_id={}&client_secret={}",
        client.api_key, client.api_secret
    );
    request(
        "POST /oauth2/token",
        "Content-Type: application/x-www-form-urlencoded",
        &body,
    )
}

/// Over SQLite. An eighth more than counted is allowed.
#[test]
fn requests_allocate_no_more_often_than_they_did() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        data_dir: directory.path().to_owned(),
        ..command_line::settings(&["--rest-listen=127.0.0.1:0", "--core-listen=127.0.0.1:0"])
    };
    let now: Timestamp = "2020-04-02T11:00:00+02:00".parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let started = Platform::start(settings, Clock::manual(now));
    let platform = runtime.block_on(Box::pin(started)).unwrap();
    let mut connection = Connection::open(&platform.base_url);
    let client = platform.demo.clone().unwrap().client.unwrap();
    let shutdown = CancellationToken::new();
    let running = runtime.spawn(platform.run(shutdown.clone()));

    let token_request = token_request(&client);
    let mut parse =
        |request: &[u8]| -> Value { serde_json::from_slice(connection.send(request)).unwrap() };
    let token = parse(&token_request);
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/ld+json",
        token["access_token"].as_str().unwrap()
    );
    let place = json!({ "address": "24 Rue de la Paix, 75002 Paris", "before": "tomorrow 13:00" });
    let draft = json!({ "dropoff": place }).to_string();
    let create = request("POST /api/deliveries", &headers, &draft);
    let calculate = request("POST /api/retail_prices/calculate", &headers, &draft);
    let created = parse(&create);
    let task = created["dropoff"]["@id"].as_str().unwrap();

    let get = |path: &str| request(&format!("GET {path}"), &headers, "");
    for (name, request, counted) in [
        ("a token", token_request, 176),
        ("a task", get(task), 155),
        ("a calculation of a price", calculate, 230),
        ("choices of time slots", get("/api/time_slots/choices"), 239),
        ("the creation of a delivery", create, 500),
        ("a list of 30 deliveries", get("/api/deliveries"), 2757),
    ] {
        let allocations = connection.allocations(&request);
        println!("{name}: {allocations} allocations");
        assert!(
            allocations <= counted * 9 / 8,
            "{name}: {allocations} allocations, {counted} before"
        );
    }

    shutdown.cancel();
    runtime.block_on(running).unwrap().unwrap();
}
