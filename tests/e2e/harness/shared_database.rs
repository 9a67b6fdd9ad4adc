//! Two whole platforms over one PostgreSQL database: what is true must be true across cores.

use delivery::{Clock, Credentials, Settings};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{ApiClient, Database, Operator, START};

/// One of the platforms.
pub(crate) struct Twin {
    base_url: String,
    core_url: String,
    /// The demo shop's store, as its bare id.
    pub(crate) store: String,
    demo_client: Credentials,
    operator_client: Credentials,
    clock: Clock,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
    directory: TempDir,
}

impl Twin {
    /// Starts two over a database, with one master key and one clock; `None` without PostgreSQL.
    pub(crate) async fn start_two() -> Option<[Self; 2]> {
        Self::start_two_with(|_| {}).await
    }

    /// As [`Twin::start_two`], with settings of their own.
    pub(crate) async fn start_two_with(adjust: impl Fn(&mut Settings)) -> Option<[Self; 2]> {
        let url = Database::postgres()?.url?;
        let clock = Clock::manual(START.parse::<Timestamp>().unwrap());
        let first = Self::start(tempfile::tempdir().unwrap(), &url, clock.clone(), &adjust).await;
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy(
            first.directory.path().join("master.key"),
            directory.path().join("master.key"),
        )
        .unwrap();
        let second = Self::start(directory, &url, clock, &adjust).await;
        Some([first, second])
    }

    /// The demo shop's program, talking to this one.
    pub(crate) async fn client(&self) -> ApiClient {
        let scopes = ["deliveries", "tasks"];
        ApiClient::authorized(&self.base_url, &self.demo_client, &scopes).await
    }

    /// A program that completes tasks over REST, talking to this one.
    pub(crate) async fn dispatch_board(&self) -> ApiClient {
        ApiClient::authorized(&self.base_url, &self.operator_client, &["tasks:all"]).await
    }

    /// Someone without a token, talking to this one.
    pub(crate) fn stranger(&self) -> ApiClient {
        ApiClient::new(&self.base_url)
    }

    /// The demo shop's API client.
    pub(crate) fn demo_client(&self) -> &Credentials {
        &self.demo_client
    }

    pub(super) fn core_url(&self) -> &str {
        &self.core_url
    }

    pub(super) fn operator_client(&self) -> &Credentials {
        &self.operator_client
    }

    /// The platform's operator, talking to this one.
    pub(crate) async fn operator(&self) -> Operator {
        Operator::authorized(&self.core_url, &self.operator_client).await
    }

    /// Has this one's core disable the demo shop's client, for good.
    pub(crate) async fn disable_the_demo_client(&self) {
        let clients = self.delivery_json(&["clients", "list"]).await;
        let is_demo = |client: &&Value| client["api_key"] == self.demo_client.api_key.as_str();
        let demo = clients.as_array().unwrap().iter().find(is_demo).unwrap();
        let id = demo["id"].as_str().unwrap();
        self.delivery_json(&["clients", "disable", id]).await;
    }

    /// Has this one's core make a new signing key; its id.
    pub(crate) async fn rotate_signing_key(&self) -> Value {
        self.delivery_json(&["keys", "rotate"]).await["id"].take()
    }

    /// Lets time pass, for both.
    pub(crate) fn advance(&self, duration: SignedDuration) {
        self.clock.advance(duration);
    }

    /// Ends it, and fails if any part ended otherwise than told.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
    }

    async fn start(
        directory: TempDir,
        url: &str,
        clock: Clock,
        adjust: &impl Fn(&mut Settings),
    ) -> Self {
        let mut settings = Settings {
            database_url: Some(url.to_owned()),
            // One platform: a token of either is good at both.
            public_url: Some("http://delivery.example".parse().unwrap()),
            ..Settings::on_free_ports(directory.path())
        };
        adjust(&mut settings);
        let platform = delivery::Platform::start(settings, clock.clone())
            .await
            .unwrap();
        let shutdown = CancellationToken::new();
        Self {
            base_url: platform.base_url.clone(),
            core_url: platform.core_url.clone(),
            store: platform.demo.store.clone(),
            clock,
            demo_client: platform.demo.demo_client.clone(),
            operator_client: platform.demo.operator_client.clone(),
            running: tokio::spawn(platform.run(shutdown.clone())),
            shutdown,
            directory,
        }
    }
}
