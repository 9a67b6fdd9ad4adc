//! The all-in-one: core, gateway and dispatcher in one process, over real sockets on loopback.
//! The one place that knows all three; they know nothing of it, nor of each other.

mod data_dir;
mod part;
pub mod ready;
mod settings;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context, ensure};
use core_client::CoreConfig;
use core_service::CoreService;
use egress::Network;
use process::secret_file;
use proto::iri::Collection;
use rest_gateway::RestGateway;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;
use webhook_dispatcher::WebhookDispatcher;

pub use core_service::{Clock, Credentials, Demo};
pub use settings::{DEFAULT_DATA_DIR, Settings};

use crate::{data_dir::DataDir, part::Part, ready::Ready};

/// How long what is in flight may take to finish, all parts together.
const DRAIN: Duration = Duration::from_secs(30);

/// A whole platform, serving.
pub struct Platform {
    /// `http://127.0.0.1:<port>`, of the REST API.
    pub base_url: String,
    /// `http://127.0.0.1:<port>`, of the gRPC API.
    pub core_url: String,
    /// The demo shop and who may call.
    pub demo: Demo,
    /// In the order in which they stop: nobody loses whom it still needs.
    parts: [Part; 3],
    part_ended: CancellationToken,
    data_dir: DataDir,
}

impl Platform {
    /// Starts everything and writes `ready.json`. Fails with a sentence for the operator.
    pub async fn start(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        let data_dir = DataDir::claim(&settings.data_dir)?;
        ready::clear(&settings.data_dir)?;
        // Both before anything else: the ports decide the addresses that tokens and links carry.
        let rest_listener = listen(settings.rest_listen, "--rest-listen").await?;
        let core_listener = listen(settings.core_listen, "--core-listen").await?;
        let base_url = local_url(rest_listener.local_addr()?);
        let core_url = local_url(core_listener.local_addr()?);
        let public_url = match &settings.public_url {
            Some(url) => url.clone(),
            None => base_url.parse().context("the REST address has no URL")?,
        };

        let core = CoreService::new(
            core_config(&settings, &data_dir, &public_url)?,
            core_listener,
            clock,
        )
        .await?;
        let demo = core.ensure_demo().await?;
        let gateway = RestGateway::new(
            gateway_config(&settings, &core_url, public_url)?,
            rest_listener,
        )?;
        let dispatcher = WebhookDispatcher::new(&dispatcher_config(&settings, &core_url, &demo)?)?;

        let part_ended = CancellationToken::new();
        let parts = [
            Part::spawn("gateway", &part_ended, |shutdown| async {
                gateway.run(shutdown).await;
                Ok(())
            }),
            Part::spawn("webhook dispatcher", &part_ended, |shutdown| async {
                dispatcher.run(shutdown).await;
                Ok(())
            }),
            Part::spawn("core", &part_ended, |shutdown| async {
                Ok(core.run(shutdown).await?)
            }),
        ];
        let platform = Self {
            base_url,
            core_url,
            demo,
            parts,
            part_ended,
            data_dir,
        };
        platform.ready().write(&settings.data_dir)?;
        Ok(platform)
    }

    /// Serves until it is told to shut down or a part ends by itself, which is an error; then
    /// finishes what is in flight.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let asked = tokio::select! {
            () = shutdown.cancelled() => true,
            () = self.part_ended.cancelled() => false,
        };

        // Scripts and commands must find nobody who is on the way out.
        let cleared = ready::clear(self.data_dir.path());

        let [gateway, dispatcher, core] = self.parts;
        let now = Instant::now();
        // One peer that does not read must not take the time of all: core, which both others
        // need to the end, always has some left.
        let (gateway, dispatcher) = tokio::join!(
            gateway.stop(now + DRAIN / 2),
            dispatcher.stop(now + DRAIN * 5 / 6)
        );
        gateway.and(dispatcher).and(core.stop(now + DRAIN).await)?;
        cleared?;
        ensure!(asked, "a part of the platform ended by itself");
        Ok(())
    }

    fn ready(&self) -> Ready {
        Ready {
            base_url: self.base_url.clone(),
            core_url: self.core_url.clone(),
            pid: std::process::id(),
            store: Collection::Stores
                .member(&self.demo.store)
                .unwrap_or(&self.demo.store)
                .to_owned(),
            demo_client: self.demo.demo_client.clone(),
            operator_client: self.demo.operator_client.clone(),
        }
    }
}

