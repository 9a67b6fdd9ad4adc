//! Tests of the address guard, with real sockets on loopback.

use std::net::{IpAddr, Ipv4Addr};

use tokio::net::TcpListener;

use super::*;
use crate::unresponsive_listener::UnresponsiveListener;

fn guard(allowed: &str) -> AddressGuard {
    guard_with(allowed, Resolver::system())
}

fn guard_with(allowed: &str, resolver: Resolver) -> AddressGuard {
    let policy = Policy {
        allowed_networks: vec![allowed.parse().unwrap()],
        ..Policy::default()
    };
    AddressGuard::new(policy, resolver)
}

/// Whether nothing has connected to a listener: the first connection that it accepts is then the
/// one that this function opens.
async fn has_no_connection(listener: TcpListener) -> bool {
    let addr = listener.local_addr().unwrap();
    let stream = TcpStream::connect(addr).await.unwrap();
    let (_, first) = listener.accept().await.unwrap();
    first == stream.local_addr().unwrap()
}

#[tokio::test]
async fn one_denied_address_denies_the_host() {
    let allowed_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = allowed_listener.local_addr().unwrap().port();
    let allowed = SocketAddr::from(([127, 0, 0, 1], port));
    let denied = SocketAddr::from(([127, 0, 0, 2], port));

    for addrs in [[allowed, denied], [denied, allowed]] {
        let result = guard("127.0.0.1").connect(&addrs).await;
        assert!(
            matches!(
                result,
                Err(Error::Denied(Denied::Address(IpAddr::V4(ip))))
                    if ip == Ipv4Addr::new(127, 0, 0, 2)
            ),
            "{result:?}"
        );
    }
    assert!(has_no_connection(allowed_listener).await);
}

/// DNS rebinding: a name resolves to a public address for the check and to a private one for the
/// connection. The guard resolves once for each connection and connects to a checked address.
#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_for_each_connection() {
    let allowed_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = allowed_listener.local_addr().unwrap().port();
    let denied_listener = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let [allowed, denied] =
        [&allowed_listener, &denied_listener].map(|listener| listener.local_addr().unwrap());
    let [allowed_ip, denied_ip] = [allowed.ip(), denied.ip()];
    let answers = [
        vec![allowed_ip],
        vec![denied_ip],
        vec![allowed_ip, denied_ip],
        vec![allowed_ip],
        vec![],
    ];
    let answers = std::sync::Mutex::new(answers.into_iter());
    let resolver = Resolver::with(move |_| {
        let next = answers.lock().unwrap().next();
        Box::pin(std::future::ready(Ok(next.unwrap())))
    });
    let guard = guard_with("127.0.0.1", resolver);
    let uri: Uri = format!("http://shop.example:{port}/").parse().unwrap();

    let mut results = Vec::new();
    for _ in 0..5 {
        results.push(
            match guard.clone().open(uri.clone(), Attempt::start()).await {
                Ok(stream) => Ok(stream.inner().stream.peer_addr().unwrap()),
                Err(Error::Denied(Denied::Address(ip))) => Err(Some(ip)),
                Err(Error::Dns(_)) => Err(None),
                Err(error) => panic!("{error}"),
            },
        );
    }

    let error = Err(Some(denied_ip));
    let unresolved = Err(None);
    assert_eq!(
        results,
        [Ok(allowed), error, error, Ok(allowed), unresolved]
    );
    assert!(has_no_connection(denied_listener).await);
}

#[tokio::test]
async fn the_second_address_is_used_if_the_first_is_unresponsive() {
    let unresponsive = UnresponsiveListener::start(SocketAddr::from(([127, 0, 0, 2], 0))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();

    let guard = guard("127.0.0.0/8");
    let addrs = [unresponsive.addr, open];
    let connected = tokio::time::timeout(Duration::from_secs(20), guard.connect(&addrs));
    let stream = connected
        .await
        .expect("the second address accepts")
        .unwrap();

    assert_eq!(stream.peer_addr().unwrap(), open);
    assert!(stream.nodelay().unwrap());
}

#[tokio::test]
async fn the_second_address_is_used_if_the_first_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    let closed = SocketAddr::from(([127, 0, 0, 2], open.port()));

    let stream = guard("127.0.0.0/8").connect(&[closed, open]).await.unwrap();

    assert_eq!(stream.peer_addr().unwrap(), open);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_dns_failure() {
    // The label is too long for DNS, so no query is sent.
    let uri: Uri = format!("http://{}.invalid/", "a".repeat(64))
        .parse()
        .unwrap();
    let result = guard("127.0.0.0/8").open(uri, Attempt::start()).await;
    assert!(matches!(result, Err(Error::Dns(_))), "{result:?}");
}

/// As the policy does, which accepts their webhooks.
#[tokio::test]
async fn every_name_of_loopback_is_looked_up_as_localhost() {
    for (host, expected) in [
        ("localhost.", "localhost"),
        ("api.localhost", "localhost"),
        ("api.localhost.", "localhost"),
        ("localhost.example", "localhost.example"),
        ("shop.example.", "shop.example."),
    ] {
        let resolver = Resolver::with(move |name| {
            assert_eq!(name, expected);
            Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
        });
        let url = format!("http://{host}:9461/").parse().unwrap();

        let addrs = resolve(&url, &resolver).await;

        assert_eq!(
            addrs.unwrap(),
            ["127.0.0.1:9461".parse().unwrap()],
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_url_without_a_port_has_that_of_its_scheme() {
    for (url, expected) in [
        ("https://127.0.0.1/", "127.0.0.1:443"),
        ("http://127.0.0.1/", "127.0.0.1:80"),
        ("http://127.0.0.1:8443/", "127.0.0.1:8443"),
        ("https://[::1]/", "[::1]:443"),
    ] {
        let addrs = resolve(&url.parse().unwrap(), &Resolver::system()).await;
        assert_eq!(addrs.unwrap(), [expected.parse().unwrap()], "{url}");
    }
}
