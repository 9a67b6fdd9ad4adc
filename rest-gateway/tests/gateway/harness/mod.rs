//! A gateway, its client and a fake core.

pub(crate) mod client;
mod fake_core;
pub(crate) mod samples;
mod stalling_proxy;

pub(crate) use client::{Client, Reply};
pub(crate) use fake_core::FakeCore;
pub(crate) use stalling_proxy::StallingProxy;

use rest_gateway::{Config, RestGateway};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const PUBLIC_URL: &str = "https://delivery.example";

/// A gateway in front of a fake core.
pub(crate) struct Platform {
    pub(crate) core: FakeCore,
    pub(crate) client: Client,
    pub(crate) gateway: Gateway,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let core = FakeCore::start().await;
        let gateway = Gateway::start(|config| {
            config.core_url = vec![core.url()];
            adjust(config);
        });
        Self {
            core,
            client: Client::new(gateway.addr),
            gateway,
        }
    }
}

/// A running gateway; shuts down when dropped.
pub(crate) struct Gateway {
    pub(crate) addr: std::net::SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: JoinHandle<()>,
    _shutdown: DropGuard,
}

impl Gateway {
    pub(crate) fn start(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            public_url: Some(PUBLIC_URL.parse().unwrap()),
            ..Config::default()
        };
        adjust(&mut config);
        let gateway = RestGateway::bind(config).unwrap();
        let shutdown = CancellationToken::new();
        Self {
            addr: gateway.addr(),
            running: tokio::spawn(gateway.run(shutdown.clone())),
            _shutdown: shutdown.clone().drop_guard(),
            shutdown,
        }
    }
}
