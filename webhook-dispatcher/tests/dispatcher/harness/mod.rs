//! The dispatcher under test, a scripted core, and receivers that respond with raw bytes.

mod fake_core;
mod name_server;
mod network;
#[path = "../../../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;
mod receiver;

use std::{num::NonZeroU32, time::Duration};

use egress::Policy;
use proto::{Notification, Outcome, ReceiveRequest, outcome::Failure};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use webhook_dispatcher::{Config, WebhookDispatcher};

pub(crate) use self::{
    fake_core::{CoreStream, FakeCore},
    name_server::{A, AAAA, NameServer, QueryCounts},
    network::{PRIVATE, PUBLIC, in_isolated_network},
    receiver::{
        Canary, GatedReceiver, OK, Received, receiver, receiver_at, receiver_on, responding,
    },
};

pub(crate) const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// The result of a future that must complete within 20 s.
pub(crate) async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("not complete within 20 s")
}

pub(crate) struct Dispatcher {
    shutdown: CancellationToken,
    run: JoinHandle<()>,
}

impl Dispatcher {
    pub(crate) fn start(config: &Config) -> Self {
        Self::run(WebhookDispatcher::new(config).unwrap())
    }

    /// Starts with a health listener.
    pub(crate) fn bind(config: &Config) -> Self {
        Self::run(WebhookDispatcher::bind(config).unwrap())
    }

    fn run(dispatcher: WebhookDispatcher) -> Self {
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(dispatcher.run(shutdown.clone()));
        Self { shutdown, run }
    }

    pub(crate) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Shuts down with a core that follows the protocol: it has recorded all outcomes, and ends
    /// the stream once the dispatcher has half-closed it.
    pub(crate) async fn shut_down_with(self, mut stream: CoreStream) {
        self.shut_down();
        stream.remaining_requests().await;
        drop(stream);
        self.exited().await;
    }

    pub(crate) async fn exited(self) {
        with_timeout(self.run).await.unwrap();
    }
}

/// A configuration for these cores that allows receivers on loopback.
pub(crate) fn config(cores: &[&FakeCore]) -> Config {
    Config {
        core_urls: cores.iter().map(|core| core.url.parse().unwrap()).collect(),
        client_key: Some("key".to_owned()),
        client_secret: Some("secret".to_owned().into()),
        egress: Policy {
            allow_http: true,
            allowed_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
            ..Policy::default()
        },
        ..Config::default()
    }
}

/// A request that grants capacity.
pub(crate) fn capacity(capacity: u32) -> ReceiveRequest {
    ReceiveRequest { capacity }
}

/// A configuration for one core with a limit of notifications in flight.
pub(crate) fn config_with_limit(core: &FakeCore, max_in_flight: u32) -> Config {
    Config {
        max_in_flight: NonZeroU32::new(max_in_flight).unwrap(),
        ..config(&[core])
    }
}

/// The outcome of one attempt to send to a URL, without its duration.
pub(crate) async fn attempt(url: &str) -> Outcome {
    attempt_with(|_| {}, url).await
}

pub(crate) async fn attempt_with(configure: impl FnOnce(&mut Config), url: &str) -> Outcome {
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    configure(&mut config);
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    stream.send(vec![notification(1, url)]).await;
    let outcome = stream.next_outcome().await;
    stream.acknowledge(&outcome);

    dispatcher.shut_down_with(stream).await;
    Outcome {
        duration: None,
        ..outcome
    }
}

/// Sets a timeout that a test can wait for.
pub(crate) fn short_timeout(config: &mut Config) {
    config.send_timeout = Duration::from_secs(1);
}

pub(crate) fn notification(number: u8, url: &str) -> Notification {
    Notification {
        name: format!("notifications/01932e5c-9f4a-7000-8000-0000000000{number:02x}"),
        lease_token: format!("lease-{number}"),
        url: url.to_owned(),
        secrets: vec![SECRET.to_owned()],
        event: "delivery.completed".to_owned(),
        object: "deliveries/1".to_owned(),
        attempt: 1,
        ..Notification::default()
    }
}

/// Like [`notification`], but the sample of a test send.
pub(crate) fn sample(number: u8, url: &str) -> Notification {
    Notification {
        lease_token: String::new(),
        test: true,
        ..notification(number, url)
    }
}

/// The outcome of the first notification, [`Failure::Unspecified`] if it was delivered.
pub(crate) fn outcome(failure: Failure, status: Option<u32>) -> Outcome {
    Outcome {
        name: notification(1, "").name,
        lease_token: "lease-1".to_owned(),
        failure: failure.into(),
        status,
        ..Outcome::default()
    }
}

pub(crate) fn failed(failure: Failure, status: Option<u32>) -> Outcome {
    outcome(failure, status)
}

pub(crate) fn delivered(body: &str) -> Outcome {
    Outcome {
        response_body: body.to_owned(),
        ..outcome(Failure::Unspecified, Some(200))
    }
}
