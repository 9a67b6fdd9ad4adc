//! The settings of the all-in-one, each with a flag, an environment variable and a default.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::Args;
use core_service::{PlatformConfig, RouterConfig, WebhookConfig};
use geocoding::GeocodingConfig;
use rest_gateway::{Currency, LatLng};
use url::Url;

/// The default data directory.
pub const DEFAULT_DATA_DIR: &str = "./delivery-data";

/// The settings of the all-in-one.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Directory of the database, the master key and ready.json; created if missing
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub data_dir: PathBuf,

    /// Address of the REST API; port 0 picks a free one
    #[arg(
        long,
        env = "DELIVERY_REST_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8080"
    )]
    pub rest_listen: SocketAddr,

    /// Address of the gRPC API; port 0 picks a free one
    #[arg(
        long,
        env = "DELIVERY_CORE_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:50051"
    )]
    pub core_listen: SocketAddr,

    /// Database instead of the embedded SQLite: postgres://… or sqlite://…
    ///
    /// Flags are visible to other users: set a password in this environment variable, PGPASSWORD,
    /// the file in PGPASSFILE, or --database-url-file.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<String>,

    /// File with the database URL; only its owner may have access
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    pub database_url_file: Option<PathBuf>,

    /// URL at which clients reach the REST API, if it differs from the listen address; used in
    /// tokens, Location headers and links
    #[arg(
        long,
        env = "DELIVERY_PUBLIC_URL",
        value_name = "URL",
        value_parser = proto::public_url::parse
    )]
    pub public_url: Option<Url>,

    /// Name of the platform; webhook signatures are in the header X-<NAME>-Signature
    #[arg(
        long,
        env = "DELIVERY_PLATFORM_NAME",
        value_name = "NAME",
        default_value = "Service"
    )]
    pub platform_name: String,

    /// Currency in /api/settings, ISO 4217
    #[arg(
        long,
        env = "DELIVERY_CURRENCY",
        value_name = "CODE",
        default_value = "EUR"
    )]
    pub currency: Currency,

    /// Centre of the platform's maps, in /api/settings
    #[arg(
        long,
        env = "DELIVERY_MAP_CENTER",
        value_name = "LAT,LNG",
        allow_hyphen_values = true,
        default_value_t
    )]
    pub map_center: LatLng,

    /// Serve gRPC without TLS on non-loopback addresses; tokens and secrets are then unencrypted
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,

    /// Address of /healthz, /readyz and /metrics over HTTP; disabled by default
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
}

impl Settings {
    /// The defaults, but with free loopback ports and another data directory.
    pub fn on_free_ports(data_dir: &Path) -> Self {
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data_dir: data_dir.to_owned(),
            rest_listen: free_port,
            core_listen: free_port,
            database_url: None,
            database_url_file: None,
            allow_plaintext: false,
            health_listen: None,
            public_url: None,
            platform_name: "Service".to_owned(),
            currency: Currency::EUR,
            map_center: LatLng::default(),
            geocoding: GeocodingConfig::default(),
            platform: PlatformConfig::default(),
            router: RouterConfig::default(),
            webhooks: WebhookConfig::default(),
        }
    }
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
    fn only_the_ports_differ_from_the_defaults() {
        let directory = Path::new(DEFAULT_DATA_DIR);
        let arguments = [
            "delivery",
            "--rest-listen=127.0.0.1:0",
            "--core-listen=127.0.0.1:0",
        ];

        let parsed = CommandLine::parse_from(arguments).settings;

        let settings = Settings::on_free_ports(directory);
        assert_eq!(format!("{parsed:?}"), format!("{settings:?}"));
    }
}
