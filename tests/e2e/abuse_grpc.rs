//! Abusive gRPC against the real binary: neither callers without a token nor a client with one take
//! capacity from others, memory stays bounded, and core closes the connections of an attack.

use std::{io::Write, net::TcpStream, time::Duration};

use proto::{GetCurrentApiClientRequest, api_clients_client::ApiClientsClient};
use serde_json::json;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use crate::{
    harness::{
        ApiClient,
        all_in_one::{AllInOne, credentials},
        attacks::{
            DATA, EMPTY_MESSAGE, END_HEADERS, END_STREAM, HEADERS, MAX_GROWTH_KIB, NO_WINDOW,
            assert_served, begun_connections, call, continuation_flood, frame, http2_with,
            idle_connections, idle_connections_from, idle_frame_flood, open_files, ping_flood,
            reset_streams, resident_kib, settings_flood, stream_ids, wait_until_closed,
        },
        eventually,
        grpc::{self, with_token},
    },
    rest_tls::Identity,
};

/// More calls on each connection than core accepts there, and in total more than core serves at a
/// time.
const CALLS: u32 = 1_500;
const CONNECTIONS: usize = 2;

const GET_TASK: &str = "/delivery.v1.Tasks/GetTask";

/// A message that announces 4 GiB.
const HUGE_MESSAGE: &[u8] = &[0, 0xff, 0xff, 0xff, 0xff];

/// Calls on connections with these settings, each with the beginning of a message.
fn calls(
    addr: &str,
    settings: &[u8],
    call: &[u8],
    (flags, message): (u8, &[u8]),
) -> Vec<TcpStream> {
    let connections = (0..CONNECTIONS).map(|_| {
        let mut connection = http2_with(addr, settings);
        for id in stream_ids(CALLS) {
            let mut frames = frame(HEADERS, END_HEADERS, id, call);
            frames.extend(frame(DATA, flags, id, message));
            if connection.write_all(&frames).is_err() {
                break;
            }
        }
        connection
    });
    connections.collect()
}

/// Calls whose messages never end.
fn unfinished_calls(addr: &str, path: &str, token: &str) -> Vec<TcpStream> {
    calls(addr, b"", &call(path, token), (0, b"\0\0\0"))
}

/// A platform under attack, with a client that must be served.
struct Attacked {
    platform: AllInOne,
    addr: String,
    endpoint: Endpoint,
    channel: Channel,
    rest: ApiClient,
    memory: u64,
    files: usize,
}

impl Attacked {
    async fn start() -> Self {
        let platform = AllInOne::start_new(&[]);
        let core_url = platform.text("/core_url").to_owned();
        let endpoint = Endpoint::from_shared(core_url).unwrap();
        Self::new(platform, endpoint).await
    }

    async fn new(platform: AllInOne, endpoint: Endpoint) -> Self {
        let base_url = platform.text("/base_url");
        let scopes = ["deliveries", "tasks"];
        let rest = ApiClient::authorized(base_url, &platform.demo_client(), &scopes).await;
        let attacked = Self {
            addr: endpoint.uri().authority().unwrap().to_string(),
            channel: endpoint.connect().await.unwrap(),
            endpoint,
            rest,
            memory: resident_kib(platform.process.id()),
            files: open_files(platform.process.id()),
            platform,
        };
        // A first call prepares statements and fills caches.
        assert!(attacked.serves().await);
        attacked
    }

    /// Whether core serves a call on an open and on a new connection, and the gateway serves one.
    async fn serves(&self) -> bool {
        let Ok(new) = self.endpoint.connect().await else {
            return false;
        };
        for channel in [self.channel.clone(), new] {
            let request = with_token(self.rest.token(), GetCurrentApiClientRequest {});
            let mut clients = ApiClientsClient::new(channel);
            if clients.get_current_api_client(request).await.is_err() {
                return false;
            }
        }
        self.rest.get("/api/me").await.status == 200
    }

