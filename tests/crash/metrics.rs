//! Metrics for operators, as scraped by Prometheus.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use hyper::Method;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    all_in_one::AllInOne,
    caller::{Caller, iri},
    cluster::{Cluster, credentials},
    exposition::{Exposition, Family},
    files::Files,
    health, one_processor,
    postgres::Postgres,
    program::PROGRAMS,
    reserved_addr::reserve_addr,
    server::Server,
    webhook_receiver::WebhookReceiver,
};

/// Longer than a program takes to record an outcome, and a core to read its state again.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How many requests with different ids are sent.
const IDS: usize = 200;

/// Exposed by a core over PostgreSQL only, which this machine may lack.
const MAY_BE_ABSENT: [&str; 1] = ["delivery_database_connections_refused_total"];

/// An all-in-one with these flags and a health listener.
pub(crate) async fn all_in_one(flags: Vec<String>) -> (AllInOne, SocketAddr) {
    let addr = reserve_addr();
    let flag = format!("--health-listen={addr}");
    let flags = [vec![flag], flags].concat();
    let platform = AllInOne::start_with_flags(flags).await;
    (platform, addr)
}

/// Waits until the metrics have these lines.
async fn wait_for(addr: SocketAddr, expected: &[&str]) -> Exposition {
    let missing = |scraped: &Exposition| -> Vec<_> {
        let lines: BTreeSet<_> = scraped.text.lines().collect();
        let missing = expected.iter().filter(|line| !lines.contains(*line));
        missing.map(|line| (*line).to_owned()).collect()
    };
    let reached = async {
        loop {
            let scraped = Exposition::scrape(addr).await;
            if missing(&scraped).is_empty() {
                return scraped;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if let Ok(scraped) = tokio::time::timeout(TIMEOUT, reached).await {
        return scraped;
    }
    let scraped = Exposition::scrape(addr).await;
    panic!("missing {:#?} in {}", missing(&scraped), scraped.text);
}

/// Creates four deliveries, one of them twice with the same key. Completes one, cancels another twice,
/// and completes the pickup of a third. One of two receivers is gone.
async fn use_platform(platform: &AllInOne) {
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let [healthy, gone] = [
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    ];
    gone.respond_with(410);
    for receiver in [&healthy, &gone] {
        shop.subscribe(receiver.url()).await;
    }
    let mut deliveries = Vec::new();
    for _ in 0..3 {
        deliveries.push(shop.create_delivery().await.unwrap());
    }
    let key = "the-same-key";
    for _ in 0..2 {
        shop.create_delivery_with_key(key).await.unwrap();
    }
    board.complete_delivery(&deliveries[0]).await;
    board.complete(iri(&deliveries[0]["pickup"])).await.unwrap();
    for _ in 0..2 {
        shop.cancel(iri(&deliveries[1])).await.unwrap();
    }
    board.complete(iri(&deliveries[2]["pickup"])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_was_done() {
    let _processor = one_processor().await;
    let (platform, addr) = all_in_one(Vec::new()).await;
    use_platform(&platform).await;

    let scraped = wait_for(
        addr,
        &[
            r#"http_server_request_duration_seconds_count{http_request_method="POST",http_route="/api/deliveries",http_response_status_code="201"} 5"#,
            r#"http_server_request_duration_seconds_count{http_request_method="PUT",http_route="/api/tasks/{id}/done",http_response_status_code="200"} 4"#,
            r#"http_server_request_duration_seconds_count{http_request_method="DELETE",http_route="/api/deliveries/{id}",http_response_status_code="204"} 2"#,
            "http_server_active_requests 0",
            r#"rpc_server_call_duration_seconds_count{rpc_method="delivery.v1.Deliveries/CreateDelivery",rpc_response_status_code="OK"} 5"#,
            "delivery_deliveries_created_total 4",
            "delivery_deliveries_completed_total 1",
            "delivery_deliveries_cancelled_total 1",
            r#"delivery_tasks_completed_total{type="pickup"} 2"#,
            r#"delivery_tasks_completed_total{type="dropoff"} 1"#,
            r#"delivery_deliveries{state="todo"} 2.0"#,
            r#"delivery_deliveries{state="completed"} 1.0"#,
            r#"delivery_deliveries{state="cancelled"} 1.0"#,
            "delivery_deliveries_late 0.0",
            r#"delivery_tasks{type="pickup",state="done"} 2.0"#,
            r#"delivery_tasks{type="dropoff",state="todo"} 2.0"#,
            "delivery_notifications_due 0.0",
            "delivery_notifications_leased 0.0",
            "delivery_notifications_oldest_due_age_seconds 0.0",
            "delivery_events_unsequenced 0.0",
            "delivery_events_lag_seconds 0.0",
            r#"delivery_notification_attempts_total{outcome="delivered"} 1"#,
            r#"delivery_notification_attempts_total{outcome="status"} 1"#,
            r#"delivery_notification_attempt_duration_seconds_count{outcome="delivered"} 1"#,
            r#"delivery_notification_attempt_duration_seconds_count{outcome="status"} 1"#,
            r#"delivery_webhooks_disabled_total{reason="gone"} 1"#,
            r#"delivery_webhooks_disabled_total{reason="failing"} 0"#,
            "delivery_dispatcher_notifications_in_flight 0",
            "delivery_dispatcher_capacity 256.0",
            "delivery_dispatcher_streams 1.0",
            r#"delivery_gateway_cores{state="up"} 1.0"#,
            r#"delivery_gateway_cores{state="down"} 0.0"#,
        ],
    )
    .await;

    let events = scraped.value("delivery_events_sequenced_total", &[]);
    assert!(events >= Some(5.0), "{events:?}");
    for name in [
        "delivery_group_commit_writes_count",
        "delivery_group_commit_writes_sum",
    ] {
        assert!(scraped.value(name, &[]) > Some(0.0), "{name}");
    }
    for operation in ["SELECT", "INSERT", "COMMIT"] {
        let labels = [("db_operation_name", operation), ("error_type", "")];
        let name = "db_client_operation_duration_seconds_count";
        assert!(scraped.value(name, &labels) > Some(0.0), "{operation}");
    }
    scraped.check();
}

/// The rows of the tables in the documentation, by name.
fn documented() -> BTreeMap<String, Family> {
    let page = include_str!("../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let quoted = |cell: &str| -> Vec<_> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let family = Family {
            kind: cells[2].to_owned(),
            labels: quoted(cells[3]).into_iter().collect(),
        };
        (quoted(cells[1]).remove(0), family)
    })
    .collect()
}

/// The metrics of an all-in-one that serves TLS, with each kind of upstream service, and those of a
/// core on PostgreSQL.
async fn exposed() -> BTreeMap<String, Family> {
    let files = Files::new();
    let identity = files.identity("rest", &files.authority("authority.pem"), "127.0.0.1");
    let closed = format!("http://{}", reserve_addr());
    let (platform, addr) = all_in_one(vec![
        format!("--tls-certificate={}", identity.certificate),
        format!("--tls-key={}", identity.key),
        format!("--geocoder=photon={closed}"),
        format!("--geocoder=photon={closed}/other"),
        format!("--osrm-url={closed}"),
    ])
    .await;
    let mut families = Exposition::scrape(addr).await.families();
    drop(platform);

    let Some(postgres) = Postgres::start() else {
        return families;
    };
    let (_files, _core, addr) = core_on(&postgres, &[]).await;
    let scraped = Exposition::scrape(addr).await;
    scraped.check();
    families.extend(scraped.families());
    families
}

/// A core with a health listener.
pub(crate) async fn core_on(postgres: &Postgres, flags: &[&str]) -> (Files, Server, SocketAddr) {
    let files = Files::new();
    let addr = reserve_addr();
    let mut arguments = vec![
        format!("--database-url={}", postgres.url()),
        format!("--master-key-file={}", files.path("master.key")),
        "--geocoder=none".to_owned(),
    ];
    PROGRAMS.bootstrap(&arguments);
    arguments.push(format!("--listen={}", reserve_addr()));
    arguments.push(format!("--health-listen={addr}"));
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let mut core = Server::core("core", arguments);
    core.start().await;
    (files, core, addr)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_documented_with_its_type_and_labels_and_every_documented_one_exists() {
    let _processor = one_processor().await;
    let exposed = exposed().await;

    let documented = documented();

    let names = |families: &BTreeMap<String, Family>| -> BTreeSet<_> {
        families
            .keys()
            .filter(|name| !MAY_BE_ABSENT.contains(&name.as_str()))
            .cloned()
            .collect()
    };
    assert_eq!(names(&exposed), names(&documented));
    for (name, family) in &exposed {
        let documented = &documented[name];
        assert_eq!(family.kind, documented.kind, "{name}");
        let is_documented = family.labels.is_subset(&documented.labels);
        assert!(is_documented, "{name}: {family:?} {documented:?}");
    }
}

/// Requests of every kind with an id of its own: known and unknown paths and methods, and calls.
async fn send_requests(shop: &Caller, id: &str) {
    for (method, path) in [
        (Method::GET, format!("/api/deliveries/{id}")),
        (Method::GET, format!("/api/tasks/{id}")),
        (Method::DELETE, format!("/api/deliveries/{id}")),
        (Method::PUT, format!("/api/deliveries/{id}")),
        (Method::GET, format!("/api/{id}")),
        (Method::GET, format!("/{id}?{id}={id}")),
        (Method::POST, format!("/errors/{id}")),
        (
            Method::from_bytes(format!("X{}", id.replace('-', "")).as_bytes()).unwrap(),
            format!("/{id}"),
        ),
    ] {
        let sent = shop.call(method, &path, &Value::Null).await;
        assert!(sent.is_err(), "{path}: {sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn series_are_bounded_and_contain_no_id_and_no_name() {
    let _processor = one_processor().await;
    let (platform, addr) = all_in_one(Vec::new()).await;
    let shop = platform.shop().await;
    let ids: Vec<_> = (0..=IDS).map(|_| Uuid::now_v7().to_string()).collect();
    send_requests(&shop, &ids[0]).await;
    let before = Exposition::scrape(addr).await;

    for id in &ids[1..] {
        send_requests(&shop, id).await;
    }

    let after = Exposition::scrape(addr).await;
    assert_eq!(after.series(), before.series(), "{}", after.text);
    let client = credentials(&platform.ready()["demo_client"]);
    let store = platform.ready()["store"].as_str().unwrap().to_owned();
    let secrets = [client.api_key, client.api_secret, store];
    for value in after.label_values() {
        let mut known = ids.iter().chain(&secrets);
        let found = known.find(|known| value.contains(known.as_str()));
        assert_eq!(found, None, "{value}");
        assert!(Uuid::parse_str(value).is_err(), "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_process_serves_its_metrics_at_its_own_listener_only() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let addrs = [reserve_addr(), cluster.gateway_health[0], reserve_addr()];
    let Cluster {
        cores: [core, _],
        dispatchers: [dispatcher, _],
        ..
    } = &mut cluster;
    for (server, addr) in [(core, addrs[0]), (dispatcher, addrs[2])] {
        server.terminate().await;
        server.add_argument(&format!("--health-listen={addr}"));
        server.start().await;
    }
    for addr in addrs {
        health::wait_until_ready(addr).await;
    }
    let gateway = cluster.shop().await.with_base_url(&cluster.gateway_urls[0]);
    gateway.create_delivery().await.unwrap();

    let own = [
        "rpc_server_call_duration_seconds",
        "http_server_request_duration_seconds",
        "delivery_notification_attempt_duration_seconds",
    ];
    for (addr, name) in addrs.into_iter().zip(own) {
        let families = Exposition::scrape(addr).await.families();
        for other in own {
            assert_eq!(
                families.contains_key(other),
                other == name,
                "{other} {name}"
            );
        }
    }
    let refused = gateway.get("/metrics").await;
    assert!(refused.is_err_and(|error| error.to_string().starts_with("404")));
}