/// What the demo permits, a production start does not unless told: webhooks over http and to this
/// machine itself, and gRPC reflection.
fn core_config(
    settings: &Settings,
    data_dir: &DataDir,
    public_url: &Url,
) -> anyhow::Result<core_service::Config> {
    let database_url = match (&settings.database_url, &settings.database_url_file) {
        (Some(url), _) => url.clone(),
        (None, Some(file)) => secret_file::read(file)?.trim().to_owned(),
        (None, None) => sqlite_url(&data_dir.private_file("delivery.sqlite")?)?,
    };
    Ok(core_service::Config {
        listen: settings.core_listen,
        allow_plaintext: settings.allow_plaintext,
        health_listen: settings.health_listen,
        public_url: public_url.as_str().trim_end_matches('/').to_owned(),
        platform: settings.platform.clone(),
        router: settings.router.clone(),
        webhooks: settings.webhooks,
        allow_http: true,
        allowed_networks: loopback()?,
        reflection: true,
        all_in_one: true,
        addresses: data_dir.file("addresses.sqlite"),
        geocoding: settings.geocoding.clone(),
        ..core_service::Config::new(database_url, data_dir.file("master.key"))
    })
}

fn gateway_config(
    settings: &Settings,
    core_url: &str,
    public_url: Url,
) -> anyhow::Result<rest_gateway::Config> {
    Ok(rest_gateway::Config {
        core_url: vec![core_url.parse()?],
        core: CoreConfig {
            allow_plaintext_core: true,
            ..CoreConfig::default()
        },
        public_url: Some(public_url),
        platform_name: settings.platform_name.clone(),
        platform: rest_gateway::PlatformConfig {
            timezone: settings
                .platform
                .timezone
                .iana_name()
                .context("--timezone has no name")?
                .to_owned(),
            locale: settings.platform.locale.clone(),
            country: settings.platform.country.as_str().to_owned(),
            currency: settings.currency,
            latlng: settings.latlng,
        },
        rate_limits: rest_gateway::RateLimitConfig::off(),
        // There is no other gateway to go to.
        drain_grace: Duration::ZERO,
        drain_timeout: DRAIN / 2,
        ..rest_gateway::Config::default()
    })
}

fn dispatcher_config(
    settings: &Settings,
    core_url: &str,
    demo: &Demo,
) -> anyhow::Result<webhook_dispatcher::Config> {
    let client = demo.dispatcher_client.clone();
    Ok(webhook_dispatcher::Config {
        core_urls: vec![core_url.parse()?],
        // It is this process, by whatever address.
        core: CoreConfig {
            allow_plaintext_core: true,
            ..CoreConfig::default()
        },
        client_key: Some(client.api_key),
        client_secret: Some(client.api_secret.into()),
        platform_name: settings.platform_name.clone(),
        allow_http: true,
        allow_networks: loopback()?,
        ..webhook_dispatcher::Config::default()
    })
}

fn loopback() -> anyhow::Result<Vec<Network>> {
    let networks = ["127.0.0.0/8", "::1/128"].map(str::parse);
    Ok(networks.into_iter().collect::<Result<_, _>>()?)
}

/// In a URL these would begin something else.
fn sqlite_url(file: &Path) -> anyhow::Result<String> {
    let path = file
        .to_str()
        .with_context(|| {
            format!(
                "the data directory's name must be UTF-8: {}",
                file.display()
            )
        })?
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    Ok(format!("sqlite://{path}?mode=rwc"))
}

async fn listen(addr: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(addr).await.with_context(|| {
        format!("cannot listen on {addr}; choose another address with {flag}, or port 0 for any free one")
    })
}

/// How this machine reaches a listener of its own.
fn local_url(addr: SocketAddr) -> String {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, addr.port()))
}
