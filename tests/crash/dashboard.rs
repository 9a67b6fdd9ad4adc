//! Executes the queries of the Grafana dashboard on a real Prometheus.

use std::{
    net::SocketAddr,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    caller::{Caller, iri},
    files::Files,
    installed,
    metrics::{all_in_one, core_on},
    one_processor,
    postgres::Postgres,
    program, report,
    reserved_addr::reserve_addr,
    server::Server,
    webhook_receiver::WebhookReceiver,
};

const DASHBOARD: &str = include_str!("../../deploy/grafana/delivery.json");

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus/rules.yaml");

/// Several times the interval between scrapes, as Grafana chooses it.
const RATE_INTERVAL: &str = "10s";

/// Far longer than some scrapes take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A query of the dashboard.
#[derive(Debug)]
struct Query {
    expression: String,
    /// The labels that the panel's legend names.
    labels: Vec<String>,
}

fn queries() -> Vec<Query> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let query = |target: &Value| {
        let expression = target["expr"].as_str().unwrap();
        let legend = target["legendFormat"].as_str().unwrap().split("{{").skip(1);
        let labels = legend.map(|label| label.split("}}").next().unwrap().to_owned());
        Query {
            expression: expression.replace("$__rate_interval", RATE_INTERVAL),
            labels: labels.collect(),
        }
    };
    targets.flatten().map(query).collect()
}

/// Scrapes processes every second, and evaluates the rules of `deploy`.
async fn prometheus(scraped: &[SocketAddr]) -> (TempDir, Server, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("prometheus.yaml");
    let targets: Vec<_> = scraped.iter().map(ToString::to_string).collect();
    let config = json!({
        "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
        "rule_files": [RULES],
        "scrape_configs": [
            { "job_name": "delivery-core", "static_configs": [{ "targets": targets }] },
        ],
    });
    // JSON is YAML.
    std::fs::write(&file, config.to_string()).unwrap();
    let addr = reserve_addr();
    let data = directory.path().join("data");
    let arguments = vec![
        format!("--config.file={}", file.display()),
        format!("--storage.tsdb.path={}", data.display()),
        format!("--web.listen-address={addr}"),
    ];
    let ready = ("Server is ready to receive web requests", 1);
    let mut server = Server::new("prometheus", Path::new("prometheus"), arguments, ready);
    server.start().await;
    (directory, server, format!("http://{addr}"))
}

/// Whether a query returns a number with the labels of the legend.
fn has_data(prometheus: &str, query: &Query) -> bool {
    let mut promtool = Command::new("promtool");
    let output = promtool.args(["query", "instant", prometheus, &query.expression]);
    let output = program::output(output);
    let samples = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{query:?}: {errors}");
    let samples = samples.lines().filter_map(|line| line.split_once(" => "));
    let mut numbers = samples.filter(|(_, value)| !value.starts_with("NaN"));
    numbers.any(|(series, _)| {
        let mut labels = query.labels.iter();
        labels.all(|label| series.contains(&format!("{label}=\"")))
    })
}

/// Creates a delivery and completes it; creates another one and cancels it.
async fn complete_and_cancel(shop: &Caller, board: &Caller) {
    let completed = shop.create_delivery().await.unwrap();
    board.complete_delivery(&completed).await;
    let cancelled = shop.create_delivery().await.unwrap();
    shop.cancel(iri(&cancelled)).await.unwrap();
}

/// The platform has a core over each database, a certificate and a router that does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn each_query_of_the_dashboard_returns_data_of_a_platform_in_use() {
    let _processor = one_processor().await;
    if installed::find("prometheus", "the queries of the dashboard").is_none() {
        return;
    }
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (_core_files, _core, core_addr) = core_on(&postgres, &[]).await;
    let files = Files::new();
    let identity = files.identity("grpc", &files.authority("authority.pem"), "127.0.0.1");
    let (platform, addr) = all_in_one(vec![
        format!("--grpc-tls-certificate={}", identity.certificate),
        format!("--grpc-tls-key={}", identity.key),
        format!("--osrm-url=http://{}", reserve_addr()),
    ])
    .await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    shop.subscribe(receiver.url()).await;
    let (_directory, _server, prometheus) = prometheus(&[addr, core_addr]).await;

    let mut without_data = queries();
    let all = without_data.len();
    let started = Instant::now();
    while !without_data.is_empty() {
        assert!(
            started.elapsed() < TIMEOUT,
            "without data: {without_data:#?}"
        );
        complete_and_cancel(&shop, &board).await;
        without_data.retain(|query| !has_data(&prometheus, query));
    }
    report(&format!(
        "{all} queries of the dashboard returned data within {} s",
        started.elapsed().as_secs()
    ));
    assert!(all > 20, "{all}");
}
