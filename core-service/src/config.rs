//! The settings of a core, each with its flag, environment variable and default.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use domain::{
    signing_key::MAX_TOKEN_LIFETIME_SECONDS,
    store::{Country, parse_time_zone},
};
use egress::Policy;
use geocoding::GeocodingConfig;
use jiff::{SignedDuration, tz::TimeZone};
use process::{
    command_line::{self, DATABASE_URL, SecretFlag},
    duration,
    logs::LogConfig,
    number, tls,
    traces::TraceConfig,
};
use url::Url;

pub use storage::{DEFAULT_DATABASE_CONNECTIONS, DatabaseConfig, DatabaseServerVerification};

use crate::{auth::rate_limits::RateLimitConfig, routing::RouterConfig, startup::StartError};

const DAY: Duration = Duration::from_hours(24);
/// Maximum of the settings that are at least a day.
const MAX_RETENTION: Duration = DAY.saturating_mul(3650);

#[derive(Args, Clone, Debug)]
pub struct Config {
    /// Address of the gRPC API; port 0 is any free port. Example: `0.0.0.0:50051`.
    #[arg(long, env = "DELIVERY_CORE_LISTEN", default_value = "127.0.0.1:50051")]
    pub listen: SocketAddr,

    #[command(flatten)]
    pub tls: TlsConfig,

    /// Serve gRPC without TLS on non-loopback addresses, with unencrypted tokens and secrets.
    /// Default: no. Example: `DELIVERY_ALLOW_PLAINTEXT=yes`.
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,

    /// Address of `/healthz`, `/readyz` and `/metrics` over HTTP. Default:
    /// none. Example: `127.0.0.1:9101`.
    #[arg(long, env = "DELIVERY_CORE_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub database: DatabaseConfig,

    /// Limit of open connections to `PostgreSQL`, up to 1000. All cores together must stay below
    /// what the server permits; a core that gets fewer connections works with those. Example: `50`.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_CONNECTIONS",
        value_name = "NUMBER",
        default_value_t = DEFAULT_DATABASE_CONNECTIONS,
        value_parser = number::within(1_u32, 1000, 50)
    )]
    pub database_connections: u32,

    /// File with the key that encrypts stored secrets, the same for all cores of a platform.
    /// `bootstrap` creates it, `master-key` adds keys to it; it is read again when it changes.
    /// Example: `/etc/delivery/master.key`.
    #[arg(long, env = "DELIVERY_MASTER_KEY_FILE", default_value = "master.key")]
    pub master_key_file: PathBuf,

    /// Address database of the gazetteer. `delivery addresses import` replaces it; a file imported
    /// elsewhere can be moved into its place. Example: `/var/lib/delivery/addresses.sqlite`.
    #[arg(
        long,
        env = "DELIVERY_GAZETTEER_FILE",
        value_name = "FILE",
        default_value = "addresses.sqlite"
    )]
    pub gazetteer_file: PathBuf,

    /// Folder of the images of tasks, the same for all cores of a platform; created if missing. It is part of a backup.
    /// Without one, no images are taken. Default: none. Example: `/var/lib/delivery/images`.
    #[arg(long, env = "DELIVERY_IMAGES", value_name = "FOLDER")]
    pub images: Option<PathBuf>,

    #[command(flatten)]
    pub geocoding: GeocodingConfig,

    /// Public URL of the REST API: issuer and audience of access tokens. Example:
    /// `https://delivery.example`.
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

    /// Lifetime of access tokens, in whole seconds up to a day. Example: `30m`.
    #[arg(
        long,
        env = "DELIVERY_TOKEN_LIFETIME",
        value_name = "DURATION",
        default_value = "1h",
        value_parser = token_lifetime
    )]
    pub token_lifetime: Duration,

    #[command(flatten)]
    pub rate_limits: RateLimitConfig,

    #[command(flatten)]
    pub deliveries: DeliveryConfig,

    #[command(flatten)]
    pub egress: Policy,

    #[command(flatten)]
    pub webhooks: WebhookConfig,

    #[command(flatten)]
    pub logs: LogConfig,

    #[command(flatten)]
    pub traces: TraceConfig,

    /// Serve gRPC reflection. Default: no. Example: `DELIVERY_REFLECTION=yes`.
    #[arg(long, env = "DELIVERY_REFLECTION")]
    pub reflection: bool,

    /// Whether this process is the all-in-one. It creates the master key at its first start. With
    /// `SQLite` it is the only process, so leases found at startup are orphaned.
    #[arg(skip)]
    pub all_in_one: bool,
}

