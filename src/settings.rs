//! Every setting of the all-in-one: a flag, an environment variable and a default each.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::Args;
use core_service::{PlatformConfig, RouterConfig, WebhookConfig};
use geocoding::GeocodingConfig;
use rest_gateway::{Currency, LatLng};
use url::Url;

/// Where `delivery` keeps everything unless told otherwise.
pub const DEFAULT_DATA_DIR: &str = "./delivery-data";

/// What the all-in-one is started with.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Directory of the database, the master key and ready.json; made if it is not there.
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub data_dir: PathBuf,

    /// Address of the REST API. Port 0: any free one.
    #[arg(
        long,
        env = "DELIVERY_REST_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8080"
    )]
    pub rest_listen: SocketAddr,

    /// Address of the gRPC API. Port 0: any free one.
    #[arg(
        long,
        env = "DELIVERY_CORE_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:50051"
    )]
    pub core_listen: SocketAddr,

    /// Database instead of the embedded SQLite: postgres://… or sqlite://… A password does not
    /// belong into a flag, which others can see: have it in this variable, in PGPASSWORD, in the
    /// file that PGPASSFILE names, or in --database-url-file.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<String>,

    /// File with the database's URL, readable by its owner alone.
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    pub database_url_file: Option<PathBuf>,

    /// The address by which clients reach the REST API, if it is another than it listens on:
    /// goes into tokens, Location headers and links.
    #[arg(
        long,
        env = "DELIVERY_PUBLIC_URL",
        value_name = "URL",
        value_parser = proto::public_url::parse
    )]
    pub public_url: Option<Url>,

    /// The platform's name; webhooks are signed in X-<NAME>-Signature.
    #[arg(
        long,
        env = "DELIVERY_PLATFORM_NAME",
        value_name = "NAME",
        default_value = "Service"
    )]
    pub platform_name: String,

    /// The platform's currency, as /api/settings tells it (ISO 4217).
    #[arg(
        long,
        env = "DELIVERY_CURRENCY",
        value_name = "CODE",
        default_value = "EUR"
    )]
    pub currency: Currency,

    /// Where the platform's maps begin, as /api/settings tells it.
    #[arg(
        long,
        env = "DELIVERY_LATLNG",
        value_name = "LAT,LNG",
        allow_hyphen_values = true,
        default_value_t
    )]
    pub latlng: LatLng,

    /// Serve gRPC without TLS beyond this machine: tokens and secrets pass in the clear
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,

    /// Where /healthz, /readyz and /metrics are served over HTTP; nowhere unless given.
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
    /// The defaults, but on free loopback ports and with another data directory.
    pub fn on_free_ports(data_dir: &Path) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data_dir: data_dir.to_owned(),
            rest_listen: any,
            core_listen: any,
            database_url: None,
            database_url_file: None,
            allow_plaintext: false,
            health_listen: None,
            public_url: None,
            platform_name: "Service".to_owned(),
            currency: Currency::EUR,
            latlng: LatLng::default(),
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
    fn free_ports_are_the_only_difference_to_the_defaults() {
        let directory = Path::new(DEFAULT_DATA_DIR);
        let arguments = [
            "delivery",
            "--rest-listen=127.0.0.1:0",
            "--core-listen=127.0.0.1:0",
        ];

        let parsed = CommandLine::parse_from(arguments).settings;

        let free = Settings::on_free_ports(directory);
        assert_eq!(format!("{parsed:?}"), format!("{free:?}"));
    }
}
