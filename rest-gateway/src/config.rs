//! All settings of the gateway: flags, environment variables, defaults and help.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser};
use core_client::{CoreConfig, CoreUrl};
use egress::Network;
use process::{command_line, duration, logs::LogConfig, number, tls, traces::TraceConfig};
use rate_limits::RateLimit;
use url::Url;

use crate::{observer::AccessLog, platform::PlatformConfig};

const MAX_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Parser, PartialEq)]
#[command(
    version = process::version::version(),
    about = "Serves the REST API in front of one or several cores"
)]
pub struct Config {
    /// Address to serve the REST API on; port 0 chooses a free one. Example: `0.0.0.0:8080`
    #[arg(long, env = "DELIVERY_REST_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Address of `/healthz`, `/readyz` and `/metrics` over HTTP, apart from the REST API. Default:
    /// none. Example: `127.0.0.1:9103`
    #[arg(long, env = "DELIVERY_REST_HEALTH_LISTEN", value_name = "ADDR")]
    pub health_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub tls: TlsConfig,

    /// URLs of the cores; may be repeated or separated by commas. A host name is resolved
    /// periodically, and each of its addresses is a core. Example: `https://core.internal:50051`
    #[arg(long, env = "DELIVERY_CORE_URL", value_delimiter = ',')]
    #[arg(default_value = "http://127.0.0.1:50051")]
    pub core_url: Vec<CoreUrl>,

    #[command(flatten)]
    pub core: CoreConfig,

    /// URL at which clients reach the API. Default: `http://<bound address>`. Example:
    /// `https://delivery.example`
    #[arg(long, env = "DELIVERY_PUBLIC_URL", value_parser = proto::public_url::parse)]
    pub public_url: Option<Url>,

    /// The platform's name, shown to people. Example: `Coop`
    #[arg(long, env = "DELIVERY_PLATFORM_NAME", default_value = "Service")]
    pub platform_name: String,

    #[command(flatten)]
    pub platform: PlatformConfig,

    #[command(flatten)]
    pub rate_limits: RateLimitConfig,

    #[command(flatten)]
    pub logs: LogConfig,

    /// Which requests have a line in the log: `all`, `errors` (a status from 400 on), or `off`. Example: `errors`
    #[arg(long, env = "DELIVERY_ACCESS_LOG", value_enum, default_value_t)]
    #[arg(hide_possible_values = true)]
    pub access_log: AccessLog,

    #[command(flatten)]
    pub traces: TraceConfig,

    /// Timeout of a request, from the end of its headers to its response; of an upload of an image from
    /// the end of its body. Example: `1m`
    #[arg(long, env = "DELIVERY_REST_REQUEST_TIMEOUT", default_value = "30s")]
    #[arg(value_parser = duration_up_to_a_day, hide_short_help = true)]
    pub request_timeout: Duration,

    /// Timeout for receiving a request's headers, and for receiving its body, of which 1 KiB must
    /// arrive in every 3 s. A body with an image has a minute, or this if it is more. Example: `5s`
    #[arg(long, env = "DELIVERY_REST_READ_TIMEOUT", default_value = "10s")]
    #[arg(value_parser = duration_up_to_a_day, hide_short_help = true)]
    pub read_timeout: Duration,

    /// How long an idle connection stays open, and for half as long an unread response. Example:
    /// `30s`
    #[arg(long, env = "DELIVERY_REST_IDLE_TIMEOUT", default_value = "1m")]
    #[arg(value_parser = duration_up_to_a_day, hide_short_help = true)]
    pub idle_timeout: Duration,

    /// How long the gateway accepts requests after it was asked to shut down, while it asks
    /// clients to reconnect: long enough for a load balancer to notice that `/readyz` fails.
    /// Example: `10s`
    #[arg(long, env = "DELIVERY_REST_DRAIN_GRACE", default_value = "1s")]
    #[arg(value_parser = duration_up_to_a_day, hide_short_help = true)]
    pub drain_grace: Duration,

    /// How long requests in flight may take after the grace period of a shutdown. Example: `1m`
    #[arg(long, env = "DELIVERY_REST_DRAIN_TIMEOUT", default_value = "30s")]
    #[arg(value_parser = duration_up_to_a_day, hide_short_help = true)]
    pub drain_timeout: Duration,

    /// Maximum size of a request body, in bytes. Example: `65536`
    #[arg(
        long,
        env = "DELIVERY_REST_MAX_BODY",
        value_name = "BYTES",
        hide_short_help = true
    )]
    #[arg(default_value_t = 1 << 20, value_parser = number::at_least(1_usize, 1 << 20))]
    pub max_body: usize,

    /// Maximum number of requests in flight; others wait up to 1 s, and are then rejected with 503.
    /// Example: `256`
    #[arg(long, env = "DELIVERY_REST_MAX_REQUESTS", value_name = "NUMBER")]
    #[arg(default_value_t = 1024, value_parser = number::at_least(1_usize, 1024))]
    #[arg(hide_short_help = true)]
    pub max_requests: usize,

    /// Maximum number of open connections; more replace the one idle for longest of the peer that has most.
    /// Example: `1000`
    #[arg(long, env = "DELIVERY_REST_MAX_CONNECTIONS", value_name = "NUMBER")]
    #[arg(default_value_t = 8192, value_parser = number::at_least(1_usize, 8192))]
    #[arg(hide_short_help = true)]
    pub max_connections: usize,

    /// How long a request waits while `max_requests` are in flight. No flag sets it.
    #[arg(skip = MAX_WAIT)]
    pub max_wait: Duration,
}

