//! How many requests each may make: API clients of the API, and addresses and clients of the token
//! endpoint. What is counted, this gateway counts for itself: behind a balancer, a client has
//! as many budgets as there are gateways.

mod address;
mod config;
mod known_clients;
mod limiter;
mod standings;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use egress::Network;
use governor::clock::DefaultClock;
use http::{header::AUTHORIZATION, request::Parts};
use sha2::{Digest, Sha256};

pub use self::config::{RateLimit, RateLimitConfig};
use self::limiter::{Budget, Limiter};
pub(crate) use self::{
    address::Peer,
    known_clients::{KnownClients, Token},
    standings::{Standings, layer},
};
use crate::error::Error;

/// The budgets, and who is who.
pub(crate) struct RateLimits {
    clients: Limiter<Sender>,
    token_addresses: Limiter<IpAddr>,
    token_clients: Limiter<[u8; 32]>,
    known_clients: KnownClients,
    trusted_proxies: Vec<Network>,
}

/// Whose budget a request of the API is taken from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sender {
    Client(Arc<str>),
    /// Of whoever is not known yet.
    Address(IpAddr),
}

impl RateLimits {
    pub(crate) fn new(config: &RateLimitConfig) -> Self {
        let clock = DefaultClock::default();
        Self {
            clients: Limiter::new("client", config.client, clock.clone()),
            token_addresses: Limiter::new("token-address", config.token_address, clock.clone()),
            token_clients: Limiter::new("token-client", config.token_client, clock),
            known_clients: KnownClients::new(),
            trusted_proxies: config.trusted_proxies.clone(),
        }
    }

    pub(crate) fn known_clients(&self) -> &KnownClients {
        &self.known_clients
    }

    /// Takes a request from its sender's budget; fails if there is nothing left of that.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), Error> {
        let path = request.uri.path();
        if path == "/oauth2/token" {
            let address = self.address(request);
            return settle(self.token_addresses.check(address), request);
        }
        if path == "/api" || path.starts_with("/api/") {
            return settle(self.clients.check(self.sender(request)), request);
        }
        Ok(())
    }

    /// Takes a request from the budget of whoever has these credentials. Who guesses secrets
    /// takes nothing from the client: each guess is somebody else's.
    pub(crate) fn check_credentials(
        &self,
        standings: Option<&Standings>,
        (api_key, api_secret): (&str, &str),
    ) -> Result<(), Error> {
        let credentials = Sha256::new()
            .chain_update(Sha256::digest(api_key))
            .chain_update(api_secret)
            .finalize();
        note(self.token_clients.check(credentials.into()), standings)
    }

    fn sender(&self, request: &Parts) -> Sender {
        request
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| self.known_clients.find(value.as_bytes()))
            .map_or_else(|| Sender::Address(self.address(request)), Sender::Client)
    }

    /// IPv6 addresses are given out by networks: each is as its first half.
    fn address(&self, request: &Parts) -> IpAddr {
        let peer = request.extensions.get::<Peer>();
        let peer = peer.map_or(Ipv6Addr::UNSPECIFIED.into(), |peer| peer.0);
        let address = address::of_client(peer, &request.headers, &self.trusted_proxies);
        match address {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            IpAddr::V4(_) => address,
        }
    }
}

fn settle(budget: Option<Budget>, request: &Parts) -> Result<(), Error> {
    note(budget, request.extensions.get::<Standings>())
}

/// Notes what the client is to be told of a budget; fails if it is used up.
fn note(budget: Option<Budget>, standings: Option<&Standings>) -> Result<(), Error> {
    let Some(Budget { standing, wait }) = budget else {
        return Ok(());
    };
    if let Some(standings) = standings {
        standings.add(standing);
    }
    match wait {
        None => Ok(()),
        Some(wait) => Err(Error::rate_limited(
            (standing.quota, standing.window),
            seconds_up(wait),
        )),
    }
}

/// Whole seconds, upwards: who comes back as told is not too early.
fn seconds_up(duration: Duration) -> u64 {
    let begun = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(begun).max(1)
}
