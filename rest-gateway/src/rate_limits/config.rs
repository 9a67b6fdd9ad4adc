//! Settings of the rate limits and the trusted proxies.

use std::{num::NonZeroU32, time::Duration};

use clap::Args;
use egress::Network;
use rate_limits::RateLimit;

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
