//! DNS rebinding: a name that resolves to a public address when checked, and to loopback when
//! connected to. Uses real sockets and the system's resolver in an isolated network.

use std::{
    iter,
    net::{Ipv4Addr, SocketAddr},
};

use proto::{Outcome, outcome::Failure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver},
};

use crate::harness::{
    A, AAAA, Canary, CoreStream, Dispatcher, FakeCore, NameServer, OK, PRIVATE, PUBLIC,
    QueryCounts, config, delivered, failed, in_isolated_network, notification, receiver_on,
    with_timeout,
};

const NAME: &str = "shop.example";

/// A name with scripted addresses, the dispatcher that sends to it, and its receivers.
struct RebindingName {
    dispatcher: Dispatcher,
    stream: CoreStream,
    server: NameServer,
    public: SocketAddr,
    /// The connection number of each request at the public address.
    requests: UnboundedReceiver<usize>,
    /// At loopback and at a private address, on the same port.
    canaries: [Canary; 2],
}

/// The DNS queries and connections for a name.
#[derive(Debug, PartialEq, Eq)]
struct Observed {
    queries: QueryCounts,
    /// The connection number of each request at the public address.
    requests: Vec<usize>,
    connections: usize,
    canary_connected: bool,
}

impl RebindingName {
    /// A name whose lookups return the answers in turn. Its receiver responds to the first request
    /// on a connection and closes it on the second, which forces a new connection.
    async fn start(
        answers: impl IntoIterator<Item = Vec<Ipv4Addr>, IntoIter: Send + 'static>,
    ) -> Self {
        let server = NameServer::start(answers).await;
        let canary = Canary::start().await;
        let port = canary.addr().port();
        let canaries = [canary, Canary::at((PRIVATE, port).into()).await];
        let listener = TcpListener::bind((PUBLIC, port));
        let (requests_tx, requests) = mpsc::unbounded_channel();
        let public = receiver_on(listener.await.unwrap(), move |number, mut connection| {
            let requests = requests_tx.clone();
            async move {
                connection.read_request().await;
                requests.send(number).unwrap();
                connection.write(OK).await;
                if connection.read_request().await.is_some() {
                    requests.send(number).unwrap();
                }
            }
        });
        let mut core = FakeCore::start().await;
        let mut config = config(&[&core]);
        config.egress.allowed_networks.clear();
        config.egress.allowed_ports = vec![port];
        Self {
            dispatcher: Dispatcher::start(&config),
            stream: core.stream().await,
            server,
            public,
            requests,
            canaries,
        }
    }

    async fn attempt(&mut self) -> Outcome {
        let url = format!("http://{NAME}:{}/", self.public.port());
        self.stream.send(vec![notification(1, &url)]).await;
        let outcome = self.stream.next_outcome().await;
        self.stream.acknowledge(&outcome);
        Outcome {
            duration: None,
            ..outcome
        }
    }

    async fn stop(mut self) -> Observed {
        self.dispatcher.shut_down_with(self.stream).await;
        // The last connection is the test's own; its number counts all before it.
        let mut own = TcpStream::connect(self.public).await.unwrap();
        own.write_all(b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        with_timeout(own.read_exact(&mut [0; OK.len()]))
            .await
            .unwrap();
        let [loopback, private] = self.canaries;
        let mut requests: Vec<_> = iter::from_fn(|| self.requests.try_recv().ok()).collect();
        Observed {
            queries: self.server.queries(),
            connections: requests.pop().expect("the test's own request"),
            requests,
            canary_connected: !(loopback.has_no_connections().await
                && private.has_no_connections().await),
        }
    }
}

/// The queries of a number of lookups: each queries both record types.
fn lookups(count: usize) -> QueryCounts {
    [A, AAAA]
        .map(|kind| ((NAME.to_owned(), kind), count))
        .into()
}

fn public() -> Vec<Ipv4Addr> {
    vec![PUBLIC]
}

fn loopback() -> Vec<Ipv4Addr> {
    vec![Ipv4Addr::LOCALHOST]
}

fn denied() -> Outcome {
    failed(Failure::AddressRefused, None)
}

#[tokio::test]
async fn a_name_that_changes_after_its_check_is_connected_at_the_checked_address() {
    in_isolated_network(async {
        let answers = iter::once(public()).chain(iter::repeat_with(loopback));
        let mut name = RebindingName::start(answers).await;

        assert_eq!(name.attempt().await, delivered("thanks"));

        let expected = Observed {
            queries: lookups(1),
            requests: vec![0],
            connections: 1,
            canary_connected: false,
        };
        assert_eq!(name.stop().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_is_checked_again_for_a_new_connection() {
    in_isolated_network(async {
        let answers = iter::once(public()).chain(iter::repeat_with(loopback));
        let mut name = RebindingName::start(answers).await;

        assert_eq!(name.attempt().await, delivered("thanks"));
        assert_eq!(name.attempt().await, denied());

        let expected = Observed {
            queries: lookups(2),
            requests: vec![0, 0],
            connections: 1,
            canary_connected: false,
        };
        assert_eq!(name.stop().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_with_a_public_and_a_private_address_is_denied() {
    in_isolated_network(async {
        const PAIRS: [[Ipv4Addr; 2]; 4] = [
            [PUBLIC, PRIVATE],
            [PRIVATE, PUBLIC],
            [PUBLIC, Ipv4Addr::LOCALHOST],
            [Ipv4Addr::LOCALHOST, PUBLIC],
        ];
        let mut name = RebindingName::start(PAIRS.map(Vec::from)).await;

        for pair in PAIRS {
            assert_eq!(name.attempt().await, denied(), "{pair:?}");
        }

        let expected = Observed {
            queries: lookups(PAIRS.len()),
            requests: vec![],
            connections: 0,
            canary_connected: false,
        };
        assert_eq!(name.stop().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_that_alternates_never_reaches_loopback() {
    const TIMES: usize = 64;
    in_isolated_network(async {
        let mut name = RebindingName::start([public(), loopback()].into_iter().cycle()).await;

        for time in 0..TIMES {
            assert_eq!(name.attempt().await, delivered("thanks"), "{time}");
            assert_eq!(name.attempt().await, denied(), "{time}");
        }

        let expected = Observed {
            queries: lookups(2 * TIMES),
            requests: (0..TIMES).flat_map(|number| [number, number]).collect(),
            connections: TIMES,
            canary_connected: false,
        };
        assert_eq!(name.stop().await, expected);
    })
    .await;
}
