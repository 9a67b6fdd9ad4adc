//! Two whole platforms over one PostgreSQL database, to test guarantees across cores.

use std::path::PathBuf;

use delivery::{Clock, Credentials, Policy, RateLimitConfig, Settings};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{ApiClient, Database, Operator, START, grpc, platform::settings};

/// One of two platforms over one database.
pub(crate) struct Replica {
    base_url: String,
    core_url: String,
    /// The demo store: `stores/<id>`.
    pub(crate) store: String,
    demo_client: Credentials,
    operator_client: Credentials,
    clock: Clock,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
    directory: TempDir,
}

impl Replica {
    /// Starts two over one database, with the same master key and clock; `None` without PostgreSQL.
    pub(crate) async fn start_two() -> Option<[Self; 2]> {
        Self::start_two_with(|_| {}).await
    }

    /// As [`Replica::start_two`], with adjusted settings.
    pub(crate) async fn start_two_with(adjust: impl Fn(&mut Settings)) -> Option<[Self; 2]> {
        let url = Database::postgres()?.url?;
        let clock = Clock::manual(START.parse::<Timestamp>().unwrap());
        let first = Self::start(tempfile::tempdir().unwrap(), &url, clock.clone(), &adjust).await;
        let directory = tempfile::tempdir().unwrap();
        let master_key = directory.path().join("master.key");
        std::fs::copy(first.master_key_file(), master_key).unwrap();
        let second = Self::start(directory, &url, clock, &adjust).await;
        Some([first, second])
    }

    /// Its own file of master keys.
    pub(crate) fn master_key_file(&self) -> PathBuf {
        self.directory.path().join("master.key")
    }

    /// The demo shop's REST client.
    pub(crate) async fn client(&self) -> ApiClient {
        let scopes = ["deliveries", "tasks"];
        ApiClient::authorized(&self.base_url, &self.demo_client, &scopes).await
    }

    /// A REST client that completes tasks.
    pub(crate) async fn dispatch_board(&self) -> ApiClient {
        ApiClient::authorized(&self.base_url, &self.operator_client, &["tasks:all"]).await
    }

    /// A REST client without a token.
    pub(crate) fn anonymous_client(&self) -> ApiClient {
        ApiClient::new(&self.base_url)
    }

    /// The credentials of the demo shop's API client.
    pub(crate) fn demo_client(&self) -> &Credentials {
        &self.demo_client
    }

    pub(super) fn core_url(&self) -> &str {
        &self.core_url
    }

    pub(super) fn operator_client(&self) -> &Credentials {
        &self.operator_client
    }

    /// A gRPC channel, and a token of an API client for these scopes.
    pub(crate) async fn connect(
        &self,
        credentials: &Credentials,
        scopes: &[&str],
    ) -> (Channel, String) {
        grpc::connect(&self.core_url, credentials, scopes).await
    }

    /// The platform's operator over gRPC.
    pub(crate) async fn operator(&self) -> Operator {
        Operator::authorized(&self.core_url, &self.operator_client).await
    }

    /// Disables the demo shop's client for good.
    pub(crate) async fn disable_demo_client(&self) {
        let clients = self.run_delivery_json(&["clients", "list"]).await;
        let is_demo = |client: &&Value| client["api_key"] == self.demo_client.api_key.as_str();
        let demo = clients.as_array().unwrap().iter().find(is_demo).unwrap();
        let id = demo["id"].as_str().unwrap();
        self.run_delivery_json(&["clients", "disable", id]).await;
    }

    /// Rotates the signing key and returns the new key's id.
    pub(crate) async fn rotate_signing_key(&self) -> Value {
        self.run_delivery_json(&["keys", "rotate"]).await["id"].take()
    }

    /// Advances the clock that both share.
    pub(crate) fn advance(&self, duration: SignedDuration) {
        self.clock.advance(duration);
    }

    /// Shuts the platform down. Fails if a service ended with an error.
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
            database_url: Some(url.to_owned().into()),
            // The same issuer: each accepts the other's tokens.
            public_url: Some("http://delivery.example".parse().unwrap()),
            // With a public URL, plain HTTP and loopback addresses are denied by default.
            egress: Policy {
                allow_http: true,
                allowed_networks: vec!["127.0.0.0/8".parse().unwrap()],
                ..Policy::default()
            },
            rate_limits: Some(RateLimitConfig::off()),
            ..settings(directory.path())
        };
        adjust(&mut settings);
        let platform = delivery::Platform::start(settings, clock.clone())
            .await
            .unwrap();
        let demo = platform.demo.clone().unwrap();
        let shutdown = CancellationToken::new();
        Self {
            base_url: platform.base_url.clone(),
            core_url: platform.core_url.clone(),
            store: demo.store,
            clock,
            demo_client: demo.client.unwrap(),
            operator_client: platform.operator_client.clone().unwrap(),
            running: tokio::spawn(platform.run(shutdown.clone())),
            shutdown,
            directory,
        }
    }
}
