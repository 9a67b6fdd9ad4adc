//! The settings of the all-in-one, each with a flag, an environment variable and a default.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{ArgAction, Args, builder::BoolishValueParser};
use core_service::{
    DEFAULT_DATABASE_CONNECTIONS, DatabaseConfig, DeliveryConfig, PlatformConfig, RouterConfig,
    WebhookConfig,
};
use egress::Policy;
use geocoding::GeocodingConfig;
use process::{logs::LogConfig, number, traces::TraceConfig};
use rest_gateway::{Currency, RateLimitConfig, TlsConfig};
use url::{Host, Url};

use crate::data_dir::DATABASE;

/// The default data directory.
pub const DEFAULT_DATA_DIR: &str = "./delivery-data";

/// The settings of the all-in-one.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Directory of the database, the master key and ready.json; created if missing. Example:
    /// `/var/lib/delivery`
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub data_dir: PathBuf,

    /// Start without the demo: no demo shop, and webhooks to https hosts on the internet only, rate
    /// limits, and no gRPC reflection, unless a flag says otherwise. Default: no. Example:
    /// `DELIVERY_NO_DEMO=yes`
    ///
    /// The last three also apply with the demo once a listener or the public URL is not on loopback.
    #[arg(long, env = "DELIVERY_NO_DEMO")]
    pub no_demo: bool,

    /// Serve the demo shop although a listener or the public URL is not on loopback. Default: no; the
    /// start is refused. Example: `yes`
    #[arg(
        long,
        env = "DELIVERY_DEMO_ON_A_NETWORK",
        value_name = "yes|no",
        default_value = "no"
    )]
    #[arg(action = ArgAction::Set, value_parser = BoolishValueParser::new(), hide_default_value = true)]
    pub demo_on_a_network: bool,

    /// Address of the REST API; port 0 picks a free one. Example: `0.0.0.0:8080`
    #[arg(long, env = "DELIVERY_REST_LISTEN", value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:8080")]
    pub rest_listen: SocketAddr,

    #[command(flatten)]
    pub tls: TlsConfig,

    /// Address of the gRPC API; port 0 picks a free one. Example: `0.0.0.0:50051`
    #[arg(long, env = "DELIVERY_CORE_LISTEN", value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:50051")]
    pub core_listen: SocketAddr,

    #[command(flatten)]
    pub grpc_tls: GrpcTlsConfig,

    #[command(flatten)]
    pub database: DatabaseConfig,

    /// Limit of open connections to `PostgreSQL`, up to 1000. Example: `50`
    #[arg(long, env = "DELIVERY_DATABASE_CONNECTIONS", value_name = "NUMBER")]
    #[arg(default_value_t = DEFAULT_DATABASE_CONNECTIONS)]
    #[arg(value_parser = number::within(1_u32, 1000, 50))]
    pub database_connections: u32,

    /// Folder of the images of tasks; created if missing. Default: `images` in the data directory, but none over
    /// another database than its own. Example: `/var/lib/delivery/images`
    #[arg(long, env = "DELIVERY_IMAGES", value_name = "FOLDER")]
    pub images: Option<PathBuf>,

    /// URL at which clients reach the REST API; used in tokens, Location headers and links. Default:
    /// the listen address. Example: `https://delivery.example`
    #[arg(long, env = "DELIVERY_PUBLIC_URL", value_name = "URL")]
    #[arg(value_parser = proto::public_url::parse)]
    pub public_url: Option<Url>,

    /// Name of the platform; webhook signatures are in the header X-<NAME>-Signature. Example:
    /// `Courier`
    #[arg(long, env = "DELIVERY_PLATFORM_NAME", value_name = "NAME")]
    #[arg(default_value = "Service")]
    pub platform_name: String,

    /// Currency in /api/settings, ISO 4217. Example: `CHF`
    #[arg(long, env = "DELIVERY_CURRENCY", value_name = "CODE")]
    #[arg(default_value = "EUR")]
    pub currency: Currency,

    /// Centre of the platform's maps, in /api/settings. Example: `50.8466,4.3528`
    #[arg(long, env = "DELIVERY_MAP_CENTER", value_name = "LAT,LNG")]
    #[arg(allow_hyphen_values = true, value_parser = rest_gateway::map_center)]
    #[arg(default_value = "48.8566,2.3522")]
    pub map_center: String,

    /// Serve gRPC without TLS on non-loopback addresses, with unencrypted tokens and secrets. Default:
    /// no. Example: `DELIVERY_ALLOW_PLAINTEXT=yes`
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,

    /// Address of /healthz, /readyz and /metrics over HTTP. Default: none. Example: `127.0.0.1:9100`
    #[arg(long, env = "DELIVERY_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub platform: PlatformConfig,

    #[command(flatten)]
    pub geocoding: GeocodingConfig,

    #[command(flatten)]
    pub router: RouterConfig,

    #[command(flatten)]
    pub webhooks: WebhookConfig,

    #[command(flatten)]
    pub deliveries: DeliveryConfig,

    #[command(flatten)]
    pub logs: LogConfig,

    #[command(flatten)]
    pub traces: TraceConfig,

    /// Serve gRPC reflection. Default: no, but the demo does on loopback. Example:
    /// `DELIVERY_REFLECTION=yes`
    #[arg(long, env = "DELIVERY_REFLECTION")]
    pub reflection: bool,

    /// Where webhooks may go. The demo adds http and loopback to it.
    #[command(flatten)]
    pub egress: Policy,

    /// `None` if no flag is given: off for the demo, otherwise the gateway's defaults.
    #[command(flatten)]
    pub rate_limits: Option<RateLimitConfig>,
}

