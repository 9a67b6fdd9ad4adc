//! Why attempts fail at names and addresses that only a resolver of one's own can give: whether
//! over TLS or not, each failure has its reason.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use futures_util::future::BoxFuture;
use tokio::net::TcpSocket;

use super::*;
use crate::{silent_listener::SilentListener, trust};

const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

type Found = io::Result<Vec<IpAddr>>;

/// What comes of an attempt to send to `shop.example`, which stands for what it is told to, over
/// either scheme.
async fn failures(
    change: fn(&mut Config),
    port: u16,
    look_up: fn() -> BoxFuture<'static, Found>,
) -> [Failure; 2] {
    let mut config = Config {
        allow_http: true,
        allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..Config::default()
    };
    change(&mut config);
    let tls = trust::tls(rustls::RootCertStore::empty()).unwrap();
    let sender = Sender::new(&config, tls, Resolver::of(move |_| look_up())).unwrap();

    let mut failures = [Failure::Unspecified; 2];
    for (failure, scheme) in failures.iter_mut().zip(["http", "https"]) {
        let notification = Notification {
            name: "notifications/01932e5c-9f4a-7000-8000-00000000000a".to_owned(),
            url: format!("{scheme}://shop.example:{port}/"),
            secrets: vec![SECRET.to_owned()],
            event: "delivery.completed".to_owned(),
            object: "deliveries/1".to_owned(),
            ..Notification::default()
        };
        let outcome = sender.send(notification).await;
        assert_eq!(outcome.status, None);
        *failure = outcome.failure();
    }
    failures
}

fn briefly(config: &mut Config) {
    config.send_timeout = Duration::from_millis(300);
}

/// `shop.example` is this machine.
fn at_loopback() -> BoxFuture<'static, Found> {
    Box::pin(std::future::ready(Ok(vec![LOOPBACK.ip()])))
}

#[tokio::test]
async fn a_name_that_is_not_resolved_is_a_dns_failure() {
    let unknown = || -> BoxFuture<'static, Found> {
        Box::pin(std::future::ready(Err(io::Error::other("no such name"))))
    };
    let empty = || -> BoxFuture<'static, Found> { Box::pin(std::future::ready(Ok(Vec::new()))) };
    for look_up in [unknown, empty] {
        assert_eq!(failures(|_| {}, 443, look_up).await, [Failure::Dns; 2]);
    }
}

#[tokio::test]
async fn a_name_that_hangs_is_left_at_the_deadline() {
    let failures = failures(briefly, 443, || Box::pin(std::future::pending())).await;
    assert_eq!(failures, [Failure::Timeout; 2]);
}

#[tokio::test]
async fn a_name_at_an_address_that_may_not_be_called_is_refused() {
    let refuse = |config: &mut Config| config.allow_networks.clear();
    let failures = failures(refuse, 443, at_loopback).await;
    assert_eq!(failures, [Failure::AddressRefused; 2]);
}

#[tokio::test]
async fn an_address_that_nobody_listens_at_is_a_connect_failure() {
    // Bound, so that nobody else gets the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(LOOPBACK).unwrap();
    let port = socket.local_addr().unwrap().port();

    assert_eq!(
        failures(|_| {}, port, at_loopback).await,
        [Failure::Connect; 2]
    );
}

#[tokio::test]
async fn an_address_that_never_answers_is_left_at_the_deadline() {
    let silent = SilentListener::start(LOOPBACK).await;

    let failures = failures(briefly, silent.addr.port(), at_loopback).await;

    assert_eq!(failures, [Failure::Timeout; 2]);
}
