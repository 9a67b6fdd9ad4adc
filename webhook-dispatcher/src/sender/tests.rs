//! The deadline of an attempt, and failures that need a custom resolver: each is classified alike
//! with and without TLS.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use egress::Policy;
use futures_util::future::BoxFuture;
use process::metrics::Exposition;
use tokio_util::task::TaskTracker;

use super::*;
use crate::{connector, unresponsive_listener::UnresponsiveListener};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) type LookupResult = io::Result<Vec<IpAddr>>;

pub(crate) fn sample(url: String) -> Notification {
    Notification {
        name: "notifications/01932e5c-9f4a-7000-8000-00000000000a".to_owned(),
        url,
        secrets: vec!["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".to_owned()],
        event: "delivery.completed".to_owned(),
        object: "deliveries/1".to_owned(),
        ..Notification::default()
    }
}

/// A sender that resolves names with a function.
pub(crate) fn sender(
    config: &Config,
    look_up: impl Fn() -> BoxFuture<'static, LookupResult> + Send + Sync + 'static,
) -> Sender {
    let tls = connector::tls_config(rustls::RootCertStore::empty()).unwrap();
    Sender::new(config, tls, Resolver::with(move |_| look_up())).unwrap()
}

/// The failures of attempts to send to `shop.example` over http and https.
async fn failures(
    configure: fn(&mut Config),
    port: u16,
    look_up: fn() -> BoxFuture<'static, LookupResult>,
) -> [Failure; 2] {
    let mut config = Config {
        egress: Policy {
            allow_http: true,
            allowed_networks: vec!["127.0.0.0/8".parse().unwrap()],
            allowed_ports: vec![port],
            ..Policy::default()
        },
        ..Config::default()
    };
    configure(&mut config);
    let sender = sender(&config, look_up);

    let mut failures = [Failure::Unspecified; 2];
    for (failure, scheme) in failures.iter_mut().zip(["http", "https"]) {
        let url = format!("{scheme}://shop.example:{port}/");
        let outcome = sender.send(sample(url)).await;
        assert_eq!(outcome.status, None);
        *failure = outcome.failure();
    }
    failures
}

fn short_timeout(config: &mut Config) {
    config.send_timeout = Duration::from_millis(300);
}

/// Resolves every name to loopback.
fn to_loopback() -> BoxFuture<'static, LookupResult> {
    Box::pin(std::future::ready(Ok(vec![LOOPBACK.ip()])))
}

/// Ten seconds before the lease expires, or after half of the lease if that is later.
#[test]
fn an_attempt_times_out_before_its_lease_expires() {
    let config = Config {
        send_timeout: Duration::from_secs(15),
        ..Config::default()
    };
    let sender = sender(&config, to_loopback);
    for (lease, timeout) in [
        (None, 15.0),
        (Some(60.0), 15.0),
        (Some(25.0), 15.0),
        (Some(24.0), 14.0),
        (Some(20.0), 10.0),
        (Some(19.0), 9.5),
        (Some(12.0), 6.0),
        (Some(1.0), 0.5),
        (Some(0.0), 0.0),
    ] {
        let notification = Notification {
            lease: lease.map(|lease| Duration::from_secs_f64(lease).try_into().unwrap()),
            ..Notification::default()
        };

        let found = sender.timeout_of(&notification);

        assert_eq!(found, Duration::from_secs_f64(timeout), "{lease:?}");
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_a_dns_failure() {
    let unknown = || -> BoxFuture<'static, LookupResult> {
        Box::pin(std::future::ready(Err(io::Error::other("no such name"))))
    };
    let empty =
        || -> BoxFuture<'static, LookupResult> { Box::pin(std::future::ready(Ok(Vec::new()))) };
    for look_up in [unknown, empty] {
        assert_eq!(failures(|_| {}, 443, look_up).await, [Failure::Dns; 2]);
    }
}

#[tokio::test]
async fn a_hanging_lookup_times_out() {
    let failures = failures(short_timeout, 443, || Box::pin(std::future::pending())).await;
    assert_eq!(failures, [Failure::Timeout; 2]);
}

#[tokio::test]
async fn an_unresponsive_address_times_out() {
    let unresponsive = UnresponsiveListener::start(LOOPBACK).await;

    let failures = failures(short_timeout, unresponsive.addr.port(), to_loopback).await;

    assert_eq!(failures, [Failure::Timeout; 2]);
}

/// What shops test says nothing about the notifications of the platform.
#[tokio::test]
async fn an_attempt_is_counted_unless_it_is_a_test() {
    let sender = sender(&Config::default(), to_loopback);
    for test in [true, false, true] {
        let notification = Notification {
            test,
            ..sample("https://shop.example/".to_owned())
        };
        sender.send(notification).await;
    }

    let mut exposition = Exposition::default();
    let registry = exposition.registry();
    sender.metrics().register(1, TaskTracker::new(), registry);
    let metrics = exposition.render().await;

    let mut counts: Vec<_> = metrics
        .lines()
        .filter(|line| line.contains("_count{"))
        .collect();
    counts.sort_unstable();
    let expected = [
        r#"delivery_notification_attempt_duration_seconds_count{outcome="address_refused"} 1"#,
        r#"delivery_notification_attempt_duration_seconds_count{outcome="delivered"} 0"#,
    ];
    assert_eq!(counts, expected);
}
