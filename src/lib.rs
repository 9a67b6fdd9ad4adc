//! The all-in-one: core, gateway and dispatcher in one process. Gateway and dispatcher call core without a connection.
//! Only this crate depends on all three services; they depend neither on it nor on each other.

mod data_dir;
pub mod ready;
mod settings;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, ensure};
use core_client::CoreConfig;
use core_service::CoreService;
use egress::Network;
use process::{
    listen::listen,
    local_calls::{LocalChannel, local_server},
};
use proto::iri::Collection;
use rest_gateway::RestGateway;
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use webhook_dispatcher::WebhookDispatcher;

pub use core_service::{Clock, Credentials, Demo};
pub use data_dir::{DATABASE, DataDir, MASTER_KEY};
pub use egress::Policy;
pub use rest_gateway::{RateLimitConfig, TlsConfig};
pub use settings::{DEFAULT_DATA_DIR, GrpcTlsConfig, Settings, database_of};

use crate::ready::ReadyFile;

/// Timeout of a graceful shutdown, for all services together.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// The running platform.
pub struct Platform {
    /// URL of the REST API: `http://127.0.0.1:<port>`, or `https`.
    pub base_url: String,
    /// URL of the gRPC API: `http://127.0.0.1:<port>`, or `https`.
    pub grpc_url: String,
    /// The same without TLS, for the operator's commands: [`Self::grpc_url`], or if that has TLS, a
    /// listener on loopback.
    pub core_url: String,
    /// The demo store and its API client, unless there is no demo.
    pub demo: Option<Demo>,
    /// The operator's API client, unless its secret was replaced or it was disabled.
    pub operator_client: Option<Credentials>,
    /// In shutdown order: core, which the others depend on, is last.
    services: [ServiceHandle; 3],
    service_stopped: CancellationToken,
    data_dir: DataDir,
}

impl Platform {
    /// Starts all services and writes `ready.json`. Errors are messages for the operator.
    pub async fn start(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        if let Some(setting) = settings.beyond_this_machine()
            && !settings.no_demo
        {
            ensure!(
                settings.demo_on_a_network,
                "{setting} would serve the demo shop beyond this machine: set --no-demo to start without it, or --demo-on-a-network yes"
            );
            tracing::warn!(
                "the demo shop is served beyond this machine, without the demo's permissions (webhooks over http and to loopback, gRPC reflection, no rate limits)"
            );
        }
        let data_dir = DataDir::lock(&settings.data_dir)?;
        ready::clear(&settings.data_dir)?;
        // Before the services: tokens and links contain URLs with these ports.
        let rest_listener = listen(settings.rest_listen, "--rest-listen")?;
        let core_listener = listen(settings.core_listen, "--core-listen")?;
        let base_url = local_url(settings.tls.scheme(), rest_listener.local_addr()?);
        let grpc_url = local_url(settings.grpc_tls.scheme(), core_listener.local_addr()?);
        let (local_server, channel) = local_server();
        let (core_url, own_listener) = own_listener(&settings, &grpc_url).await?;
        let public_url = match &settings.public_url {
            Some(url) => url.clone(),
            None => base_url
                .parse()
                .context("the address of the REST API is not a valid URL")?,
        };

        let mut core = CoreService::new(core_config(&settings, &public_url)?, core_listener, clock)
            .await?
            .with_plaintext_listener(own_listener)
            .with_local_server(local_server);
        let (clients, demo) = core.ensure_clients(!settings.no_demo).await?;
        let gateway = RestGateway::new(
            gateway_config(&settings, &core_url, &channel, public_url)?,
            rest_listener,
        )?;
        let dispatcher = WebhookDispatcher::new(&dispatcher_config(
            &settings,
            &core_url,
            &channel,
            clients.dispatcher,
        )?)?;

        gateway.register_metrics(core.registry());
        dispatcher.register_metrics(core.registry());

        let service_stopped = CancellationToken::new();
        let services = [
            ServiceHandle::spawn("gateway", &service_stopped, |shutdown| async {
                gateway.run(shutdown).await;
                Ok(())
            }),
            ServiceHandle::spawn("webhook dispatcher", &service_stopped, |shutdown| async {
                dispatcher.run(shutdown).await;
                Ok(())
            }),
            ServiceHandle::spawn("core", &service_stopped, |shutdown| async {
                Ok(core.run(shutdown).await?)
            }),
        ];
        let platform = Self {
            base_url,
            grpc_url,
            core_url,
            demo,
            operator_client: clients.operator,
            services,
            service_stopped,
            data_dir,
        };
        platform.ready().write(&settings.data_dir)?;
        Ok(platform)
    }

