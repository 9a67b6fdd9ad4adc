//! Traces: the tree of a delivery from its client to the receiver of its notification, what spans do
//! not contain, and a collector that hangs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Instant,
};

use hyper::Method;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::Value;

use crate::{
    SLACK,
    all_in_one::AllInOne,
    all_processors,
    caller::Caller,
    cluster::Cluster,
    collector::{Collector, Span},
    exposition::Exposition,
    log_lines::{COMMENTS, NAME, STREET, TELEPHONE, draft},
    one_processor,
    program::PROGRAMS,
    report,
    reserved_addr::reserve_addr,
    server::Server,
    webhook_receiver::WebhookReceiver,
};

const CREATION: &str = "00-11111111111111111111111111111111-aaaaaaaaaaaaaaaa-01";
const COMPLETION: &str = "00-22222222222222222222222222222222-bbbbbbbbbbbbbbbb-01";

/// The trace's id and the client's span.
fn ids(traceparent: &str) -> (&str, &str) {
    let mut parts = traceparent.split('-').skip(1);
    (parts.next().unwrap(), parts.next().unwrap())
}

/// Creates a delivery, completes it and returns the `traceparent` that the receiver got.
async fn deliver(shop: &Caller, board: &Caller) -> String {
    let receiver = WebhookReceiver::start().await;
    shop.subscribe(receiver.url()).await;
    let shop = shop.with_traceparent(CREATION);
    let created = shop
        .call(Method::POST, "/api/deliveries", &draft(TELEPHONE))
        .await;
    board
        .with_traceparent(COMPLETION)
        .complete_delivery(&created.unwrap())
        .await;
    let notification = receiver.next_notification().await;
    notification.header("traceparent").to_owned()
}

/// The span with this name, kind and parent, if there is one.
fn child<'a>(spans: &'a [Span], parent: &str, name: &str, kind: SpanKind) -> Option<&'a Span> {
    let mut spans = spans.iter();
    spans.find(|span| span.parent == parent && span.name == name && span.kind == kind)
}

/// The spans of one REST request: of the gateway, of its call, and of that call in core.
fn request<'a>(
    spans: &'a [Span],
    client: &str,
    route: &str,
    method: &str,
) -> Option<[&'a Span; 3]> {
    let rest = child(spans, client, route, SpanKind::Server)?;
    let call = child(spans, &rest.id, method, SpanKind::Client)?;
    let core = child(spans, &call.id, method, SpanKind::Server)?;
    Some([rest, call, core])
}

fn is_connected(spans: &[Span], client: &str) -> bool {
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).collect();
    spans
        .iter()
        .all(|span| span.parent == client || ids.contains(span.parent.as_str()))
}

fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Checks both traces. `insert` is the first word of the statement that inserts a delivery. Returns the
/// programs that exported a span of the completion.
async fn check(
    collector: &Collector,
    database: &str,
    insert: &str,
    received: &str,
) -> BTreeSet<String> {
    let (trace, client) = ids(CREATION);
    let method = "delivery.v1.Deliveries/CreateDelivery";
    let find = |spans: &[Span]| {
        let found = request(spans, client, "POST /api/deliveries", method)?;
        let [rest, call, core] = found.map(Span::clone);
        let statement = child(spans, &core.id, insert, SpanKind::Client)?.clone();
        is_connected(spans, client).then_some([rest, call, core, statement])
    };
    let spans = collector
        .wait_for(trace, |spans| find(spans).is_some())
        .await;
    let [rest, call, core, statement] = find(&spans).unwrap();
    let expected = attributes(&[
        ("http.request.method", "POST"),
        ("http.response.status_code", "201"),
        ("http.route", "/api/deliveries"),
        ("url.scheme", "http"),
    ]);
    assert_eq!(rest.attributes, expected);
    let expected = attributes(&[
        ("rpc.method", method),
        ("rpc.response.status_code", "OK"),
        ("rpc.system.name", "grpc"),
    ]);
    assert_eq!((&call.attributes, &core.attributes), (&expected, &expected));
    let expected = attributes(&[("db.operation.name", insert), ("db.system.name", database)]);
    assert_eq!(statement.attributes, expected);

    let (trace, client) = ids(COMPLETION);
    let method = "delivery.v1.Tasks/CompleteTask";
    let attempt = |spans: &[Span]| {
        let sent = spans.iter().find(|span| span.name == "POST")?;
        let core = spans.iter().find(|span| span.id == sent.parent)?;
        let is_core = core.name == method && core.kind == SpanKind::Server;
        let commit = child(spans, &core.id, "COMMIT", SpanKind::Client);
        (is_core && commit.is_some() && is_connected(spans, client)).then(|| sent.clone())
    };
    let spans = collector
        .wait_for(trace, |spans| {
            let route = "PUT /api/tasks/{id}/done";
            attempt(spans).is_some() && request(spans, client, route, method).is_some()
        })
        .await;
    let sent = attempt(&spans).unwrap();
    assert_eq!(ids(received), (trace, sent.id.as_str()));
    let name = sent.attributes["notification.name"].clone();
    let expected = attributes(&[
        ("http.request.method", "POST"),
        ("http.response.status_code", "204"),
        ("notification.attempt", "1"),
        ("notification.name", &name),
    ]);
    assert_eq!(sent.attributes, expected);
    spans.into_iter().map(|span| span.service).collect()
}

