//! DNS rebinding: a name that leads to a public address when it is checked, and to loopback when
//! it is called. Over real sockets, through the system's resolver, in a network of the test's own.

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
    A, AAAA, Asked, Canary, CoreStream, Dispatcher, FakeCore, NameServer, OK, PRIVATE, PUBLIC,
    config, delivered, failed, in_own_network, notification, receiver_on, soon,
};

const NAME: &str = "shop.example";

/// A name that leads where it is told to, and who is at either end.
struct Name {
    dispatcher: Dispatcher,
    stream: CoreStream,
    server: NameServer,
    public: SocketAddr,
    /// On the connection with which number each request came to the public address.
    requests: UnboundedReceiver<usize>,
    /// At loopback and at a private address, at the same port.
    canaries: [Canary; 2],
}

/// All that was seen of a name.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    asked: Asked,
    /// On the connection with which number each request came to the public address.
    requests: Vec<usize>,
    connections: usize,
    a_canary_was_called: bool,
}

impl Name {
    /// A name that is looked up to the answers in turn. Its receiver answers the first request on
    /// a connection, and closes it at the second: whoever keeps it has to look where to go then.
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
        config.allow_networks.clear();
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
        self.stream.record(&outcome).await;
        Outcome {
            duration: None,
            ..outcome
        }
    }

    async fn end(mut self) -> Seen {
        self.dispatcher.shut_down_with(self.stream).await;
        // The last connection is our own, and its number that of all before it.
        let mut own = TcpStream::connect(self.public).await.unwrap();
        own.write_all(b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        soon(own.read_exact(&mut [0; OK.len()])).await.unwrap();
        let [loopback, private] = self.canaries;
        let mut requests: Vec<_> = iter::from_fn(|| self.requests.try_recv().ok()).collect();
        Seen {
            asked: self.server.asked(),
            connections: requests.pop().expect("our own"),
            requests,
            a_canary_was_called: !(loopback.untouched().await && private.untouched().await),
        }
    }
}

/// So many look-ups of the name, each a question for either kind of address.
fn looked_up(times: usize) -> Asked {
    [A, AAAA]
        .map(|kind| ((NAME.to_owned(), kind), times))
        .into()
}

fn public() -> Vec<Ipv4Addr> {
    vec![PUBLIC]
}

fn loopback() -> Vec<Ipv4Addr> {
    vec![Ipv4Addr::LOCALHOST]
}

fn refused() -> Outcome {
    failed(Failure::AddressRefused, None)
}

#[tokio::test]
async fn a_name_that_changes_once_it_is_checked_is_called_where_it_was_checked() {
    in_own_network(async {
        let answers = iter::once(public()).chain(iter::repeat_with(loopback));
        let mut name = Name::start(answers).await;

        assert_eq!(name.attempt().await, delivered("thanks"));

        let expected = Seen {
            asked: looked_up(1),
            requests: vec![0],
            connections: 1,
            a_canary_was_called: false,
        };
        assert_eq!(name.end().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_that_has_changed_when_its_connection_is_closed_is_checked_anew() {
    in_own_network(async {
        let answers = iter::once(public()).chain(iter::repeat_with(loopback));
        let mut name = Name::start(answers).await;

        assert_eq!(name.attempt().await, delivered("thanks"));
        assert_eq!(name.attempt().await, refused());

        let expected = Seen {
            asked: looked_up(2),
            requests: vec![0, 0],
            connections: 1,
            a_canary_was_called: false,
        };
        assert_eq!(name.end().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_with_a_public_and_a_private_address_is_called_at_neither() {
    in_own_network(async {
        const PAIRS: [[Ipv4Addr; 2]; 4] = [
            [PUBLIC, PRIVATE],
            [PRIVATE, PUBLIC],
            [PUBLIC, Ipv4Addr::LOCALHOST],
            [Ipv4Addr::LOCALHOST, PUBLIC],
        ];
        let mut name = Name::start(PAIRS.map(Vec::from)).await;

        for pair in PAIRS {
            assert_eq!(name.attempt().await, refused(), "{pair:?}");
        }

        let expected = Seen {
            asked: looked_up(PAIRS.len()),
            requests: vec![],
            connections: 0,
            a_canary_was_called: false,
        };
        assert_eq!(name.end().await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_name_that_goes_to_and_fro_never_leads_to_loopback() {
    const TIMES: usize = 64;
    in_own_network(async {
        let mut name = Name::start([public(), loopback()].into_iter().cycle()).await;

        for time in 0..TIMES {
            assert_eq!(name.attempt().await, delivered("thanks"), "{time}");
            assert_eq!(name.attempt().await, refused(), "{time}");
        }

        let expected = Seen {
            asked: looked_up(2 * TIMES),
            requests: (0..TIMES).flat_map(|number| [number, number]).collect(),
            connections: TIMES,
            a_canary_was_called: false,
        };
        assert_eq!(name.end().await, expected);
    })
    .await;
}
