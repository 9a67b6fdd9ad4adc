//! A whole platform in this process: the all-in-one, on free ports, with a manual clock.

use std::{path::Path, sync::OnceLock};

use delivery::{Clock, Credentials, Settings};
use jiff::{SignedDuration, Timestamp};
use process::command_line;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{
    ApiClient, Courier, Documentation, Operator, grpc, pgbouncer::PgBouncer, postgres, statements,
};

/// The time at which every platform starts: Thursday 2 April 2020, 11:00 in Paris, the demo shop's
/// time zone.
pub(crate) const START: &str = "2020-04-02T11:00:00+02:00";

/// The database of a platform.
pub(crate) struct Database {
    /// `None`: the embedded SQLite.
    pub(crate) url: Option<String>,
}

impl Database {
    /// A new SQLite database in the platform's own data directory.
    pub(crate) fn sqlite() -> Self {
        Self { url: None }
    }

    /// A new database in this process's PostgreSQL cluster; `None`, with a message on stderr, on a
    /// machine without PostgreSQL. With `DELIVERY_TEST_PGBOUNCER=1`, the way to it leads through
    /// `PgBouncer`.
    pub(crate) fn postgres() -> Option<Self> {
        let database = Self::unpooled_postgres()?;
        let is_pooled = std::env::var_os("DELIVERY_TEST_PGBOUNCER").is_some_and(|set| set == "1");
        if !is_pooled {
            return Some(database);
        }
        let url = pooled(&database.url?)?;
        Some(Self { url: Some(url) })
    }

    /// As [`Database::postgres`], for a URL with `options`, which `PgBouncer` refuses.
    pub(crate) fn unpooled_postgres() -> Option<Self> {
        postgres::create_database().map(|url| Self { url: Some(url) })
    }
}

/// The default settings, but with free ports and another data directory.
pub(super) fn settings(data_dir: &Path) -> Settings {
    Settings {
        data_dir: data_dir.to_owned(),
        ..command_line::settings(&["--rest-listen=127.0.0.1:0", "--core-listen=127.0.0.1:0"])
    }
}

/// The URL of a database of this process's cluster, through its `PgBouncer`.
fn pooled(url: &str) -> Option<String> {
    static PGBOUNCER: OnceLock<Option<PgBouncer>> = OnceLock::new();
    let (database, cluster) = url.split_once("?host=").unwrap();
    let (_, database) = database.rsplit_once('/').unwrap();
    // The databases of finished tests must not keep sessions.
    let start = || PgBouncer::start(cluster, "server_idle_timeout = 5");
    let pgbouncer = PGBOUNCER.get_or_init(start).as_ref()?;
    Some(pgbouncer.url(database))
}

/// A running platform with its demo shop.
pub(crate) struct Platform {
    /// `http://127.0.0.1:<port>`, of the REST API.
    pub(crate) base_url: String,
    /// `http://127.0.0.1:<port>`, of the gRPC API.
    pub(crate) core_url: String,
    /// `stores/<id>` of the demo shop.
    pub(crate) store: String,
    /// The demo shop's API client: scopes `deliveries tasks`.
    pub(crate) demo_client: Credentials,
    /// The operator's client: scopes `tasks:all admin`.
    pub(crate) operator_client: Credentials,
    clock: Clock,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
    pub(super) directory: TempDir,
    pub(super) database: Database,
}

impl Platform {
    /// Starts a platform over a database.
    pub(crate) async fn start(database: Database) -> Self {
        Self::start_with(database, |_| {}).await
    }

    /// Starts a platform with adjusted settings.
    pub(crate) async fn start_with(database: Database, adjust: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::manual(START.parse::<Timestamp>().unwrap());
        let mut settings = Settings {
            database_url: database.url.clone().map(Into::into),
            ..settings(directory.path())
        };
        adjust(&mut settings);

        let started = Box::pin(delivery::Platform::start(settings, clock.clone())).await;
        let platform = started.unwrap();

        let demo = platform.demo.clone().unwrap();
        let shutdown = CancellationToken::new();
        let started = Self {
            base_url: platform.base_url.clone(),
            core_url: platform.core_url.clone(),
            store: demo.store,
            demo_client: demo.client.unwrap(),
            operator_client: platform.operator_client.clone().unwrap(),
            clock,
            running: tokio::spawn(platform.run(shutdown.clone())),
            shutdown,
            directory,
            database,
        };
        // Reads the OpenAPI document, unless another platform of this process already did.
        Documentation::of(&started.base_url).await;
        started
    }

    /// The demo shop's REST client, with a token for `deliveries tasks`.
    pub(crate) async fn client(&self) -> ApiClient {
        self.client_for(&self.demo_client, &["deliveries", "tasks"])
            .await
    }

    /// The REST client of any API client, with a token for these scopes.
    pub(crate) async fn client_for(&self, credentials: &Credentials, scopes: &[&str]) -> ApiClient {
        ApiClient::authorized(&self.base_url, credentials, scopes).await
    }

    /// A REST client without a token.
    pub(crate) fn anonymous_client(&self) -> ApiClient {
        ApiClient::new(&self.base_url)
    }

    /// A courier's app over gRPC.
    pub(crate) async fn courier(&self) -> Courier {
        Courier::authorized(&self.core_url, &self.operator_client).await
    }

    /// The platform's operator over gRPC.
    pub(crate) async fn operator(&self) -> Operator {
        Operator::authorized(&self.core_url, &self.operator_client).await
    }

    /// A REST client of a new store without address, time slot and price list, with a token for
    /// `deliveries tasks`.
    pub(crate) async fn new_store_client(&self) -> ApiClient {
        let operator = self.operator().await;
        let store = operator.create_store("Another shop").await;
        let scopes = ["deliveries", "tasks"];
        let credentials = operator.create_client(&store, &scopes).await;
        self.client_for(&credentials, &scopes).await
    }

    /// A gRPC channel, and a token of the operator's for these scopes.
    pub(crate) async fn connect(&self, scopes: &[&str]) -> (Channel, String) {
        grpc::connect(&self.core_url, &self.operator_client, scopes).await
    }

    /// The platform's current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, duration: SignedDuration) {
        self.clock.advance(duration);
    }

    /// Shuts the platform down as SIGTERM does. Fails if a service ended with an error, or over
    /// `PostgreSQL` if a statement names no store and is no exception.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
        if let Some(url) = &self.database.url {
            statements::check(url).await;
        }
    }
}
