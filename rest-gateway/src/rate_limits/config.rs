//! Settings of the rate limits and the trusted proxies.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use clap::Args;
use egress::Network;
use process::duration;

/// Rate limits and trusted proxies.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct RateLimitConfig {
    /// Requests per API client, such as `6000/1m`, or `off`; each gateway counts separately.
    /// Example: `off`
    #[arg(
        long = "rate-limit-client",
        env = "DELIVERY_RATE_LIMIT_CLIENT",
        value_name = "LIMIT",
        default_value_t = RateLimitConfig::default().client,
        hide_short_help = true
    )]
    pub client: RateLimit,

    /// Access token requests per address. Example: `100/1m`
    #[arg(
        long = "rate-limit-token-address",
        env = "DELIVERY_RATE_LIMIT_TOKEN_ADDRESS",
        value_name = "LIMIT",
        default_value_t = RateLimitConfig::default().token_address,
        hide_short_help = true
    )]
    pub token_address: RateLimit,

    /// Access token requests per pair of client key and secret. Example: `10/1m`
    #[arg(
        long = "rate-limit-token-client",
        env = "DELIVERY_RATE_LIMIT_TOKEN_CLIENT",
        value_name = "LIMIT",
        default_value_t = RateLimitConfig::default().token_credentials,
        hide_short_help = true
    )]
    pub token_credentials: RateLimit,

    /// Networks of the proxies (CIDR) whose `Forwarded` and `X-Forwarded-For` headers are trusted;
    /// may be repeated or separated by commas. Default: none. Example: `10.0.0.0/8`
    #[arg(
        long = "trusted-proxies",
        env = "DELIVERY_TRUSTED_PROXIES",
        value_name = "NETWORK",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub trusted_proxies: Vec<Network>,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        let per_minute = |requests| RateLimit::PerWindow {
            requests,
            window: Duration::from_mins(1),
        };
        Self {
            client: NonZeroU32::new(6000).map_or(RateLimit::Off, per_minute),
            token_address: NonZeroU32::new(600).map_or(RateLimit::Off, per_minute),
            token_credentials: NonZeroU32::new(60).map_or(RateLimit::Off, per_minute),
            trusted_proxies: Vec::new(),
        }
    }
}

impl RateLimitConfig {
    /// No limits.
    pub fn off() -> Self {
        Self {
            client: RateLimit::Off,
            token_address: RateLimit::Off,
            token_credentials: RateLimit::Off,
            trusted_proxies: Vec::new(),
        }
    }
}

/// A number of requests per window. It is also the burst size, and is replenished evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    Off,
    PerWindow {
        requests: NonZeroU32,
        /// In whole seconds, up to a day.
        window: Duration,
    },
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MAX_WINDOW: Duration = Duration::from_hours(24);

        if text == "off" {
            return Ok(Self::Off);
        }
        let wrong = || {
            format!(
                "`{text}` is not a rate limit: write requests per time, such as `6000/60s`, or `off`"
            )
        };
        let (requests, window) = text.split_once('/').ok_or_else(wrong)?;
        let requests = requests.parse().map_err(|_| wrong())?;
        let window = duration::parse_up_to(MAX_WINDOW, window).map_err(|_| wrong())?;
        if window.subsec_nanos() > 0 {
            return Err(wrong());
        }
        Ok(Self::PerWindow { requests, window })
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::PerWindow { requests, window } => write!(f, "{requests}/{}s", window.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_parsed_from_its_text() {
        for text in ["off", "1/1s", "6000/60s", "4294967295/86400s"] {
            assert_eq!(text.parse::<RateLimit>().unwrap().to_string(), text);
        }
        assert_eq!("10/1m".parse(), "10/60s".parse::<RateLimit>());
        for wrong in [
            "", "10", "0/1s", "-1/1s", "10/0s", "10/500ms", "10/25h", "10/-1s", "OFF",
        ] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }
}
