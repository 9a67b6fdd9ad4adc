//! Settings of the rate limits and the trusted proxies.

use clap::Args;
use egress::Network;
use process::command_line;
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
        default_value = "6000/1m",
        hide_short_help = true
    )]
    pub client: RateLimit,

    /// Access token requests per IP address of a client. Example: `100/1m`
    #[arg(
        long = "rate-limit-token-address",
        env = "DELIVERY_RATE_LIMIT_TOKEN_ADDRESS",
        value_name = "LIMIT",
        default_value = "600/1m",
        hide_short_help = true
    )]
    pub token_address: RateLimit,

    /// Access token requests per pair of client key and secret. Example: `10/1m`
    #[arg(
        long = "rate-limit-token-client",
        env = "DELIVERY_RATE_LIMIT_TOKEN_CLIENT",
        value_name = "LIMIT",
        default_value = "60/1m",
        hide_short_help = true
    )]
    pub token_client: RateLimit,

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
            trusted_proxies: Vec::new(),
        }
    }
}