fn check_privacy(collector: &Collector, secrets: &[&str]) {
    let exports = collector.exports();
    let bytes = exports.iter().flat_map(prost::Message::encode_to_vec);
    let bytes: Vec<u8> = bytes.collect();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("/api/deliveries"), "{text}");
    for private in [&[NAME, TELEPHONE, STREET, COMMENTS, "/hook"], secrets].concat() {
        assert!(!text.contains(private), "{private}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_traced_from_its_client_to_the_receiver_on_sqlite() {
    let _processor = one_processor().await;
    let collector = Collector::start().await;
    let flag = collector.flag();
    let mut platform = AllInOne::start_with_flags(vec![flag]).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);

    let received = deliver(&shop, &board).await;

    let services = check(&collector, "sqlite", "INSERT", &received).await;
    assert_eq!(services, BTreeSet::from(["delivery".to_owned()]));
    assert!(platform.server.terminate().await.success());
    check_privacy(&collector, &[shop.token(), board.token()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_traced_through_all_processes_on_postgres_and_in_their_logs() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let collector = Collector::start().await;
    for server in cluster.servers() {
        server.terminate().await;
        server.add_argument(&collector.flag());
        server.add_argument("--log-format=json");
        server.start().await;
    }
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);

    let received = deliver(&shop, &board).await;

    let services = check(&collector, "postgresql", "WITH", &received).await;
    let programs = ["core-service", "rest-gateway", "webhook-dispatcher"];
    assert_eq!(services, programs.map(str::to_owned).into());
    let secret = &cluster.shop_client.api_secret;
    check_privacy(&collector, &[shop.token(), board.token(), secret]);
    let (trace, _) = ids(CREATION);
    for servers in [&cluster.gateways, &cluster.cores] {
        let lines = servers.iter().flat_map(Server::output);
        let lines = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let of_trace: Vec<_> = lines
            .filter(|line| line["span"]["trace.id"] == trace)
            .collect();
        assert_eq!(of_trace.len(), 1, "{of_trace:?}");
    }
}

/// The standard variable is not a setting of the platform.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_endpoint_nothing_is_exported_and_the_context_is_passed_on() {
    let _processor = one_processor().await;
    let collector = Collector::start().await;
    let variable = format!("OTEL_EXPORTER_OTLP_ENDPOINT={}", collector.url());
    let program = PROGRAMS.delivery.to_str().unwrap().to_owned();
    let mut platform = AllInOne::start_under(Path::new("env"), |_| vec![variable, program]).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);

    assert_eq!(deliver(&shop, &board).await, COMPLETION);

    assert!(platform.server.terminate().await.success());
    assert_eq!(collector.exports(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cannot_have_more_traces_exported_than_the_configured_share() {
    let _processor = one_processor().await;
    let collector = Collector::start().await;
    let flags = vec![collector.flag(), "--trace-sampling=0".to_owned()];
    let mut platform = AllInOne::start_with_flags(flags).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);

    let received = deliver(&shop, &board).await;

    let (trace, _) = ids(COMPLETION);
    assert_eq!(ids(&received).0, trace);
    assert!(received.ends_with("-00"), "{received}");
    assert!(platform.server.terminate().await.success());
    assert_eq!(collector.exports(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_delays_neither_requests_nor_shutdown() {
    const REQUESTS: u32 = 20;

    let _processors = all_processors().await;
    let collector = Collector::start_hanging().await;
    let health = reserve_addr();
    let flags = vec![collector.flag(), format!("--health-listen={health}")];
    let mut platform = AllInOne::start_with_flags(flags).await;
    let shop = platform.shop().await;
    collector.wait_for_export().await;

    let started = Instant::now();
    for _ in 0..REQUESTS {
        shop.create_delivery().await.unwrap();
    }
    let requests = started.elapsed();
    platform
        .server
        .wait_for_line("traces cannot be exported")
        .await;
    let metrics = Exposition::scrape(health).await.text;
    let lost = r#"delivery_trace_spans_lost_total{reason="export"} "#;
    let lost = metrics.lines().find_map(|line| line.strip_prefix(lost));
    assert!(lost.is_some_and(|lost| lost != "0"), "{lost:?}");
    shop.create_delivery().await.unwrap();

    let started = Instant::now();
    assert!(platform.server.terminate().await.success());
    let shutdown = started.elapsed();
    report(&format!(
        "with a collector that hangs, {REQUESTS} requests took {requests:?} and the shutdown {shutdown:?}"
    ));
    assert!(requests < SLACK * 2, "{requests:?}");
    assert!(shutdown < SLACK * 2, "{shutdown:?}");
}