    /// Runs until `shutdown` is cancelled or a service stops unexpectedly, then drains. Fails in the
    /// second case.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let requested = tokio::select! {
            () = shutdown.cancelled() => true,
            () = self.service_stopped.cancelled() => false,
        };

        // First, so that scripts and commands do not find a platform that shuts down.
        let cleared = ready::clear(self.data_dir.path());

        let [gateway, dispatcher, core] = self.services;
        let now = Instant::now();
        // Staggered timeouts: a stuck connection must leave core, which the others depend on, time
        // to drain.
        let (gateway, dispatcher) = tokio::join!(
            gateway.stop(now + DRAIN_TIMEOUT / 2),
            dispatcher.stop(now + DRAIN_TIMEOUT * 5 / 6)
        );
        gateway
            .and(dispatcher)
            .and(core.stop(now + DRAIN_TIMEOUT).await)?;
        cleared?;
        ensure!(requested, "a service of the platform stopped unexpectedly");
        Ok(())
    }

    fn ready(&self) -> ReadyFile {
        ReadyFile {
            base_url: self.base_url.clone(),
            core_url: self.core_url.clone(),
            pid: std::process::id(),
            store: self.demo.as_ref().map(|demo| {
                let id = Collection::Stores.last_segment(&demo.store);
                id.unwrap_or(&demo.store).to_owned()
            }),
            demo_client: self.demo.as_ref().and_then(|demo| demo.client.clone()),
            operator_client: self.operator_client.clone(),
        }
    }
}

/// A handle to the gateway, the core or the dispatcher.
struct ServiceHandle {
    name: &'static str,
    shutdown: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl ServiceHandle {
    /// Spawns a service. Cancels `stopped` when the service ends, even by a panic.
    fn spawn<Service>(
        name: &'static str,
        stopped: &CancellationToken,
        run: impl FnOnce(CancellationToken) -> Service,
    ) -> Self
    where
        Service: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let shutdown = CancellationToken::new();
        let service = run(shutdown.clone());
        let stopped = stopped.clone().drop_guard();
        Self {
            name,
            shutdown,
            task: tokio::spawn(async move {
                let _stopped = stopped;
                service.await
            }),
        }
    }

    /// Drains the service until the deadline, then aborts it.
    async fn stop(mut self, deadline: Instant) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let Ok(result) = timeout_at(deadline, &mut self.task).await else {
            tracing::warn!("the {} has not drained in time", self.name);
            self.task.abort();
            return Ok(());
        };
        result?.with_context(|| format!("the {} failed", self.name))
    }
}

/// The settings of core, with the files of the data directory.
fn core_config(settings: &Settings, public_url: &Url) -> anyhow::Result<core_service::Config> {
    let in_data_dir = |name| settings.data_dir.join(name);
    Ok(core_service::Config {
        listen: settings.core_listen,
        tls: settings.grpc_tls.of_core(),
        allow_plaintext: settings.allow_plaintext,
        database: database_of(settings.database.clone(), &settings.data_dir)?,
        database_connections: settings.database_connections,
        health_listen: settings.health_listen,
        public_url: public_url.as_str().trim_end_matches('/').to_owned(),
        platform: settings.platform.clone(),
        router: settings.router.clone(),
        webhooks: settings.webhooks,
        deliveries: settings.deliveries,
        rate_limits: core_rate_limits(settings),
        egress: egress(settings),
        reflection: settings.reflection || settings.has_demo_permissions(),
        all_in_one: true,
        gazetteer_file: in_data_dir("addresses.sqlite"),
        images: settings::images_of(settings),
        geocoding: settings.geocoding.clone(),
        master_key_file: in_data_dir(MASTER_KEY),
        ..core_service::Config::default()
    })
}

