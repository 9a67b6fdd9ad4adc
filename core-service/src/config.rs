//! Every setting of a core, with its flag, environment variable and default.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use domain::{
    signing_key::LONGEST_TOKEN,
    store::{Country, parse_time_zone},
};
use egress::Network;
use geocoding::GeocodingConfig;
use jiff::{SignedDuration, tz::TimeZone};
use process::{
    command_line::{DATABASE_URL, MayHoldSecret},
    secret_file,
};
use proto::public_url::InvalidPublicUrl;
use url::Url;

pub use crate::connections::TlsConfig;

use crate::{routing::RouterConfig, service::StartError};

const EVENT_RETENTION_DAYS: u16 = 30;

/// Settings of a core.
#[derive(Args, Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct Config {
    /// Where gRPC is served; port 0 takes any free one.
    #[arg(long, env = "DELIVERY_CORE_LISTEN", default_value = "127.0.0.1:50051")]
    pub listen: SocketAddr,

    #[command(flatten)]
    pub tls: TlsConfig,

    /// Let gRPC be served without TLS beyond loopback: tokens and secrets pass in the clear.
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,

    /// Where `/healthz`, `/readyz` and `/metrics` are served over HTTP; nowhere unless given.
    #[arg(long, env = "DELIVERY_CORE_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    /// `postgres://…`, or `sqlite://FILE?mode=rwc`. A password does not belong into a flag, which
    /// others can see: have it in this variable, in `PGPASSWORD`, in the file that `PGPASSFILE`
    /// names, or in `--database-url-file`.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        required_unless_present = "database_url_file",
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<String>,

    /// File with the database's URL, readable by its owner alone.
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    pub database_url_file: Option<PathBuf>,

    /// The key that seals secrets at rest; the same for every core of a platform. `bootstrap`
    /// creates it.
    #[arg(long, env = "DELIVERY_MASTER_KEY_FILE", default_value = "master.key")]
    pub master_key_file: PathBuf,

    /// The addresses that texts are found among. `delivery addresses import` replaces them; so
    /// does renaming a file made elsewhere to this one.
    #[arg(
        long,
        env = "DELIVERY_ADDRESSES",
        value_name = "FILE",
        default_value = "addresses.sqlite"
    )]
    pub addresses: PathBuf,

    #[command(flatten)]
    pub geocoding: GeocodingConfig,

    /// The address under which shops reach the REST API: issuer and audience of tokens.
    #[arg(
        long,
        env = "DELIVERY_PUBLIC_URL",
        default_value = "http://127.0.0.1:8080",
        value_parser = public_url
    )]
    pub public_url: String,

    #[command(flatten)]
    pub platform: PlatformConfig,

    #[command(flatten)]
    pub router: RouterConfig,

    /// How long an access token is good, in seconds.
    #[arg(long, env = "DELIVERY_TOKEN_LIFETIME", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..=i64::from(LONGEST_TOKEN)))]
    pub token_lifetime: u32,

    /// Let webhooks be called over http, not https alone.
    #[arg(long, env = "DELIVERY_WEBHOOK_ALLOW_HTTP")]
    pub allow_http: bool,

    /// Let webhooks be in this network although it is not public (CIDR); repeatable.
    #[arg(
        long = "allow-network",
        env = "DELIVERY_WEBHOOK_ALLOW_NETWORK",
        value_delimiter = ','
    )]
    pub allowed_networks: Vec<Network>,

    /// Let no webhook be on this port; repeatable.
    #[arg(
        long = "refuse-port",
        env = "DELIVERY_WEBHOOK_REFUSE_PORT",
        value_delimiter = ','
    )]
    pub refused_ports: Vec<u16>,

    #[command(flatten)]
    pub webhooks: WebhookConfig,

    /// How many days events are kept, so that shops can catch up with them.
    #[arg(long, env = "DELIVERY_EVENT_RETENTION_DAYS", value_name = "DAYS", default_value_t = EVENT_RETENTION_DAYS, value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub event_retention_days: u16,

    /// Serve gRPC reflection.
    #[arg(long, env = "DELIVERY_REFLECTION")]
    pub reflection: bool,

    /// This process is the all-in-one: it creates the master key at its first start, and over
    /// `SQLite` there is no other, so that a lease found at the start is a dead process's.
    #[arg(skip)]
    pub all_in_one: bool,
}