impl Config {
    /// Whether an address is beyond loopback, and neither TLS nor a trusted proxy protects its
    /// requests.
    pub(crate) fn is_exposed(&self, addr: SocketAddr) -> bool {
        let is_protected =
            self.tls.tls_certificate.is_some() || !self.rate_limits.trusted_proxies.is_empty();
        !is_protected && !addr.ip().is_loopback()
    }
}

impl Default for Config {
    fn default() -> Self {
        command_line::settings(&[])
    }
}

/// The REST API's certificate. Both files are PEM and are reloaded when they change.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificate chain of the REST API (PEM). Enables TLS. Changed TLS files are reloaded for new
    /// connections. Default: none. Example: `/etc/delivery/rest.pem`
    #[arg(long, env = "DELIVERY_REST_TLS_CERTIFICATE", value_name = "FILE")]
    #[arg(requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable only by its owner. Default: none. Example:
    /// `/etc/delivery/rest.key`
    #[arg(long, env = "DELIVERY_REST_TLS_KEY", value_name = "FILE")]
    #[arg(requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
}

impl TlsConfig {
    /// `https` with a certificate, otherwise `http`.
    pub fn scheme(&self) -> &'static str {
        match self.tls_certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    /// `None` if TLS is not configured.
    pub fn files(&self) -> Option<tls::ServerFiles> {
        Some(tls::ServerFiles {
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
            client_ca: None,
        })
    }

    /// `None` if TLS is not configured.
    pub(crate) fn open(&self) -> Result<Option<tls::Server>, tls::Error> {
        let server = self
            .files()
            .map(|files| tls::Server::open(files, &["h2", "http/1.1"]));
        server.transpose()
    }
}

/// Rate limits and trusted proxies.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct RateLimitConfig {
    /// Requests per API client, such as `6000/1m`, or `off`; each gateway counts separately.
    /// Example: `off`
    #[arg(long = "rate-limit-client", env = "DELIVERY_RATE_LIMIT_CLIENT")]
    #[arg(value_name = "LIMIT", default_value = "6000/1m")]
    #[arg(hide_short_help = true)]
    pub client: RateLimit,

    /// Access token requests per IP address of a client. Example: `100/1m`
    #[arg(long = "rate-limit-token-address")]
    #[arg(env = "DELIVERY_RATE_LIMIT_TOKEN_ADDRESS", value_name = "LIMIT")]
    #[arg(default_value = "600/1m", hide_short_help = true)]
    pub token_address: RateLimit,

    /// Access token requests per pair of client key and secret. Example: `10/1m`
    #[arg(long = "rate-limit-token-client")]
    #[arg(env = "DELIVERY_RATE_LIMIT_TOKEN_CLIENT", value_name = "LIMIT")]
    #[arg(default_value = "60/1m", hide_short_help = true)]
    pub token_client: RateLimit,

    /// Requests for tracking pages per client address. Example: `300/1m`
    #[arg(long = "rate-limit-tracking-address")]
    #[arg(env = "DELIVERY_RATE_LIMIT_TRACKING_ADDRESS", value_name = "LIMIT")]
    #[arg(default_value = "1200/1m", hide_short_help = true)]
    pub tracking_address: RateLimit,

    /// Networks of the proxies (CIDR) whose `X-Forwarded-For` header is trusted; may be repeated or
    /// separated by commas. Default: none. Example: `10.0.0.0/8`
    #[arg(long = "trusted-proxies", env = "DELIVERY_TRUSTED_PROXIES")]
    #[arg(value_name = "NETWORK", value_delimiter = ',', hide_short_help = true)]
    pub trusted_proxies: Vec<Network>,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        command_line::settings(&[])
    }
}

impl RateLimitConfig {
    /// No limits.
    pub fn off() -> Self {
        Self {
            client: RateLimit::Off,
            token_address: RateLimit::Off,
            token_client: RateLimit::Off,
            tracking_address: RateLimit::Off,
            trusted_proxies: Vec::new(),
        }
    }
}

const MAX_DURATION: Duration = Duration::from_hours(24);

fn duration_up_to_a_day(text: &str) -> Result<Duration, String> {
    duration::parse_up_to(MAX_DURATION, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beyond_loopback_is_exposed_without_tls_and_trusted_proxies() {
        for (addr, flags, expected) in [
            ("0.0.0.0:80", &[][..], true),
            ("[2001:db8::1]:80", &[], true),
            ("127.0.0.1:80", &[], false),
            ("[::1]:80", &[], false),
            ("0.0.0.0:80", &["--trusted-proxies=10.0.0.0/8"], false),
            (
                "0.0.0.0:443",
                &["--tls-certificate=c", "--tls-key=k"],
                false,
            ),
        ] {
            let arguments = ["rest-gateway"].iter().chain(flags);
            let config = Config::try_parse_from(arguments).unwrap();
            assert_eq!(
                config.is_exposed(addr.parse().unwrap()),
                expected,
                "{addr} {flags:?}"
            );
        }
    }

    #[test]
    fn several_core_urls_are_repeated_or_separated_by_commas() {
        let parsed = Config::try_parse_from([
            "rest-gateway",
            "--core-url=http://a:1,http://b:2",
            "--core-url=http://c:3",
        ])
        .unwrap();

        let expected = ["http://a:1", "http://b:2", "http://c:3"];
        assert_eq!(parsed.core_url, expected.map(|url| url.parse().unwrap()));
    }

    #[test]
    fn a_duration_has_a_unit_and_is_above_zero_and_at_most_a_day() {
        assert_eq!(
            duration_up_to_a_day("500ms"),
            Ok(Duration::from_millis(500))
        );
        for wrong in ["", "30", "-1s", "0s", "25h", "soon"] {
            assert!(duration_up_to_a_day(wrong).is_err(), "{wrong}");
        }
    }
}
