//! A core: storage, keys and gRPC services on one listener.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use geocoding::{
    Caching, Chain, Gazetteer, Geocoder, GeocoderSetting, Online,
    gazetteer::{GazetteerGeocoder, ImportError},
};
use process::clock::Clock;
use process::{health::Health as HealthListener, secret_file, tls};
use proto::{
    addresses_server::AddressesServer, api_clients_server::ApiClientsServer,
    deliveries_server::DeliveriesServer, events_server::EventsServer,
    notifications_server::NotificationsServer, price_lists_server::PriceListsServer,
    retail_prices_server::RetailPricesServer, signing_keys_server::SigningKeysServer,
    stores_server::StoresServer, tasks_server::TasksServer, time_slots_server::TimeSlotsServer,
    tokens_server::TokensServer, webhooks_server::WebhooksServer, zones_server::ZonesServer,
};
use storage::{Storage, geocodes::KeptGeocodes};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tonic::{service::Routes, transport::Server};
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
};

use crate::{
    config::Config,
    connections::{self, Calls, Tls},
    error::Error,
    grpc::{
        Attempts, Callers, Core, Definitions, Events, KeyRing, Notifications, Streams, Unsent,
        WebhookTests, attempt_log, take_over,
    },
    metrics::Metrics,
    patience,
    readiness::CoreReadiness,
    routing::OsrmError,
    vault::{self, Vault},
};

/// How long what is in flight may take after a core was told to end.
const DRAIN: Duration = Duration::from_secs(30);

/// How often a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Messages are small; more is a mistake or an attack.
const LARGEST_MESSAGE: usize = 4 * 1024 * 1024;