/// How long webhooks and what they were told are kept.
#[derive(Args, Clone, Copy, Debug)]
pub struct WebhookConfig {
    /// Disable a webhook that has only failed for this long, in days.
    #[arg(long, env = "DELIVERY_WEBHOOK_DISABLE_AFTER", value_name = "DAYS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub webhook_disable_after: u16,

    /// Remove notifications, and the attempts made, so long after they ended, in days.
    #[arg(long, env = "DELIVERY_NOTIFICATION_RETENTION", value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    pub notification_retention: u16,
}

impl WebhookConfig {
    pub(crate) fn disable_after(self) -> SignedDuration {
        days(self.webhook_disable_after)
    }

    pub(crate) fn retention(self) -> SignedDuration {
        days(self.notification_retention)
    }
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            webhook_disable_after: 5,
            notification_retention: 30,
        }
    }
}

fn days(count: u16) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(count))
}

/// What the platform is to all its shops.
#[derive(Args, Clone, Debug)]
pub struct PlatformConfig {
    /// The zone of stores that name none (IANA).
    #[arg(long, env = "DELIVERY_TIMEZONE", value_name = "ZONE", default_value = "Europe/Paris", value_parser = parse_time_zone)]
    pub timezone: TimeZone,

    /// The language of labels where a client asks for none that is known (BCP 47).
    #[arg(long, env = "DELIVERY_LOCALE", default_value = "en", value_parser = locale)]
    pub locale: String,

    /// The country of stores that name none: national telephone numbers are read in it
    /// (ISO 3166-1 alpha-2).
    #[arg(
        long,
        env = "DELIVERY_COUNTRY",
        value_name = "CODE",
        default_value = "FR"
    )]
    pub country: Country,
}

/// Whether a service's URL has what could be one: which parameter is a key, only the service knows.
fn has_key(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.query().is_some() || url.password().is_some())
}

/// Without a slash at its end.
fn public_url(text: &str) -> Result<String, InvalidPublicUrl> {
    let url = proto::public_url::parse(text)?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn locale(tag: &str) -> Result<String, String> {
    tag.parse::<icu_locale_core::Locale>()
        .map(|_| tag.to_owned())
        .map_err(|_| format!("{tag:?} is not a language; give a BCP 47 tag, such as en or fr-BE"))
}

impl Default for PlatformConfig {
    fn default() -> Self {
        Self {
            timezone: parse_time_zone("Europe/Paris").expect("the zones are built in"),
            locale: "en".to_owned(),
            country: "FR".parse().expect("two capitals are a country code"),
        }
    }
}

impl Config {
    /// The flags that may hold a secret, here and where these settings are settings of a whole
    /// platform.
    pub const MAY_HOLD_SECRETS: [MayHoldSecret; 3] = [
        DATABASE_URL,
        MayHoldSecret {
            argument: "geocoders",
            holds_secret: |geocoder| {
                geocoder
                    .split_once('=')
                    .is_some_and(|(_, url)| has_key(url))
            },
            secret: "a key",
            instead: "set DELIVERY_GEOCODER",
        },
        MayHoldSecret {
            argument: "osrm_url",
            holds_secret: has_key,
            secret: "a key",
            instead: "set DELIVERY_OSRM_URL",
        },
    ];

    /// The defaults, which allow what a production platform may.
    pub fn new(database_url: String, master_key_file: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 50051)),
            tls: TlsConfig::default(),
            allow_plaintext: false,
            health_listen: None,
            database_url: Some(database_url),
            database_url_file: None,
            master_key_file,
            addresses: PathBuf::from("addresses.sqlite"),
            geocoding: GeocodingConfig::default(),
            public_url: "http://127.0.0.1:8080".to_owned(),
            platform: PlatformConfig::default(),
            router: RouterConfig::default(),
            token_lifetime: 3600,
            allow_http: false,
            allowed_networks: Vec::new(),
            refused_ports: Vec::new(),
            webhooks: WebhookConfig::default(),
            event_retention_days: EVENT_RETENTION_DAYS,
            reflection: false,
            all_in_one: false,
        }
    }

    /// Where the database is, password included.
    pub(crate) fn database_url(&self) -> Result<String, StartError> {
        match (&self.database_url, &self.database_url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(file)) => Ok(secret_file::read(file)?.trim().to_owned()),
            (None, None) => Err(StartError::NoDatabase),
        }
    }

    /// Which receivers webhooks may have.
    pub(crate) fn egress(&self) -> egress::Policy {
        egress::Policy {
            allow_http: self.allow_http,
            allowed_networks: self.allowed_networks.clone(),
            refused_ports: self.refused_ports.clone(),
        }
    }
}
