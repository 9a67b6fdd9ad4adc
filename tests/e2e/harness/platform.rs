//! A whole platform in this process: the all-in-one, on free ports, with a manual clock. Or two over
//! one PostgreSQL database, to test guarantees across cores.

use std::{path::PathBuf, sync::OnceLock};

use delivery::{Clock, Credentials, Policy, RateLimitConfig, Settings};
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
#[derive(Clone)]
pub(crate) struct Database {
    /// `None`: the embedded SQLite.
    pub(crate) url: Option<String>,
}

impl Database {
    /// SQLite, and PostgreSQL where it is installed.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        [Self::sqlite()].into_iter().chain(Self::postgres())
    }

    /// The flag that makes `delivery` use it; none for SQLite in the data directory.
    pub(crate) fn flag(&self) -> Option<String> {
        let url = self.url.as_ref()?;
        Some(format!("--database-url={url}"))
    }

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

    /// Like [`Database::postgres`], but never through `PgBouncer`, which refuses the `options` that a
    /// test appends to the URL.
    pub(crate) fn unpooled_postgres() -> Option<Self> {
        postgres::create_database().map(|url| Self { url: Some(url) })
    }
}

/// The URL of a database of this process's cluster, through its `PgBouncer`.
fn pooled(url: &str) -> Option<String> {
    static PGBOUNCER: OnceLock<Option<PgBouncer>> = OnceLock::new();
    let (database, cluster) = url.split_once("?host=").unwrap();
    let (_, database) = database.rsplit_once('/').unwrap();
    // The databases of finished tests must not keep connections to the server.
    let start = || PgBouncer::start(cluster, "server_idle_timeout = 5");
    let pgbouncer = PGBOUNCER.get_or_init(start).as_ref()?;
    Some(pgbouncer.url(database))
}

/// A clock that stays at [`START`] until it is moved.
fn clock() -> Clock {
    Clock::manual(START.parse::<Timestamp>().unwrap())
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
    pub(crate) database: Database,
}

impl Platform {
    /// Starts a platform over a database.
    pub(crate) async fn start(database: Database) -> Self {
        Self::start_with(database, |_| {}).await
    }

    /// Starts a platform with adjusted settings.
    pub(crate) async fn start_with(database: Database, adjust: impl FnOnce(&mut Settings)) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), database, clock(), adjust).await
    }

    /// Starts a platform over PostgreSQL, if there is one; with the URL of its database.
    pub(crate) async fn start_on_postgres() -> Option<(Self, String)> {
        let database = Database::postgres()?;
        let url = database.url.clone()?;
        Some((Self::start(database).await, url))
    }

    /// Starts two over one database, with the same master key and clock; `None` without PostgreSQL.
    pub(crate) async fn start_two() -> Option<[Self; 2]> {
        Self::start_two_with(|_| {}).await
    }

    /// Like [`Platform::start_two`], with adjusted settings.
    pub(crate) async fn start_two_with(adjust: impl Fn(&mut Settings)) -> Option<[Self; 2]> {
        let adjust = |settings: &mut Settings| {
            // The same issuer: each accepts the other's tokens.
            settings.public_url = Some("http://delivery.example".parse().unwrap());
            settings.demo_on_a_network = true;
            // With a public URL, plain HTTP and loopback addresses are denied by default.
            settings.egress = Policy {
                allow_http: true,
                allowed_networks: vec!["127.0.0.0/8".parse().unwrap()],
                ..Policy::default()
            };
            settings.rate_limits = Some(RateLimitConfig::off());
            adjust(settings);
        };
        let (database, clock) = (Database::postgres()?, clock());
        let directory = tempfile::tempdir().unwrap();
        let first = Self::start_at(directory, database.clone(), clock.clone(), &adjust).await;
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy(first.master_key_file(), directory.path().join("master.key")).unwrap();
        let images = Some(first.directory.path().join("images"));
        let adjust_second = |settings: &mut Settings| {
            adjust(settings);
            settings.images = images;
        };
        let second = Self::start_at(directory, database, clock, adjust_second).await;
        Some([first, second])
    }

    async fn start_at(
        directory: TempDir,
        database: Database,
        clock: Clock,
        adjust: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = Settings {
            data_dir: directory.path().to_owned(),
            ..command_line::settings(&["--rest-listen=127.0.0.1:0", "--core-listen=127.0.0.1:0"])
        };
        settings.database.database_url = database.url.clone().map(Into::into);
        settings.images = Some(directory.path().join("images"));
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

    /// How many images have a file.
    pub(crate) fn image_files(&self) -> usize {
        let images = self.directory.path().join("images");
        let directories = std::fs::read_dir(images).unwrap();
        let directories = directories.map(|entry| entry.unwrap().path());
        let directories = directories.filter(|path| path.is_dir());
        let files = directories.map(|path| std::fs::read_dir(path).unwrap().count());
        files.sum()
    }

    /// The file of its master keys.
    pub(crate) fn master_key_file(&self) -> PathBuf {
        self.directory.path().join("master.key")
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

    /// A REST client that completes tasks.
    pub(crate) async fn dispatch_board(&self) -> ApiClient {
        self.client_for(&self.operator_client, &["tasks:all"]).await
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

    /// Advances the clock, which two platforms share.
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

    /// Stops two platforms over one database.
    pub(crate) async fn stop_both(platforms: [Self; 2]) {
        for platform in platforms {
            platform.stop().await;
        }
    }
}
