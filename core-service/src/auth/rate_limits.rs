//! Rate limits of calls and of token requests. Each core counts separately.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use clap::Args;
use domain::{id::ApiClientId, tracking::TrackingToken};
use egress::Network;
use http::HeaderMap;
use process::metrics::Counters;
use rate_limits::{Limiter, RateLimit, Status, credentials_key, peer_key};

use crate::{
    auth::caller::{GET_TRACKING, GET_TRACKING_LOGO, ISSUE_TOKEN, is_anonymous},
    error::Error,
};

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

    /// Calls for tracking pages per link. Example: `1200/1m`.
    #[arg(
        long = "rate-limit-tracking-link",
        env = "DELIVERY_CORE_RATE_LIMIT_TRACKING_LINK",
        value_name = "LIMIT",
        default_value = "12000/1m",
        hide_short_help = true
    )]
    pub tracking_link: RateLimit,

    /// Calls for tracking pages per peer. Example: `600/1m`.
    #[arg(
        long = "rate-limit-tracking-peer",
        env = "DELIVERY_CORE_RATE_LIMIT_TRACKING_PEER",
        value_name = "LIMIT",
        default_value = "6000/1m",
        hide_short_help = true
    )]
    pub tracking_peer: RateLimit,

    /// Gateways whose `x-forwarded-for` is trusted for calls without a token: networks (CIDR). May be
    /// repeated or separated by commas. Example: `10.1.0.0/16`.
    #[arg(
        long = "trusted-gateways",
        env = "DELIVERY_CORE_TRUSTED_GATEWAYS",
        value_name = "NETWORK",
        value_delimiter = ',',
        default_value = "127.0.0.0/8,::1/128",
        hide_short_help = true
    )]
    pub trusted_gateways: Vec<Network>,
}

impl RateLimitConfig {
    pub fn off() -> Self {
        Self {
            client: RateLimit::Off,
            peer: RateLimit::Off,
            token_client: RateLimit::Off,
            token_peer: RateLimit::Off,
            tracking_link: RateLimit::Off,
            tracking_peer: RateLimit::Off,
            trusted_gateways: Vec::new(),
        }
    }
}

pub(crate) struct RateLimits {
    clients: Limiter<ApiClientId>,
    peers: Limiter<IpAddr>,
    /// Counts token requests by key and secret.
    token_clients: Limiter<[u8; 32]>,
    token_peers: Limiter<IpAddr>,
    tracking_links: Limiter<[u8; 32]>,
    tracking_peers: Limiter<IpAddr>,
    trusted_gateways: Vec<Network>,
    /// Counts rejected calls by the name of the limit.
    rejected: Counters,
}

impl RateLimits {
    pub(crate) fn new(config: &RateLimitConfig, rejected: Counters) -> Self {
        Self {
            clients: Limiter::new("client", config.client),
            peers: Limiter::new("peer", config.peer),
            token_clients: Limiter::new("token-client", config.token_client),
            token_peers: Limiter::new("token-peer", config.token_peer),
            tracking_links: Limiter::new("tracking-link", config.tracking_link),
            tracking_peers: Limiter::new("tracking-peer", config.tracking_peer),
            trusted_gateways: config.trusted_gateways.clone(),
            rejected,
        }
    }

    /// The address by which a call is counted: its peer's, none within the process, or for a call
    /// without a token the only one that a gateway names; of IPv6 only the network.
    pub(crate) fn client_address(
        &self,
        peer: Option<IpAddr>,
        path: &str,
        headers: &HeaderMap,
    ) -> IpAddr {
        let peer = peer.map(|peer| peer.to_canonical());
        let is_trusted = peer.is_none_or(|peer| {
            let mut gateways = self.trusted_gateways.iter();
            gateways.any(|network| network.contains(peer))
        });
        let mut named = headers.get_all(proto::FORWARDED_FOR).iter();
        let named = match (named.next(), named.next()) {
            (Some(named), None) if is_trusted && is_anonymous(path) => named.to_str().ok(),
            _ => None,
        };
        let named = named.and_then(|address| address.parse().ok());
        peer_key(named.or(peer).unwrap_or(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// Counts a call against the quotas of its peer.
    pub(crate) fn check_peer(&self, peer: IpAddr, path: &str) -> Result<(), Error> {
        self.enforce(self.peers.check(&peer))?;
        match path {
            ISSUE_TOKEN => self.enforce(self.token_peers.check(&peer)),
            GET_TRACKING | GET_TRACKING_LOGO => self.enforce(self.tracking_peers.check(&peer)),
            _ => Ok(()),
        }
    }

    /// Counts a call against the quota of its link: that of one with a wrong secret is another.
    pub(crate) fn check_tracking_link(&self, token: &TrackingToken) -> Result<(), Error> {
        self.enforce(self.tracking_links.check(&token.bytes()))
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_call_is_counted_by_the_address_that_a_trusted_gateway_names() {
        let config = RateLimitConfig {
            trusted_gateways: vec!["10.1.0.0/16".parse().unwrap()],
            ..RateLimitConfig::off()
        };
        let limits = RateLimits::new(&config, Counters::new("limit", &[]));
        for (peer, named, expected) in [
            (Some("10.1.0.7"), Some("192.0.2.9"), "192.0.2.9"),
            (Some("::ffff:10.1.0.7"), Some("192.0.2.9"), "192.0.2.9"),
            (Some("10.1.0.7"), Some("2001:db8::9"), "2001:db8::"),
            (None, Some("192.0.2.9"), "192.0.2.9"),
            (Some("10.1.0.7"), None, "10.1.0.7"),
            (Some("10.1.0.7"), Some("192.0.2.9, 10.1.0.8"), "10.1.0.7"),
            (Some("10.2.0.7"), Some("192.0.2.9"), "10.2.0.7"),
            (None, None, "0.0.0.0"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(named) = named {
                headers.insert(proto::FORWARDED_FOR, named.parse().unwrap());
            }
            let peer = peer.map(|peer| peer.parse().unwrap());
            let address = limits.client_address(peer, ISSUE_TOKEN, &headers);
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(address, expected, "{peer:?} {named:?}");
        }

        let gateway: IpAddr = "10.1.0.7".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(proto::FORWARDED_FOR, HeaderValue::from_static("192.0.2.9"));
        for path in ["/delivery.v1.Tasks/GetTask", "/grpc.health.v1.Health/Watch"] {
            let address = limits.client_address(Some(gateway), path, &headers);
            assert_eq!(address, gateway, "{path}");
        }
        // A proxy has added its own to the client's.
        headers.append(proto::FORWARDED_FOR, HeaderValue::from_static("192.0.2.8"));
        let address = limits.client_address(Some(gateway), ISSUE_TOKEN, &headers);
        assert_eq!(address, gateway);
    }
}