/// TLS settings. All files are PEM and are reloaded when they change.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsConfig {
    /// Certificate chain of the gRPC API (PEM). Enables TLS. Changed TLS files are reloaded for
    /// new connections. Default: none. Example: `/etc/delivery/core.pem`.
    #[arg(
        long,
        env = "DELIVERY_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/core.key`.
    #[arg(
        long,
        env = "DELIVERY_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,

    /// Require client certificates, issued by one of these authorities (PEM). Default: none.
    /// Example: `/etc/delivery/ca.pem`.
    #[arg(
        long,
        env = "DELIVERY_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_client_ca: Option<PathBuf>,
}

impl TlsConfig {
    /// `None` if TLS is not configured.
    pub fn files(&self) -> Option<tls::ServerFiles> {
        Some(tls::ServerFiles {
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
            client_ca: self.tls_client_ca.clone(),
        })
    }

    /// `None` if TLS is not configured.
    pub(crate) fn open(&self) -> Result<Option<tls::Server>, tls::Error> {
        let server = self.files().map(|files| tls::Server::open(files, &["h2"]));
        server.transpose()
    }
}

#[derive(Args, Clone, Debug)]
pub struct PlatformConfig {
    /// Default time zone of stores (IANA). Example: `Europe/Brussels`.
    #[arg(long, env = "DELIVERY_TIMEZONE", value_name = "ZONE", default_value = "Europe/Paris", value_parser = parse_time_zone)]
    pub timezone: TimeZone,

    /// Language of labels for clients without a supported preference (BCP 47). Example: `fr-BE`.
    #[arg(long, env = "DELIVERY_LOCALE", default_value = "en", value_parser = locale)]
    pub locale: String,

    /// Default country of stores, in whose national format telephone numbers are read (ISO 3166-1
    /// alpha-2). Example: `BE`.
    #[arg(
        long,
        env = "DELIVERY_COUNTRY",
        value_name = "CODE",
        default_value = "FR"
    )]
    pub country: Country,

    /// How long the audit is kept: what operators and dispatch changed, and whose personal data they read, from 1d to
    /// 3650d. Example: `1095d`.
    #[arg(
        long,
        env = "DELIVERY_AUDIT_RETENTION",
        value_name = "DURATION",
        default_value = "365d",
        value_parser = days
    )]
    pub audit_retention: Duration,
}

/// How many deliveries a store may create, and when their personal data is erased and their events deleted.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DeliveryConfig {
    /// Deliveries that a store may create in 24 hours, cancelled ones included, counted by the hour, since a quota is set.
    /// Concurrent creations may exceed it by their number. Default: unlimited. Example: `5000`.
    #[arg(
        long,
        env = "DELIVERY_DELIVERIES_PER_DAY",
        value_name = "NUMBER",
        value_parser = number::at_least(1_u32, 5000)
    )]
    pub deliveries_per_day: Option<u32>,

    /// Bytes of deliveries that a store may create in 24 hours, counted by the hour; twice with an
    /// `Idempotency-Key`, whose response is stored too. Concurrent creations may exceed it by their
    /// bytes. Default: unlimited. Example: `100000000`.
    #[arg(
        long,
        env = "DELIVERY_DELIVERY_BYTES_PER_DAY",
        value_name = "BYTES",
        value_parser = number::at_least(1_000_000_u64, 100_000_000)
    )]
    pub delivery_bytes_per_day: Option<u64>,

    /// Erase the personal data of deliveries (names, telephone numbers, streets, texts) this long
    /// after their creation and the end of their dropoff, from 7d to 3650d. Default: never.
    /// Example: `90d`.
    #[arg(
        long,
        env = "DELIVERY_DELIVERY_RETENTION",
        value_name = "DURATION",
        value_parser = delivery_retention
    )]
    pub delivery_retention: Option<Duration>,

    /// Remove erased deliveries, with their tasks, histories, incidents and notifications, this long after their creation
    /// and the end of their dropoff: longer than `--delivery-retention`, which erases them, and than `--event-retention`, up
    /// to 3650d. Default: never.
    /// Example: `400d`.
    #[arg(
        long,
        env = "DELIVERY_DELIVERY_REMOVAL",
        value_name = "DURATION",
        value_parser = delivery_retention
    )]
    pub delivery_removal: Option<Duration>,

    /// How long clients can read an event from the event log, from 1d to 3650d. Example: `90d`.
    #[arg(
        long,
        env = "DELIVERY_EVENT_RETENTION",
        value_name = "DURATION",
        default_value = "30d",
        value_parser = days
    )]
    pub event_retention: Duration,
}

