//! What processes log: a line for each request, with ids that connect the processes, and nothing that
//! is secret or about a person.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::{caller::Caller, cluster::Cluster, eventually, one_processor, server::Server};

/// Values of a delivery that no process may log or export.
pub(crate) const NAME: &str = "Zyxw Vutsr";
pub(crate) const TELEPHONE: &str = "+33612345678";
pub(crate) const STREET: &str = "48 Rue de Rivoli";
pub(crate) const COMMENTS: &str = "Code 4711, third floor";
const UNKNOWN_SECRET: &str = "sk_not_ours";

async fn cluster() -> Option<Cluster> {
    let mut cluster = Cluster::start().await?;
    for server in cluster.servers() {
        server.terminate().await;
        server.add_argument("--log-format=json");
        server.start().await;
    }
    Some(cluster)
}

/// The objects that a process has logged.
fn lines(server: &Server) -> Vec<Value> {
    let output = server.output();
    let lines = output
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    lines.collect()
}

async fn wait_for_line(servers: &[Server], is_wanted: impl Fn(&Value) -> bool) -> Value {
    let timeout = Duration::from_secs(20);
    eventually(timeout, "no process logs the line", async || {
        servers.iter().flat_map(lines).find(&is_wanted)
    })
    .await
}

/// A delivery with these values.
pub(crate) fn draft(telephone: &str) -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": {
            "address": {
                "streetAddress": format!("{STREET}, 75004 Paris"),
                "contactName": NAME,
                "telephone": telephone,
            },
            "before": "tomorrow 13:00",
            "comments": COMMENTS,
        },
    })
}

/// Requests that succeed and that fail, with values that must not be logged in every part.
async fn send_requests(shop: &Caller) {
    shop.call(Method::POST, "/api/deliveries", &draft(TELEPHONE))
        .await
        .unwrap();
    let wrong = format!("{TELEPHONE}{TELEPHONE}");
    for (method, path, body) in [
        (Method::POST, "/api/deliveries".to_owned(), draft(&wrong)),
        (
            Method::GET,
            format!("/api/deliveries?q={NAME}").replace(' ', "%20"),
            Value::Null,
        ),
        (
            Method::GET,
            format!("/api/{STREET}").replace(' ', "%20"),
            Value::Null,
        ),
        (
            Method::GET,
            format!("/api/tasks/{STREET}").replace(' ', "%20"),
            Value::Null,
        ),
    ] {
        let sent = shop.call(method, &path, &body).await;
        assert!(sent.is_err(), "{path}: {sent:?}");
    }
    let mut unauthorized = shop.clone();
    unauthorized.set_token(UNKNOWN_SECRET);
    assert!(unauthorized.create_delivery().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_a_line_in_gateway_and_core_with_the_same_id_and_no_private_value() {
    let _processor = one_processor().await;
    let Some(cluster) = cluster().await else {
        return;
    };
    let shop = cluster.shop().await;

    send_requests(&shop).await;

    let created = wait_for_line(&cluster.gateways, |line| {
        line["http.route"] == "/api/deliveries" && line["http.status"] == 201
    })
    .await;
    assert_eq!(created["message"], "request served");
    assert_eq!(created["level"], "INFO");
    assert_eq!(created["http.method"], "POST");
    assert!(created["duration_ms"].is_f64(), "{created}");
    let id = &created["span"]["request.id"];
    let call = wait_for_line(&cluster.cores, |line| {
        line["span"]["request.id"] == *id && line["message"] == "call served"
    })
    .await;
    assert_eq!(call["rpc.method"], "delivery.v1.Deliveries/CreateDelivery");
    assert_eq!(call["rpc.status"], "OK");
    assert!(call["duration_ms"].is_f64(), "{call}");
    assert!(call["span"]["client.id"].is_string(), "{call}");
    let key = &cluster.shop_client.api_key;
    assert_eq!(created["span"]["client.key"], **key);
    wait_for_line(&cluster.gateways, |line| {
        line["http.route"] == "_OTHER" && line["http.status"] == 404
    })
    .await;

    let servers = cluster
        .gateways
        .iter()
        .chain(&cluster.cores)
        .chain(&cluster.dispatchers);
    for line in servers.flat_map(Server::output) {
        let private = [
            NAME,
            "Zyxw",
            TELEPHONE,
            &TELEPHONE[1..],
            STREET,
            "Rivoli",
            COMMENTS,
            UNKNOWN_SECRET,
            shop.token(),
            &cluster.shop_client.api_secret,
            &cluster.dispatcher_client.api_secret,
        ];
        for value in private {
            assert!(!line.contains(value), "{value}: {line}");
        }
    }
}
