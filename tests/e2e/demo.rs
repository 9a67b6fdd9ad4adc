//! The demo of the all-in-one: what it permits, what a start without it has, and restarts after an
//! operator has changed its clients.

use std::path::Path;

use delivery::{RateLimitConfig, Settings};
use serde_json::{Value, json};
use tokio_stream::iter;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
};

use crate::harness::{
    Database, Platform,
    all_in_one::{AllInOne, run_delivery, run_delivery_json, stderr},
    grpc::with_token,
};

const HTTP: &str = "webhooks over http";
const LOOPBACK: &str = "webhooks to loopback";
const REFLECTION: &str = "reflection";
const NO_RATE_LIMIT: &str = "no rate limit";

/// The demo's permissions that a platform has.
async fn permissions(platform: &Platform) -> Vec<&'static str> {
    let client = platform.client().await;
    let post = async |url: &str| {
        let body = json!({ "event": "delivery.completed", "url": url });
        client.post("/api/webhooks", body).await
    };
    let http = post("http://example.com/").await;
    let loopback = post("https://127.0.0.1/").await;
    for response in [&http, &loopback] {
        assert!([201, 400].contains(&response.status), "{response:?}");
    }
    let (channel, token) = platform.connect(&["tasks:all"]).await;
    let requests = with_token(&token, iter([ServerReflectionRequest::default()]));
    let reflection = ServerReflectionClient::new(channel)
        .server_reflection_info(requests)
        .await;
    let permissions = [
        (HTTP, http.status == 201),
        (LOOPBACK, loopback.status == 201),
        (REFLECTION, reflection.is_ok()),
        (NO_RATE_LIMIT, !http.headers.contains_key("ratelimit")),
    ];
    let permitted = permissions.into_iter().filter(|(_, permitted)| *permitted);
    permitted.map(|(name, _)| name).collect()
}

type Adjust = fn(&mut Settings);

on_both_databases! {
    async fn the_demo_on_loopback_has_all_permissions(platform: &Platform) {
        let all = [HTTP, LOOPBACK, REFLECTION, NO_RATE_LIMIT];
        assert_eq!(permissions(platform).await, all);
    }
}

async fn permissions_with_a_public_url(database: Database, adjust: Adjust) -> Vec<&'static str> {
    let platform = Platform::start_with(database, |settings| {
        settings.public_url = Some("https://delivery.example".parse().unwrap());
        settings.demo_on_a_network = true;
        adjust(settings);
    })
    .await;
    let permissions = permissions(&platform).await;
    platform.stop().await;
    permissions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_with_a_public_url_has_a_permission_only_by_its_own_flag() {
    let cases: [(&[_], Adjust); 5] = [
        (&[], |_| {}),
        (&[HTTP], |settings| settings.egress.allow_http = true),
        (&[LOOPBACK], |settings| {
            settings.egress.allowed_networks = vec!["127.0.0.1".parse().unwrap()];
        }),
        (&[REFLECTION], |settings| settings.reflection = true),
        (&[NO_RATE_LIMIT], |settings| {
            settings.rate_limits = Some(RateLimitConfig::off());
        }),
    ];
    for (expected, adjust) in cases {
        let permissions = permissions_with_a_public_url(Database::sqlite(), adjust).await;
        assert_eq!(permissions, expected);
    }
    if let Some(database) = Database::postgres() {
        let permissions = permissions_with_a_public_url(database, |_| {}).await;
        assert!(permissions.is_empty(), "{permissions:?}");
    }
}

#[test]
fn a_demo_beyond_this_machine_is_refused_with_both_ways_out() {
    let data_dir = tempfile::tempdir().unwrap();
    for (flag, value) in [
        ("--rest-listen", "0.0.0.0:0"),
        ("--core-listen", "[::]:0"),
        ("--public-url", "https://delivery.example/"),
    ] {
        let free = match flag {
            "--rest-listen" => "--core-listen=127.0.0.1:0",
            _ => "--rest-listen=127.0.0.1:0",
        };
        let refused = run_delivery(data_dir.path(), &["start", flag, value, free]);
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(
            stderr(&refused),
            format!(
                "{flag} {value} would serve the demo shop beyond this machine: set --no-demo to start without it, or --demo-on-a-network yes\n"
            )
        );
    }
}

/// Runs a test on each database, with the flags that choose it.
fn on_each_database(test: impl Fn(&Path, &[&str])) {
    for database in Database::each() {
        let data_dir = tempfile::tempdir().unwrap();
        let flag = database.flag();
        test(data_dir.path(), &Vec::from_iter(flag.as_deref()));
    }
}

fn client_id(data_dir: &Path, name: &str) -> String {
    let clients = run_delivery_json(data_dir, &["clients", "list"]);
    let mut clients = clients.as_array().unwrap().iter();
    let client = clients.find(|client| client["name"] == name).unwrap();
    client["id"].as_str().unwrap().to_owned()
}

fn members(ready: &Value) -> Vec<&str> {
    ready
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_start_without_the_demo_has_no_demo_shop() {
    on_each_database(|data_dir, flags| {
        let running = AllInOne::start(data_dir, &[flags, &["--no-demo"]].concat());

        assert_eq!(
            members(&running.ready),
            ["base_url", "core_url", "operator_client", "pid"]
        );
        assert_eq!(run_delivery_json(data_dir, &["stores", "list"]), json!([]));
        assert!(running.stop("-TERM").success());
    });
}

#[test]
fn ready_json_omits_the_demo_client_once_its_secret_was_rotated_or_it_is_disabled() {
    on_each_database(|data_dir, flags| {
        let first = AllInOne::start(data_dir, flags);
        let store = first.text("/store").to_owned();
        let id = client_id(data_dir, "Demo shop");
        run_delivery_json(data_dir, &["clients", "rotate-secret", &id, "--overlap=0"]);
        assert!(first.stop("-TERM").success());
        let expected = ["base_url", "core_url", "operator_client", "pid", "store"];

        let second = AllInOne::start(data_dir, flags);
        assert_eq!(
            (members(&second.ready), second.text("/store")),
            (expected.to_vec(), &*store)
        );
        run_delivery_json(data_dir, &["clients", "disable", &id]);
        assert!(second.stop("-TERM").success());

        let third = AllInOne::start(data_dir, flags);
        assert_eq!(
            (members(&third.ready), third.text("/store")),
            (expected.to_vec(), &*store)
        );
        assert!(
            third.printed[0].starts_with("ready: "),
            "{:?}",
            third.printed
        );
    });
}

#[test]
fn a_command_after_the_operators_secret_was_rotated_says_where_to_set_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path();
    let first = AllInOne::start(data_dir, &[]);
    let id = client_id(data_dir, "Operator");
    run_delivery_json(data_dir, &["clients", "rotate-secret", &id, "--overlap=0"]);
    assert!(first.stop("-TERM").success());

    let second = AllInOne::start(data_dir, &[]);
    let listed = run_delivery(data_dir, &["stores", "list"]);

    assert_eq!(
        members(&second.ready),
        ["base_url", "core_url", "demo_client", "pid", "store"]
    );
    assert_eq!(
        stderr(&listed),
        format!(
            "the operator's secret in {} was replaced, or its client disabled: set --core-url {} \
             with the new credentials in DELIVERY_OPERATOR_KEY and DELIVERY_OPERATOR_SECRET\n",
            data_dir.display(),
            second.text("/core_url"),
        )
    );
}
