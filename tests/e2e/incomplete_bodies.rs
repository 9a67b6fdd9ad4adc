//! Peers that announce bodies and hold them back, or send them and stop before the end, take no
//! capacity from other clients.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    future::join_all,
    stream::{self, BoxStream},
};
use http_body_util::StreamBody;
use hyper::{
    Request,
    body::Frame,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpSocket, sync::watch, task::JoinSet};

use crate::harness::{Platform, short_draft as draft};

/// The number of bodies that are held back at any time.
const BODIES: u8 = 200;
/// The `Content-Length` of each body. Less is sent.
const CONTENT_LENGTH: usize = 1 << 20;
/// How often a client gets a token and creates a delivery during an attack.
const ROUNDS: usize = 50;

/// Far longer than all bodies take to begin.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How bodies are held back.
#[derive(Clone, Copy)]
struct Attack {
    /// Each connection has its own source address; otherwise all have that of the other clients.
    has_many_peers: bool,
    /// One HTTP/2 connection has all the bodies of a peer; otherwise each has its HTTP/1 connection.
    is_http2: bool,
    /// How much of each body is sent.
    sent: usize,
}

on_both_databases! {
    async fn bodies_that_many_peers_hold_back_do_not_affect_other_clients(platform: &Platform) {
        check_served_during(platform, &[
            Attack { has_many_peers: true, is_http2: false, sent: 0 },
            Attack { has_many_peers: true, is_http2: true, sent: 0 },
        ]).await;
    }

    async fn bodies_that_one_peer_holds_back_do_not_affect_other_clients(platform: &Platform) {
        check_served_during(platform, &[
            Attack { has_many_peers: false, is_http2: false, sent: 0 },
            Attack { has_many_peers: false, is_http2: true, sent: 0 },
        ]).await;
    }

    async fn bodies_that_stop_before_their_end_do_not_affect_other_clients(platform: &Platform) {
        check_served_during(platform, &[
            Attack { has_many_peers: true, is_http2: false, sent: CONTENT_LENGTH - 1 },
        ]).await;
    }
}

/// Fails unless 99 % of the tokens and of the deliveries succeed during each attack.
async fn check_served_during(platform: &Platform, attacks: &[Attack]) {
    let client = platform.client().await;
    let addr: SocketAddr = platform
        .base_url
        .strip_prefix("http://")
        .unwrap()
        .parse()
        .unwrap();
    for attack in attacks {
        let begun = watch::Sender::new(0);
        let mut attackers = JoinSet::new();
        let (connections, bodies) = match attack {
            Attack {
                has_many_peers: false,
                is_http2: true,
                ..
            } => (1, BODIES),
            _ => (BODIES, 1),
        };
        for number in 0..connections {
            let from = if attack.has_many_peers {
                Ipv4Addr::new(127, 0, 1, number)
            } else {
                Ipv4Addr::LOCALHOST
            };
            let begun = begun.clone();
            attackers.spawn(hold(addr, (from.into(), number), *attack, bodies, begun));
        }
        let mut begun = begun.subscribe();
        let all_begun = begun.wait_for(|begun| *begun >= usize::from(BODIES));
        let all_begun = tokio::time::timeout(TIMEOUT, all_begun).await;
        all_begun.expect("every body should begin").unwrap();

        let mut statuses = Vec::new();
        for _ in 0..ROUNDS {
            let form = [("grant_type", "client_credentials")];
            let token = client.request_token(&platform.demo_client, &form).await;
            let delivery = client.post("/api/deliveries", draft()).await;
            statuses.extend([token.status, delivery.status]);
        }

        let served = statuses.iter().filter(|status| **status < 300).count();
        let is_enough = served * 100 >= statuses.len() * 99;
        assert!(
            is_enough,
            "{served} of {} served: {statuses:?}",
            statuses.len()
        );
    }
}

/// Holds bodies back over one connection, and connects again when it ends.
async fn hold(
    addr: SocketAddr,
    (from, number): (IpAddr, u8),
    attack: Attack,
    bodies: u8,
    begun: watch::Sender<usize>,
) -> Infallible {
    let chunk = Bytes::from(vec![b' '; attack.sent]);
    let body = || {
        let begun = begun.clone();
        let chunk = chunk.clone();
        let first = stream::once(async move {
            begun.send_modify(|begun| *begun += 1);
            Ok(Frame::data(chunk))
        });
        StreamBody::new(first.chain(stream::pending()).boxed())
    };
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let io = TokioIo::new(socket.connect(addr).await.unwrap());
        if attack.is_http2 {
            let executor = TokioExecutor::new();
            let Ok((sender, connection)) = http2::handshake(executor, io).await else {
                continue;
            };
            let responses = (0..bodies).map(|number| {
                let mut sender = sender.clone();
                let request = request(addr, number, body());
                async move { sender.send_request(request).await }
            });
            tokio::select! {
                _ = connection => {}
                _ = join_all(responses) => {}
            }
        } else if let Ok((mut sender, connection)) = http1::handshake(io).await {
            tokio::select! {
                _ = connection => {}
                _ = sender.send_request(request(addr, number, body())) => {}
            }
        }
    }
}

type HeldBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A request that needs no token, or one with a token that core would reject.
fn request(addr: SocketAddr, number: u8, body: HeldBody) -> Request<HeldBody> {
    let (path, media_type) = match number % 2 {
        0 => ("/oauth2/token", "application/x-www-form-urlencoded"),
        _ => ("/api/deliveries", "application/ld+json"),
    };
    Request::post(format!("http://{addr}{path}"))
        .header("host", addr.to_string())
        .header("authorization", "Bearer unknown")
        .header("content-type", media_type)
        .header("content-length", CONTENT_LENGTH)
        .body(body)
        .unwrap()
}
