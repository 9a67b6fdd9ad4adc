use std::net::{IpAddr, Ipv4Addr};

use tokio::net::TcpListener;

use super::*;
use crate::silent_listener::SilentListener;

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

/// Whether nobody has connected. A connection would be in the backlog by the time the
/// connecting side has been told of it.
async fn untouched(canary: TcpListener) -> bool {
    let addr = canary.local_addr().unwrap();
    let own = TcpStream::connect(addr).await.unwrap();
    let (_, first) = canary.accept().await.unwrap();
    first == own.local_addr().unwrap()
}

#[tokio::test]
async fn one_refused_address_refuses_them_all() {
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = canary.local_addr().unwrap().port();
    let allowed = SocketAddr::from(([127, 0, 0, 1], port));
    let refused = SocketAddr::from(([127, 0, 0, 2], port));

    for addrs in [[allowed, refused], [refused, allowed]] {
        let result = guard("127.0.0.1").connect(&addrs).await;
        assert!(
            matches!(
                result,
                Err(Error::Refused(Refused::Address(IpAddr::V4(ip))))
                    if ip == Ipv4Addr::new(127, 0, 0, 2)
            ),
            "{result:?}"
        );
    }
    assert!(untouched(canary).await);
}

#[tokio::test]
async fn no_spelling_of_a_refused_address_is_called() {
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = canary.local_addr().unwrap().port();

    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
    ] {
        let uri: Uri = format!("http://{host}:{port}/").parse().unwrap();
        let result = guard("10.0.0.0/8").call(uri).await;
        assert!(
            matches!(result, Err(Error::Refused(_))),
            "{host} {result:?}"
        );
    }
    assert!(untouched(canary).await);
}

/// DNS rebinding: a name that answers well when it is looked at and otherwise when it is
/// called. Here it is looked up once a connection, and what is called is what was judged.
#[tokio::test]
async fn a_name_that_changes_its_address_leads_nowhere_else() {
    let permitted = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = permitted.local_addr().unwrap().port();
    let canary = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let [good, bad] = [&permitted, &canary].map(|listener| listener.local_addr().unwrap());
    let [at_good, at_bad] = [good.ip(), bad.ip()];
    let answers = [
        vec![at_good],
        vec![at_bad],
        vec![at_good, at_bad],
        vec![at_good],
        vec![],
    ];
    let answers = std::sync::Mutex::new(answers.into_iter());
    let resolver = Resolver::of(move |_| {
        let next = answers.lock().unwrap().next();
        Box::pin(std::future::ready(Ok(next.unwrap())))
    });
    let mut guard = guard_with("127.0.0.1", resolver);
    let uri: Uri = format!("http://shop.example:{port}/").parse().unwrap();

    let mut reached = Vec::new();
    for _ in 0..5 {
        reached.push(match guard.call(uri.clone()).await {
            Ok(stream) => Ok(stream.inner().stream.peer_addr().unwrap()),
            Err(Error::Refused(Refused::Address(ip))) => Err(Some(ip)),
            Err(Error::Dns(_)) => Err(None),
            Err(error) => panic!("{error}"),
        });
    }

    let refused = Err(Some(bad.ip()));
    assert_eq!(reached, [Ok(good), refused, refused, Ok(good), Err(None)]);
    assert!(untouched(canary).await);
}

#[tokio::test]
async fn a_silent_first_address_does_not_hold_up_the_second() {
    let silent = SilentListener::start(SocketAddr::from(([127, 0, 0, 2], 0))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();

    let guard = guard("127.0.0.0/8");
    let addrs = [silent.addr, open];
    let connected = tokio::time::timeout(Duration::from_secs(20), guard.connect(&addrs));
    let stream = connected.await.expect("the second one answers").unwrap();

    assert_eq!(stream.peer_addr().unwrap(), open);
    assert!(stream.nodelay().unwrap());
}

#[tokio::test]
async fn a_first_address_that_refuses_is_as_if_there_were_only_the_second() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    let closed = SocketAddr::from(([127, 0, 0, 2], open.port()));

    let stream = guard("127.0.0.0/8").connect(&[closed, open]).await.unwrap();

    assert_eq!(stream.peer_addr().unwrap(), open);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_dns_failure() {
    // Too long a label for DNS, so that no resolver is asked.
    let uri: Uri = format!("http://{}.invalid/", "a".repeat(64))
        .parse()
        .unwrap();
    let result = guard("127.0.0.0/8").call(uri).await;
    assert!(matches!(result, Err(Error::Dns(_))), "{result:?}");
}
