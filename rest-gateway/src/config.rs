//! Every setting of the gateway: flags, environment, defaults and help in one struct.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use clap::Parser;
use core_client::{CoreConfig, CoreUrl};
use jiff::SignedDuration;
use url::Url;

use crate::{platform::PlatformConfig, rate_limits::RateLimitConfig};

#[derive(Clone, Debug, Parser, PartialEq)]
#[command(
    version,
    about = "Serves the REST API in front of one or several cores"
)]
pub struct Config {
    /// Address to serve the REST API on; port 0 is any free one
    #[arg(long, env = "DELIVERY_REST_LISTEN", default_value_t = Config::default().listen)]
    pub listen: SocketAddr,

    /// Where the cores are; may be repeated or separated by commas. A host name stands for every
    /// address it has, and is looked up again and again
    #[arg(
        long,
        env = "DELIVERY_CORE_URL",
        value_delimiter = ',',
        default_values_t = Config::default().core_url
    )]
    pub core_url: Vec<CoreUrl>,

    #[command(flatten)]
    pub core: CoreConfig,

    /// Address under which clients reach the API [default: http://<bound address>]
    #[arg(long, env = "DELIVERY_PUBLIC_URL", value_parser = proto::public_url::parse)]
    pub public_url: Option<Url>,

    /// The platform's name, as people see it
    #[arg(long, env = "DELIVERY_PLATFORM_NAME", default_value_t = Config::default().platform_name)]
    pub platform_name: String,

    #[command(flatten)]
    pub platform: PlatformConfig,

    #[command(flatten)]
    pub rate_limits: RateLimitConfig,

    /// How long a request may take from its last header to its answer
    #[arg(
        long,
        env = "DELIVERY_REST_REQUEST_TIMEOUT",
        default_value = "30s",
        value_parser = duration,
        hide_short_help = true
    )]
    pub request_timeout: Duration,

    /// How long a client may take to send a request's headers, or its body
    #[arg(
        long,
        env = "DELIVERY_REST_READ_TIMEOUT",
        default_value = "10s",
        value_parser = duration,
        hide_short_help = true
    )]
    pub read_timeout: Duration,

    /// How long a connection stays open on which nothing is asked; over HTTP/1 not longer than
    /// `--read-timeout`
    #[arg(
        long,
        env = "DELIVERY_REST_IDLE_TIMEOUT",
        default_value = "1m",
        value_parser = duration,
        hide_short_help = true
    )]
    pub idle_timeout: Duration,

    /// How long the gateway, told to end, still takes requests while it asks clients to connect
    /// elsewhere: long enough for a balancer to see `/readyz` fail
    #[arg(
        long,
        env = "DELIVERY_REST_DRAIN_GRACE",
        default_value = "1s",
        value_parser = duration,
        hide_short_help = true
    )]
    pub drain_grace: Duration,

    /// How long requests in flight may still take when the gateway is told to end
    #[arg(
        long,
        env = "DELIVERY_REST_DRAIN_TIMEOUT",
        default_value = "30s",
        value_parser = duration,
        hide_short_help = true
    )]
    pub drain_timeout: Duration,

    /// The largest body taken, in bytes
    #[arg(
        long,
        env = "DELIVERY_REST_MAX_BODY",
        default_value_t = Config::default().max_body,
        hide_short_help = true
    )]
    pub max_body: usize,

    /// How many requests are worked on at once; more are answered 503
    #[arg(
        long,
        env = "DELIVERY_REST_MAX_REQUESTS",
        default_value_t = Config::default().max_requests,
        hide_short_help = true
    )]
    pub max_requests: usize,

    /// How many connections are open at once; more wait to be accepted
    #[arg(
        long,
        env = "DELIVERY_REST_MAX_CONNECTIONS",
        default_value_t = Config::default().max_connections,
        hide_short_help = true
    )]
    pub max_connections: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            core_url: vec![CORE.parse().expect("it is the address of a core")],
            core: CoreConfig::default(),
            public_url: None,
            platform_name: "Service".to_owned(),
            platform: PlatformConfig::default(),
            rate_limits: RateLimitConfig::default(),
            request_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            drain_grace: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            max_body: 1 << 20,
            max_requests: 1024,
            max_connections: 8192,
        }
    }
}

/// Where a core listens unless told otherwise.
const CORE: &str = "http://127.0.0.1:50051";

const MAX_DURATION: Duration = Duration::from_hours(24);

/// Reads `30s`, `1 minute` or `500ms`, up to a day.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration like `30s`, `1m` or `500ms`, up to a day");
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    match Duration::try_from(duration) {
        Ok(duration) if !duration.is_zero() && duration <= MAX_DURATION => Ok(duration),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_the_flags_say() {
        let parsed = Config::try_parse_from(["rest-gateway"]).unwrap();

        assert_eq!(parsed, Config::default());
    }

    #[test]
    fn several_cores_are_repeated_or_separated_by_commas() {
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
    fn a_duration_has_a_unit_and_is_between_nothing_and_a_day() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "30", "-1s", "0s", "25h", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
