//! Rate limits of calls and of token requests. Each core counts separately.

use std::{net::IpAddr, time::Duration};

use clap::Args;
use domain::id::ApiClientId;
use process::metrics::Counters;
use rate_limits::{Limiter, RateLimit, Status, credentials_key, peer_key};

use crate::error::Error;

/// The rate limits of a core. They are above those of a gateway, which is one peer for all of its
/// clients.
#[derive(Args, Clone, Debug)]
pub struct RateLimitConfig {
    /// Calls per API client, such as `6000/1m`, or `off`; each core counts separately. Dispatchers
    /// have no limit. Example: `off`.
    #[arg(
        long = "rate-limit-client",
        env = "DELIVERY_CORE_RATE_LIMIT_CLIENT",
        value_name = "LIMIT",
        default_value = "12000/1m",
        hide_short_help = true
    )]
    pub client: RateLimit,

    /// Calls per peer. A gateway is one peer for all of its clients. Example: `60000/1m`.
    #[arg(
        long = "rate-limit-peer",
        env = "DELIVERY_CORE_RATE_LIMIT_PEER",
        value_name = "LIMIT",
        default_value = "off",
        hide_short_help = true
    )]
    pub peer: RateLimit,

    /// Access token requests per pair of client key and secret. Example: `100/1m`.
    #[arg(
        long = "rate-limit-token-client",
        env = "DELIVERY_CORE_RATE_LIMIT_TOKEN_CLIENT",
        value_name = "LIMIT",
        default_value = "600/1m",
        hide_short_help = true
    )]
    pub token_client: RateLimit,

    /// Access token requests per peer. Example: `600/1m`.
    #[arg(
        long = "rate-limit-token-peer",
        env = "DELIVERY_CORE_RATE_LIMIT_TOKEN_PEER",
        value_name = "LIMIT",
        default_value = "6000/1m",
        hide_short_help = true
    )]
    pub token_peer: RateLimit,
}

impl RateLimitConfig {
    /// No limits.
    pub fn off() -> Self {
        Self {
            client: RateLimit::Off,
            peer: RateLimit::Off,
            token_client: RateLimit::Off,
            token_peer: RateLimit::Off,
        }
    }
}

/// The limiters of a core.
pub(crate) struct RateLimits {
    clients: Limiter<ApiClientId>,
    peers: Limiter<IpAddr>,
    /// By key and secret.
    token_clients: Limiter<[u8; 32]>,
    token_peers: Limiter<IpAddr>,
    /// By the name of a limit.
    rejected: Counters,
}

impl RateLimits {
    pub(crate) fn new(config: &RateLimitConfig, rejected: Counters) -> Self {
        Self {
            clients: Limiter::new("client", config.client),
            peers: Limiter::new("peer", config.peer),
            token_clients: Limiter::new("token-client", config.token_client),
            token_peers: Limiter::new("token-peer", config.token_peer),
            rejected,
        }
    }

    /// Counts a call against the quotas of its peer.
    pub(crate) fn check_peer(&self, peer: IpAddr, is_token_request: bool) -> Result<(), Error> {
        let peer = peer_key(peer);
        self.enforce(self.peers.check(&peer))?;
        if is_token_request {
            self.enforce(self.token_peers.check(&peer))?;
        }
        Ok(())
    }

    /// Counts a call against the quota of its client.
    pub(crate) fn check_client(&self, client: ApiClientId) -> Result<(), Error> {
        self.enforce(self.clients.check(&client))
    }

    /// Counts a token request against the quota of its credentials.
    pub(crate) fn check_credentials(&self, api_key: &str, api_secret: &str) -> Result<(), Error> {
        let key = credentials_key(api_key, api_secret);
        self.enforce(self.token_clients.check(&key))
    }

    fn enforce(&self, status: Option<Status>) -> Result<(), Error> {
        let Some(exhausted) = status.filter(|status| !status.is_allowed) else {
            return Ok(());
        };
        self.rejected.inc(exhausted.policy);
        Err(Error::RateLimited {
            quota: exhausted.quota,
            window: Duration::from_secs(exhausted.window),
            retry_after: Duration::from_secs(exhausted.reset),
        })
    }
}