fn gateway_config(
    settings: &Settings,
    core_url: &str,
    channel: &LocalChannel,
    public_url: Url,
) -> anyhow::Result<rest_gateway::Config> {
    Ok(rest_gateway::Config {
        core_url: vec![core_url.parse()?],
        core: local(channel),
        public_url: Some(public_url),
        tls: settings.tls.clone(),
        platform_name: settings.platform_name.clone(),
        platform: rest_gateway::PlatformConfig {
            timezone: settings
                .platform
                .timezone
                .iana_name()
                .context("--timezone has no IANA name")?
                .to_owned(),
            locale: settings.platform.locale.clone(),
            country: settings.platform.country.as_str().to_owned(),
            currency: settings.currency,
            map_center: settings.map_center.clone(),
        },
        rate_limits: rate_limits(settings),
        // No load balancer has to notice the shutdown.
        drain_grace: Duration::ZERO,
        drain_timeout: DRAIN_TIMEOUT / 2,
        ..rest_gateway::Config::default()
    })
}

fn dispatcher_config(
    settings: &Settings,
    core_url: &str,
    channel: &LocalChannel,
    client: Credentials,
) -> anyhow::Result<webhook_dispatcher::Config> {
    Ok(webhook_dispatcher::Config {
        core_urls: vec![core_url.parse()?],
        core: local(channel),
        client_key: Some(client.api_key),
        client_secret: Some(client.api_secret.into()),
        platform_name: settings.platform_name.clone(),
        egress: egress(settings),
        ..webhook_dispatcher::Config::default()
    })
}

/// Calls do not leave this process.
fn local(channel: &LocalChannel) -> CoreConfig {
    CoreConfig {
        allow_plaintext_core: true,
        local: Some(channel.clone()),
        ..CoreConfig::default()
    }
}

fn rate_limits(settings: &Settings) -> RateLimitConfig {
    match &settings.rate_limits {
        Some(limits) => limits.clone(),
        None if settings.has_demo_permissions() => RateLimitConfig::off(),
        None => RateLimitConfig::default(),
    }
}

/// The same limits for callers of gRPC.
fn core_rate_limits(settings: &Settings) -> core_service::RateLimitConfig {
    let RateLimitConfig {
        client,
        token_client,
        token_address,
        tracking_address,
        ..
    } = rate_limits(settings);
    core_service::RateLimitConfig {
        client,
        token_client,
        token_peer: token_address,
        tracking_link: client,
        tracking_peer: tracking_address,
        ..core_service::RateLimitConfig::off()
    }
}

/// The policy of the flags; the demo also permits webhooks over http and on this machine.
fn egress(settings: &Settings) -> Policy {
    let mut policy = settings.egress.clone();
    if settings.has_demo_permissions() {
        policy.allow_http = true;
        let loopback = LOOPBACK.map(|text| text.parse::<Network>().expect("the text is a network"));
        policy.allowed_networks.extend(loopback);
    }
    policy
}

/// The URL of core for this machine: that of the gRPC API or, if the API is served over TLS, that
/// of another listener without TLS. So the API's certificate need not name this machine, and the
/// operator's commands need no client certificate.
async fn own_listener(
    settings: &Settings,
    grpc_url: &str,
) -> anyhow::Result<(String, Option<TcpListener>)> {
    if settings.grpc_tls.grpc_tls_certificate.is_none() {
        return Ok((grpc_url.to_owned(), None));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("cannot listen on a port of 127.0.0.1 for the operator's commands")?;
    Ok((local_url("http", listener.local_addr()?), Some(listener)))
}

/// The URL of a listener on this machine.
fn local_url(scheme: &str, addr: SocketAddr) -> String {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, addr.port()))
}