/// TLS of the gRPC API. All files are PEM and are reloaded when they change. The flags are not
/// `--core-tls-…`: those are of programs that call a core.
#[derive(Args, Clone, Debug, Default)]
pub struct GrpcTlsConfig {
    /// Certificate chain of the gRPC API (PEM). Enables TLS. Changed TLS files are reloaded for new
    /// connections. Default: none. Example: `/etc/delivery/grpc.pem`
    ///
    /// The operator's commands with --data-dir then use another port, without TLS, on loopback.
    #[arg(long, env = "DELIVERY_GRPC_TLS_CERTIFICATE", value_name = "FILE")]
    #[arg(requires = "grpc_tls_key")]
    pub grpc_tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/grpc.key`
    #[arg(long, env = "DELIVERY_GRPC_TLS_KEY", value_name = "FILE")]
    #[arg(requires = "grpc_tls_certificate")]
    pub grpc_tls_key: Option<PathBuf>,

    /// Require client certificates, issued by one of these authorities (PEM). Default: none. Example:
    /// `/etc/delivery/ca.pem`
    #[arg(long, env = "DELIVERY_GRPC_TLS_CLIENT_CA", value_name = "FILE")]
    #[arg(requires = "grpc_tls_certificate")]
    pub grpc_tls_client_ca: Option<PathBuf>,
}

impl GrpcTlsConfig {
    /// `https` with a certificate, otherwise `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.grpc_tls_certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    pub fn of_core(&self) -> core_service::TlsConfig {
        core_service::TlsConfig {
            tls_certificate: self.grpc_tls_certificate.clone(),
            tls_key: self.grpc_tls_key.clone(),
            tls_client_ca: self.grpc_tls_client_ca.clone(),
        }
    }
}

/// The folder of images of an all-in-one: over its own database, by default in its data directory.
pub(crate) fn images_of(settings: &Settings) -> Option<PathBuf> {
    let database = &settings.database;
    let has_own = database.database_url.is_none() && database.database_url_file.is_none();
    let own = has_own.then(|| settings.data_dir.join("images"));
    settings.images.clone().or(own)
}

/// The database of an all-in-one: without a URL, the file of its data directory.
pub fn database_of(
    mut database: DatabaseConfig,
    data_dir: &Path,
) -> anyhow::Result<DatabaseConfig> {
    if database.database_url.is_none() && database.database_url_file.is_none() {
        database.database_url = Some(sqlite_url(&data_dir.join(DATABASE))?.into());
    }
    Ok(database)
}

impl Settings {
    /// Whether the demo's permissions apply: webhooks over http and to this machine, gRPC
    /// reflection, no rate limits. Beyond this machine they would let any shop reach services on
    /// loopback.
    pub fn has_demo_permissions(&self) -> bool {
        !self.no_demo && self.beyond_this_machine().is_none()
    }

    /// The setting by which the platform is reachable from other machines, if there is one.
    pub(crate) fn beyond_this_machine(&self) -> Option<String> {
        let listeners = [
            ("--rest-listen", Some(self.rest_listen)),
            ("--core-listen", Some(self.core_listen)),
            ("--health-listen", self.health_listen),
        ];
        let public = listeners.into_iter().find_map(|(flag, addr)| {
            let addr = addr.filter(|addr| !addr.ip().is_loopback())?;
            Some(format!("{flag} {addr}"))
        });
        // With a public URL, a proxy on this machine makes the listeners public.
        let url = self.public_url.as_ref().filter(|url| !is_loopback(url));
        public.or_else(|| url.map(|url| format!("--public-url {url}")))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The `sqlite:` URL of a file. Escapes characters of its path that have a meaning in URLs.
fn sqlite_url(file: &Path) -> anyhow::Result<String> {
    let path = file
        .to_str()
        .with_context(|| {
            format!(
                "the path of the data directory is not valid UTF-8: {}",
                file.display()
            )
        })?
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    Ok(format!("sqlite://{path}?mode=rwc"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn no_secret_of_the_settings_is_shown() {
        let arguments = [
            "delivery",
            "--database-url=postgres://delivery:secret@host/delivery",
            "--geocoder=photon=https://photon.example?key=secret",
            "--osrm-url=https://osrm.example?key=secret",
        ];

        let shown = format!("{:?}", CommandLine::parse_from(arguments).settings);

        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn the_demos_permissions_end_beyond_loopback_and_without_the_demo() {
        for (flags, expected) in [
            (&[][..], true),
            (
                &["--rest-listen=[::1]:80", "--health-listen=127.9.9.9:1"],
                true,
            ),
            (&["--public-url=http://localhost:8080"], true),
            (&["--public-url=http://127.0.0.1"], true),
            (&["--no-demo"], false),
            (&["--rest-listen=0.0.0.0:80"], false),
            (&["--rest-listen=[::]:80"], false),
            (&["--core-listen=192.168.0.1:80"], false),
            (&["--health-listen=[2001:db8::1]:80"], false),
            (&["--public-url=https://delivery.example"], false),
            (&["--public-url=http://localhost.example"], false),
        ] {
            let arguments = ["delivery"].iter().chain(flags);
            let settings = CommandLine::parse_from(arguments).settings;
            assert_eq!(settings.has_demo_permissions(), expected, "{flags:?}");
        }
    }
}