impl DeliveryConfig {
    /// Fails if deliveries would be removed that are not erased yet, or of which the log has events.
    pub(crate) fn check(self) -> Result<(), StartError> {
        let Some(removal) = self.delivery_removal else {
            return Ok(());
        };
        let is_later = self
            .delivery_retention
            .is_some_and(|erasing| erasing < removal && self.event_retention < removal);
        if !is_later {
            return Err(StartError::Misconfigured(
                "--delivery-removal removes deliveries that --delivery-retention has erased, and not before --event-retention: set all, the removal to the longest time".to_owned(),
            ));
        }
        Ok(())
    }
}

/// When failing webhooks are disabled and finished notifications are deleted.
#[derive(Args, Clone, Copy, Debug)]
pub struct WebhookConfig {
    /// Disable a webhook after failures without a success for this long, from 1d to 3650d.
    /// Example: `3d`.
    #[arg(
        long,
        env = "DELIVERY_WEBHOOK_DISABLE_AFTER",
        value_name = "DURATION",
        default_value = "5d",
        value_parser = days
    )]
    pub webhook_disable_after: Duration,

    /// Delete notifications and their attempts this long after they have finished, from 1d to
    /// 3650d. Example: `90d`.
    #[arg(
        long,
        env = "DELIVERY_NOTIFICATION_RETENTION",
        value_name = "DURATION",
        default_value = "30d",
        value_parser = days
    )]
    pub notification_retention: Duration,
}

impl WebhookConfig {
    pub(crate) fn disable_after(self) -> SignedDuration {
        SignedDuration::try_from(self.webhook_disable_after).unwrap_or(SignedDuration::MAX)
    }
}

impl Default for Config {
    /// The flags' defaults, and no database.
    fn default() -> Self {
        Self {
            database: DatabaseConfig::default(),
            ..command_line::settings(&["--database-url=none"])
        }
    }
}

fn locale(tag: &str) -> Result<String, String> {
    tag.parse::<icu_locale_core::Locale>()
        .map(|_| tag.to_owned())
        .map_err(|_| format!("{tag:?} is not a language; give a BCP 47 tag, such as en or fr-BE"))
}

/// Parses a duration from 1d to 3650d.
fn days(text: &str) -> Result<Duration, String> {
    at_least(1, text)
}

/// Parses a duration from 7d, for which responses to requests with idempotency keys are stored, to
/// 3650d.
fn delivery_retention(text: &str) -> Result<Duration, String> {
    at_least(7, text)
}

fn at_least(days: u32, text: &str) -> Result<Duration, String> {
    let duration = duration::parse_up_to(MAX_RETENTION, text)?;
    if duration < DAY * days {
        return Err(format!("shorter than the minimum of {days}d"));
    }
    Ok(duration)
}

fn token_lifetime(text: &str) -> Result<Duration, String> {
    let limit = Duration::from_secs(MAX_TOKEN_LIFETIME_SECONDS.into());
    let lifetime = duration::parse_up_to(limit, text)?;
    if lifetime.subsec_nanos() != 0 {
        return Err("not a whole number of seconds".to_owned());
    }
    Ok(lifetime)
}

/// Whether a service URL may contain an API key: in its password or in any query parameter.
fn may_contain_key(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.query().is_some() || url.password().is_some())
}

/// Parses a public URL and removes its trailing slash.
fn public_url(text: &str) -> Result<String, &'static str> {
    let url = proto::public_url::parse(text)?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

impl Config {
    /// The flags that may contain a secret, here and in the settings of the all-in-one.
    pub const SECRET_FLAGS: [SecretFlag; 3] = [
        DATABASE_URL,
        SecretFlag {
            argument: "geocoders",
            contains_secret: |geocoder| {
                geocoder
                    .split_once('=')
                    .is_some_and(|(_, url)| may_contain_key(url))
            },
            secret_kind: "a key",
            remedy: "set DELIVERY_GEOCODER",
        },
        SecretFlag {
            argument: "osrm_url",
            contains_secret: may_contain_key,
            secret_kind: "a key",
            remedy: "set DELIVERY_OSRM_URL",
        },
    ];

    pub(crate) fn database_url(&self) -> Result<String, StartError> {
        let url = self.database.url()?.ok_or_else(|| {
            StartError::Misconfigured(
                "no database URL is configured: set DELIVERY_DATABASE_URL, --database-url or --database-url-file"
                    .to_owned(),
            )
        })?;
        self.database.database_server_verification.check(&url)?;
        Ok(url)
    }

    pub(crate) fn token_lifetime_seconds(&self) -> u32 {
        u32::try_from(self.token_lifetime.as_secs()).unwrap_or(MAX_TOKEN_LIFETIME_SECONDS)
    }
}

#[cfg(test)]
mod tests;
