//! Rate limits: per API client, and per address and credentials at the token endpoint. Each
//! gateway counts separately: behind a load balancer, limits multiply by the number of gateways.

pub(crate) mod client_address;
mod config;
mod headers;
mod token_clients;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use admission::Peer;
use egress::Network;
use http::{header::AUTHORIZATION, request::Parts};
use process::metrics::Counters;
use rate_limits::{Limiter, Status, credentials_key, peer_key};

pub use self::config::RateLimitConfig;
pub(crate) use self::{headers::LimitStatuses, token_clients::TokenClients};
use crate::{
    error::{Details, Error},
    representation::error_codes as codes,
};

/// The names of the limits, in headers and metrics.
const CLIENT: &str = "client";
const TOKEN_ADDRESS: &str = "token-address";
const TOKEN_CLIENT: &str = "token-client";

/// All limiters, and the cached clients of access tokens.
pub(crate) struct RateLimits {
    clients: Limiter<QuotaKey>,
    token_addresses: Limiter<IpAddr>,
    /// By hash of the key and secret.
    token_credentials: Limiter<[u8; 32]>,
    /// The clients of the tokens that core has accepted.
    pub(crate) token_clients: TokenClients,
    trusted_proxies: Vec<Network>,
    /// The requests that were rejected, by the name of the limit.
    pub(crate) rejected: Counters,
}

/// What API requests are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum QuotaKey {
    Client(Arc<str>),
    /// Of a request without a token, or with one that core has not accepted yet.
    Address(IpAddr),
}

impl RateLimits {
    pub(crate) fn new(config: &RateLimitConfig) -> Self {
        Self {
            clients: Limiter::new(CLIENT, config.client),
            token_addresses: Limiter::new(TOKEN_ADDRESS, config.token_address),
            token_credentials: Limiter::new(TOKEN_CLIENT, config.token_client),
            token_clients: TokenClients::new(),
            trusted_proxies: config.trusted_proxies.clone(),
            rejected: Counters::new("limit", &[CLIENT, TOKEN_ADDRESS, TOKEN_CLIENT]),
        }
    }

    /// Counts a request from an address; fails if its quota is exhausted.
    pub(crate) fn check(&self, request: &Parts, address: IpAddr) -> Result<(), Error> {
        let path = request.uri.path();
        if path == "/oauth2/token" {
            return self.enforce(self.token_addresses.check(&address), request);
        }
        if path == "/api" || path.starts_with("/api/") {
            let key = self.quota_key(request, address);
            if let QuotaKey::Client(client) = &key {
                tracing::Span::current().record("client.key", &**client);
            }
            return self.enforce(self.clients.check(&key), request);
        }
        Ok(())
    }

    /// Counts a token request against the quota of its credentials.
    pub(crate) fn check_credentials(
        &self,
        request: &Parts,
        (api_key, api_secret): (&str, &str),
    ) -> Result<(), Error> {
        let key = credentials_key(api_key, api_secret);
        self.enforce(self.token_credentials.check(&key), request)
    }

    fn quota_key(&self, request: &Parts, address: IpAddr) -> QuotaKey {
        request
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| self.token_clients.find(value.as_bytes()))
            .map_or(QuotaKey::Address(address), QuotaKey::Client)
    }

    /// The address by which a client is counted: the peer's, or behind a trusted proxy the forwarded one;
    /// of IPv6 only the network.
    pub(crate) fn client_address<B>(&self, request: &http::Request<B>) -> IpAddr {
        let peer = request.extensions().get();
        let peer = peer.map_or(Ipv6Addr::UNSPECIFIED.into(), |Peer(peer)| *peer);
        let address = client_address::resolve(peer, request.headers(), &self.trusted_proxies);
        peer_key(address)
    }

    /// Records a limit's status for the response headers; fails if the quota is exhausted.
    fn enforce(&self, status: Option<Status>, request: &Parts) -> Result<(), Error> {
        let Some(status) = status else {
            return Ok(());
        };
        if let Some(statuses) = request.extensions.get::<LimitStatuses>() {
            statuses.add(status);
        }
        if status.is_allowed {
            return Ok(());
        }
        self.rejected.inc(status.policy);
        let (quota, window) = (status.quota, status.window);
        let message = format!("more than {quota} requests in {window} s");
        Err(Error::new(&codes::TOO_MANY_REQUESTS, message).with(Details::RetryAfter(status.reset)))
    }
}