    async fn resists(
        &self,
        name: &str,
        attack: impl FnOnce(&str) -> Vec<TcpStream> + Send + 'static,
    ) {
        let process = self.platform.process.id();
        let addr = self.addr.clone();

        assert_served(name, move || attack(&addr), async || self.serves().await).await;

        let grown = resident_kib(process).saturating_sub(self.memory);
        assert!(grown < MAX_GROWTH_KIB, "{name}: {grown} KiB more");
        wait_until_closed(process, self.files).await;
    }

    /// The token of another client of the demo shop.
    async fn other_client(&self) -> String {
        let store = self.platform.text("/store");
        let create = ["clients", "create", "--store", store, "--name=Website"];
        let scopes = ["--scopes=deliveries tasks"];
        let created = self.platform.run_json(&[&create[..], &scopes].concat());
        let credentials = credentials(&created);
        let core_url = self.platform.text("/core_url");
        let (channel, token) =
            grpc::connect(core_url, &credentials, &["deliveries", "tasks"]).await;
        // Core caches the client, so that the attack needs no lookup.
        let request = with_token(&token, GetCurrentApiClientRequest {});
        let mut clients = ApiClientsClient::new(channel);
        clients.get_current_api_client(request).await.unwrap();
        token
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_calls_without_a_token_affect_no_other_client() {
    let platform = AllInOne::start_new(&[]);
    let base_url = platform.text("/base_url").to_owned();
    let credentials = platform.demo_client();
    let addr = platform.text("/core_url").strip_prefix("http://").unwrap();
    let delivery = json!({
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 18:00" },
    });
    let before = resident_kib(platform.process.id());

    for path in [
        "/delivery.v1.Tokens/IssueToken",
        GET_TASK,
        "/grpc.health.v1.Health/Watch",
        "/delivery.v1.Unknown/Unknown",
    ] {
        let _connections = tokio::task::block_in_place(|| unfinished_calls(addr, path, "none"));
        for _ in 0..20 {
            // Panics unless a token is issued.
            let client = ApiClient::authorized(&base_url, &credentials, &["deliveries"]).await;
            let created = client.post("/api/deliveries", delivery.clone()).await;
            assert_eq!(created.status, 201, "{path}: {created:?}");
        }
        let grown = resident_kib(platform.process.id()).saturating_sub(before);
        assert!(grown < MAX_GROWTH_KIB, "{path}: {grown} KiB more");
    }

    assert!(platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_token_take_no_capacity_from_other_callers() {
    let attacked = Attacked::start().await;

    let silent = |addr: &str| begun_connections(addr, 2_000, b"");
    attacked.resists("silent connections", silent).await;
    let begun = |addr: &str| begun_connections(addr, 2_000, b"PRI * HTTP/2.0\r\n");
    attacked.resists("half a preface", begun).await;
    attacked.resists("idle connections", idle_connections).await;
    // More than core has open.
    let many = |addr: &str| idle_connections_from([127, 0, 0, 2], addr, 4_500);
    attacked.resists("all connections", many).await;
    attacked.resists("pings", ping_flood).await;
    attacked.resists("settings", settings_flood).await;
    attacked.resists("idle frames", idle_frame_flood).await;
    let resets = |addr: &str| {
        reset_streams(addr, &call(GET_TASK, "none"));
        Vec::new()
    };
    attacked.resists("resets", resets).await;
    let headers = |addr: &str| {
        continuation_flood(addr);
        Vec::new()
    };
    attacked.resists("headers without end", headers).await;

    assert!(attacked.platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_token_takes_no_capacity_from_another() {
    let attacked = Attacked::start().await;
    // The attack is on flow control: more deliveries would only keep the database busy.
    for _ in 0..5 {
        attacked.platform.create_delivery();
    }
    let shop = attacked.other_client().await;
    let operator = attacked.platform.operator_client();
    let core_url = attacked.platform.text("/core_url");
    let (_, operator) = grpc::connect(core_url, &operator, &["tasks:all"]).await;

    let unfinished = call(GET_TASK, &shop);
    let attack = move |addr: &str| calls(addr, b"", &unfinished, (0, b"\0\0\0"));
    attacked.resists("unfinished calls", attack).await;
    let reset = call(GET_TASK, &shop);
    let attack = move |addr: &str| {
        reset_streams(addr, &reset);
        Vec::new()
    };
    attacked.resists("resets", attack).await;
    let huge = call("/delivery.v1.Deliveries/CreateDelivery", &shop);
    let attack = move |addr: &str| calls(addr, b"", &huge, (0, HUGE_MESSAGE));
    attacked.resists("huge messages", attack).await;
    let list = call("/delivery.v1.Deliveries/ListDeliveries", &shop);
    let attack = move |addr: &str| calls(addr, NO_WINDOW, &list, (END_STREAM, EMPTY_MESSAGE));
    attacked.resists("unread responses", attack).await;
    // From the first event on.
    let watch = call("/delivery.v1.Events/WatchEvents", &operator);
    let from_the_start = &[0, 0, 0, 0, 2, 8, 0];
    let attack = move |addr: &str| calls(addr, NO_WINDOW, &watch, (END_STREAM, from_the_start));
    attacked.resists("unread streams", attack).await;

    assert!(attacked.platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shops_client_has_a_limit_of_calls_in_flight() {
    let attacked = Attacked::start().await;
    let shop = attacked.other_client().await;
    let rest = attacked.rest.with_token(&shop);
    rest.get("/api/me").await.expect(200);
    let lists = call("/delivery.v1.Deliveries/ListDeliveries", &shop);
    let others = call(GET_TASK, &shop);

    for (path, call, message, limit) in [
        ("/api/me", others, (0, &b"\0\0\0"[..]), 128),
        ("/api/deliveries", lists, (END_STREAM, EMPTY_MESSAGE), 16),
    ] {
        let in_flight = calls(&attacked.addr, NO_WINDOW, &call, message);

        // Core reads them after they were sent.
        let wait_for_status = async |expected: u16| {
            let what = format!("{path} is not answered with {expected}");
            eventually(Duration::from_secs(30), &what, async || {
                let response = rest.get(path).await;
                (response.status == expected).then_some(response)
            })
            .await
        };
        let rejected = wait_for_status(429).await;
        assert_eq!(rejected.header("retry-after"), "1");
        assert_eq!(
            rejected.json["detail"],
            format!("the client has {limit} requests in flight: wait for their responses")
        );
        attacked.rest.get(path).await.expect(200);
        drop(in_flight);
        wait_for_status(200).await;
    }
    assert!(attacked.platform.stop("-TERM").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_tls_handshake_takes_no_capacity() {
    let directory = tempfile::tempdir().unwrap();
    let Identity { certificate, key } = Identity::create(directory.path(), "grpc");
    let flags = [
        format!("--grpc-tls-certificate={}", certificate.display()),
        format!("--grpc-tls-key={}", key.display()),
    ];
    let platform = AllInOne::start(directory.path(), &[&flags[0], &flags[1]]);
    let authority = Certificate::from_pem(std::fs::read(certificate).unwrap());
    let endpoint = Endpoint::from_shared(platform.grpc_url())
        .unwrap()
        .tls_config(ClientTlsConfig::new().ca_certificate(authority))
        .unwrap()
        .connect_timeout(Duration::from_secs(5));
    let attacked = Attacked::new(platform, endpoint).await;

    // More than a core has open connections; each with the beginning of a ClientHello.
    let begun = |addr: &str| begun_connections(addr, 4_500, b"\x16\x03\x01\x02\0\x01\0\x01");
    attacked.resists("half a handshake", begun).await;

    assert!(attacked.platform.stop("-TERM").success());
}