/// Why a core can't start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "cannot listen on {addr}; choose another address with {flag}, or port 0 for any free one"
    )]
    Listen {
        addr: SocketAddr,
        flag: &'static str,
        source: std::io::Error,
    },
    #[error(
        "gRPC on {addr} would pass tokens and secrets in the clear: serve it over TLS (core-service has --tls-certificate and --tls-key), listen on loopback, or say --allow-plaintext"
    )]
    Plaintext { addr: SocketAddr },
    #[error("gRPC cannot be served over TLS")]
    Tls(#[from] tls::Error),
    #[error(
        "no database is named: set DELIVERY_DATABASE_URL, or give --database-url or --database-url-file"
    )]
    NoDatabase,
    #[error("the database's URL cannot be taken from its file")]
    DatabaseUrlFile(#[from] secret_file::Error),
    #[error("cannot open the database")]
    Database(#[from] storage::Error),
    #[error(transparent)]
    MasterKey(#[from] vault::Error),
    #[error(
        "the master key {path} is not the one that sealed what is in this database: give the right one with --master-key-file, or the database that belongs to this key"
    )]
    WrongMasterKey { path: PathBuf },
    #[error("the token signing keys cannot be used")]
    SigningKeys(#[source] Error),
    #[error("what a dead process left cannot be taken over")]
    Leases(#[source] Error),
    #[error("TLS to geocoders cannot be set up")]
    GeocoderTls(#[source] rustls::Error),
    #[error("the demo's addresses cannot be imported")]
    Addresses(#[from] ImportError),
    #[error("the OSRM server cannot be asked")]
    Router(#[from] OsrmError),
    #[error("the first clients cannot be created")]
    Bootstrap(#[source] Error),
    #[error("gRPC cannot be served")]
    Serve(#[from] tonic::transport::Error),
    #[error("gRPC reflection cannot be served")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A core, ready to run.
pub struct CoreService {
    core: Arc<Core>,
    left_behind: LeftBehind,
    listener: TcpListener,
    addr: SocketAddr,
    tls: Option<Tls>,
    health: Option<HealthListener>,
}

/// What streams leave to be done behind them.
struct LeftBehind {
    unsent: Unsent,
    attempts: Attempts,
}

impl CoreService {
    /// Opens everything and listens; the clock is the system's.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let addr = config.listen;
        let listener = TcpListener::bind(addr)
            .await
            .map_err(|source| cannot_listen(addr, "--listen", source))?;
        Self::new(config, listener, Clock::system()).await
    }

    /// Opens everything, to serve on a listener by a clock.
    pub async fn new(
        config: Config,
        listener: TcpListener,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let addr = listener
            .local_addr()
            .map_err(|source| cannot_listen(config.listen, "--listen", source))?;
        let tls = Tls::open(&config.tls)?;
        if tls.is_none() && !addr.ip().is_loopback() && !config.allow_plaintext {
            return Err(StartError::Plaintext { addr });
        }
        let health = match config.health_listen {
            Some(addr) => Some(
                HealthListener::bind(addr)
                    .await
                    .map_err(|source| cannot_listen(addr, "--health-listen", source))?,
            ),
            None => None,
        };
        let (core, left_behind) = open(config, clock).await?;
        Ok(Self {
            core: Arc::new(core),
            left_behind,
            listener,
            addr,
            tls,
            health,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Serves until told to shut down, then finishes what is in flight.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StartError> {
        let core = self.core;
        let incoming = connections::incoming(self.listener, self.tls, shutdown.clone());
        let calls = Calls::default();
        let _health_ends = self.health.map(|listener| {
            let readiness = CoreReadiness::new(&core.storage, shutdown.clone());
            let metrics = Arc::clone(&core.metrics);
            let listener = listener.with_metrics(Arc::new(move || metrics.render()));
            let running = tokio::spawn(listener.run(Arc::new(readiness)));
            AbortOnDropHandle::new(running)
        });
        let (health, health_server) = tonic_health::server::health_reporter();
        health.set_service_status("", ServingStatus::Serving).await;
        let routes = routes(&core, health_server)?;

        let sequencer = Arc::clone(&core);
        core.loops
            .spawn(async move { sequencer.number_events().await });
        let retention = Arc::clone(&core);
        core.loops
            .spawn(async move { retention.trim_events().await });
        let answers = Arc::clone(&core);
        core.loops
            .spawn(async move { answers.remove_expired_answers().await });
        let upkeep = keep_up(&core, self.left_behind);
        let served = Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE / 2))
            .layer(calls.clone())
            .layer(patience::layer())
            .add_routes(routes)
            // Whose connections end by themselves: then those that are open are, too.
            .serve_with_incoming_shutdown(incoming, std::future::pending());
        let overdue = async {
            shutdown.cancelled().await;
            health
                .set_service_status("", ServingStatus::NotServing)
                .await;
            // Dispatchers' streams would go on for ever; they go on at another core.
            core.shutdown.cancel();
            // Who holds a connection but calls nothing is not waited for.
            if tokio::time::timeout(DRAIN, calls.none_under_way())
                .await
                .is_err()
            {
                tracing::warn!("calls were still under way after {DRAIN:?}");
            }
        };
        let result = tokio::select! {
            served = served => served.map_err(StartError::from),
            () = overdue => Ok(()),
        };

        core.shutdown.cancel();
        core.loops.close();
        core.loops.wait().await;
        core.streams_ended.cancel();
        upkeep.wait().await;
        if let Some(core) = Arc::into_inner(core) {
            let Core {
                storage, geocoder, ..
            } = core;
            drop(geocoder);
            if let Some(storage) = Arc::into_inner(storage) {
                storage.close().await?;
            }
        }
        result
    }
}

/// The loops that go on for as long as there are streams, and after them as long as they left
/// something to do.
fn keep_up(core: &Arc<Core>, left_behind: LeftBehind) -> TaskTracker {
    let upkeep = TaskTracker::new();
    let LeftBehind { unsent, attempts } = left_behind;
    let (leases, log, retention) = (Arc::clone(core), Arc::clone(core), Arc::clone(core));
    upkeep.spawn(async move { leases.release_leases(unsent).await });
    upkeep.spawn(async move { log.log_attempts(attempts).await });
    upkeep.spawn(async move { retention.remove_finished_notifications().await });
    upkeep.close();
    upkeep
}

fn cannot_listen(addr: SocketAddr, flag: &'static str, source: std::io::Error) -> StartError {
    StartError::Listen { addr, flag, source }
}

async fn open(config: Config, clock: Clock) -> Result<(Core, LeftBehind), StartError> {
    let storage = Arc::new(Storage::connect(&config.database_url()?).await?);
    let vault = open_vault(&storage, &config.master_key_file, config.all_in_one).await?;
    if storage.has_one_process() {
        take_over(&storage, config.all_in_one, clock.now())
            .await
            .map_err(StartError::Leases)?;
    }
    let router = config.router.open()?;
    let issuer = config.public_url.clone();
    let key_ring = KeyRing::load(&storage, &vault, &clock, issuer)
        .await
        .map_err(StartError::SigningKeys)?;
    let (streams, unsent) = Streams::new();
    let (log, attempts) = attempt_log();
    let gazetteer = Arc::new(Gazetteer::new(&config.addresses));
    if config.all_in_one {
        gazetteer.ensure_demo()?;
    } else if !config.addresses.exists() {
        tracing::warn!(
            path = %config.addresses.display(),
            "there are no addresses: texts cannot be geocoded until some are imported"
        );
    }
    let geocoder = geocoder(&config, &gazetteer, &storage, &clock)?;
    let core = Core {
        egress: config.egress(),
        config,
        storage,
        clock,
        vault: Arc::new(vault),
        key_ring,
        geocoder,
        gazetteer,
        router,
        callers: Callers::new(),
        definitions: Definitions::new(),
        bell: watch::Sender::new(()),
        streams: Arc::new(streams),
        webhook_tests: WebhookTests::default(),
        attempts: log,
        metrics: Arc::new(Metrics::new()),
        happened: watch::Sender::new(()),
        numbered: watch::Sender::new(()),
        shutdown: CancellationToken::new(),
        streams_ended: CancellationToken::new(),
        loops: TaskTracker::new(),
    };
    Ok((core, LeftBehind { unsent, attempts }))
}

/// The operator's geocoders, in their order.
fn geocoder(
    config: &Config,
    gazetteer: &Arc<Gazetteer>,
    storage: &Arc<Storage>,
    clock: &Clock,
) -> Result<Box<dyn Geocoder>, StartError> {
    let mut chain: Vec<Box<dyn Geocoder>> = Vec::new();
    for setting in &config.geocoding.geocoders {
        match setting {
            GeocoderSetting::Gazetteer => {
                chain.push(Box::new(GazetteerGeocoder(Arc::clone(gazetteer))));
            }
            GeocoderSetting::Online(setting) => {
                let language = &config.platform.locale;
                let online = Online::new(setting, language).map_err(StartError::GeocoderTls)?;
                let label = online.label();
                let kept = KeptGeocodes {
                    storage: Arc::clone(storage),
                    clock: clock.clone(),
                };
                chain.push(Box::new(Caching::new(online, label, Some(Box::new(kept)))));
            }
        }
    }
    Ok(Box::new(Chain(chain)))
}

/// Opens the vault, with a new master key only for a database in which nothing is sealed yet:
/// it could open nothing of what another has sealed.
pub(crate) async fn open_vault(
    storage: &Storage,
    master_key_file: &Path,
    create: bool,
) -> Result<Vault, StartError> {
    let keys = storage::signing_keys::list(storage.reader()).await?;
    let vault = if create && keys.is_empty() {
        Vault::open_or_create(master_key_file)?
    } else {
        Vault::open(master_key_file)?
    };
    if keys
        .iter()
        .any(|key| !vault.has_sealed(&key.sealed_private_key))
    {
        return Err(StartError::WrongMasterKey {
            path: master_key_file.to_owned(),
        });
    }
    Ok(vault)
}

/// Every service a core offers.
fn routes(
    core: &Arc<Core>,
    health_server: HealthServer<impl Health>,
) -> Result<Routes, StartError> {
    macro_rules! server {
        ($server:ident) => {
            $server::from_arc(Arc::clone(core)).max_decoding_message_size(LARGEST_MESSAGE)
        };
    }
    let mut routes = Routes::builder();
    routes
        .add_service(health_server)
        .add_service(server!(TokensServer))
        .add_service(server!(AddressesServer))
        .add_service(server!(StoresServer))
        .add_service(server!(ApiClientsServer))
        .add_service(server!(SigningKeysServer))
        .add_service(server!(DeliveriesServer))
        .add_service(server!(TasksServer))
        .add_service(server!(RetailPricesServer))
        .add_service(server!(PriceListsServer))
        .add_service(server!(TimeSlotsServer))
        .add_service(server!(WebhooksServer))
        .add_service(server!(ZonesServer))
        .add_service(EventsServer::new(Events(Arc::clone(core))))
        .add_service(NotificationsServer::new(Notifications(Arc::clone(core))));
    if core.config.reflection {
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .build_v1()?;
        routes.add_service(reflection);
    }
    Ok(routes.routes())
}
