//! Rate limits: per API client, per address and credentials at the token endpoint, and per address for
//! tracking pages. Each gateway counts separately: behind a load balancer, limits multiply by the number of
//! gateways.

pub(crate) mod client_address;

use std::{fmt::Write as _, net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use egress::Network;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION, request::Parts};
use parking_lot::Mutex;
use process::metrics::Counters;
use rate_limits::{Limiter, Status, credentials_key, peer_key};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::{
    config::RateLimitConfig,
    error::{Details, Error},
    representation::error_codes as codes,
    resources::tracking,
};

/// The names of the limits, in headers and metrics.
const CLIENT: &str = "client";
const TOKEN_ADDRESS: &str = "token-address";
const TOKEN_CLIENT: &str = "token-client";
const TRACKING_ADDRESS: &str = "tracking-address";

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// How many tokens, and for how long (about their lifetime), their clients are cached.
const MAX_TOKENS: u64 = 100_000;
const TIME_TO_LIVE: Duration = Duration::from_hours(1);

/// All limiters, and the cached clients of access tokens.
pub(crate) struct RateLimits {
    clients: Limiter<QuotaKey>,
    token_addresses: Limiter<IpAddr>,
    /// Limits token requests by the hash of their key and secret.
    token_credentials: Limiter<[u8; 32]>,
    tracking_addresses: Limiter<IpAddr>,
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
            tracking_addresses: Limiter::new(TRACKING_ADDRESS, config.tracking_address),
            token_clients: TokenClients::new(),
            trusted_proxies: config.trusted_proxies.clone(),
            rejected: Counters::new(
                "limit",
                &[CLIENT, TOKEN_ADDRESS, TOKEN_CLIENT, TRACKING_ADDRESS],
            ),
        }
    }

    /// Counts a request from an address; fails if its quota is exhausted.
    pub(crate) fn check(&self, request: &Parts, address: IpAddr) -> Result<(), Error> {
        let path = request.uri.path();
        if path == "/oauth2/token" {
            return self.enforce(self.token_addresses.check(&address), request);
        }
        if path.starts_with(tracking::PAGES) {
            return self.enforce(self.tracking_addresses.check(&address), request);
        }
        if path == "/api" || path.starts_with("/api/") {
            let authorization = request.headers.get(AUTHORIZATION);
            let key = authorization
                .and_then(|value| self.token_clients.find(value.as_bytes()))
                .map_or(QuotaKey::Address(address), QuotaKey::Client);
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
        api_key: &str,
        api_secret: &str,
    ) -> Result<(), Error> {
        let key = credentials_key(api_key, api_secret);
        self.enforce(self.token_credentials.check(&key), request)
    }

    /// The address by which a client is counted: the peer's, or behind a trusted proxy the forwarded one;
    /// of IPv6 only the network.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        peer_key(client_address::resolve(
            peer,
            headers,
            &self.trusted_proxies,
        ))
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

/// The statuses of all limits that count a request, for the response headers `RateLimit-Policy` and
/// `RateLimit` (draft-ietf-httpapi-ratelimit-headers, version 09 and later). Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitStatuses(Arc<Mutex<Vec<Status>>>);

impl LimitStatuses {
    fn add(&self, status: Status) {
        self.0.lock().push(status);
    }

    /// Adds the headers, if a limit counts the request.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let statuses = self.0.lock();
        if statuses.is_empty() {
            return;
        }
        let (mut policies, mut limits) = (String::new(), String::new());
        for status in statuses.iter() {
            let Status {
                policy,
                quota,
                window,
                remaining,
                reset,
                ..
            } = status;
            let comma = if policies.is_empty() { "" } else { ", " };
            // Writing to a `String` cannot fail.
            let _ = write!(policies, "{comma}\"{policy}\";q={quota};w={window}");
            let _ = write!(limits, "{comma}\"{policy}\";r={remaining};t={reset}");
        }
        for (name, value) in [(POLICY, policies), (LIMIT, limits)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }
}

/// The API keys of the clients of accepted tokens, by the SHA-256 of the token. The gateway
/// cannot verify tokens, and trusting an unverified one would let any sender use up another client's
/// quota. So a token's client is cached only after core has accepted the token.
#[derive(Debug)]
pub(crate) struct TokenClients(moka::sync::Cache<[u8; 32], Arc<str>>);

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl TokenClients {
    fn new() -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(MAX_TOKENS)
                .time_to_live(TIME_TO_LIVE)
                .build(),
        )
    }

    fn find(&self, authorization: &[u8]) -> Option<Arc<str>> {
        self.0.get(&key(token(authorization)?))
    }

    /// Caches the client of a token that core has accepted.
    pub(crate) fn record_accepted(&self, authorization: &[u8]) {
        let Some(token) = token(authorization) else {
            return;
        };
        let key = key(token);
        if !self.0.contains_key(&key)
            && let Some(client) = client(token)
        {
            tracing::Span::current().record("client.key", &*client);
            self.0.insert(key, client);
        }
    }
}

/// The token in an `Authorization` header, as core reads it: the scheme in any case, any number of spaces,
/// it is the same.
fn token(authorization: &[u8]) -> Option<&str> {
    let (_, token) = str::from_utf8(authorization).ok()?.split_once(' ')?;
    Some(token.trim())
}

fn key(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The subject of a JWT: the key of its API client.
fn client(token: &str) -> Option<Arc<str>> {
    let payload = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?)
        .ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(claims.sub.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(claims: &str) -> Vec<u8> {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(claims);
        format!("Bearer e30.{payload}.c2lnbmF0dXJl").into_bytes()
    }

    #[test]
    fn a_tokens_client_is_known_once_core_has_accepted_it() {
        let token_clients = TokenClients::new();
        let (first, second) = (bearer(r#"{"sub":"a"}"#), bearer(r#"{"sub":"a","jti":"2"}"#));

        assert_eq!(token_clients.find(&first), None);
        token_clients.record_accepted(&first);
        token_clients.record_accepted(b"Bearer opaque");
        token_clients.record_accepted(&bearer("{}"));

        assert_eq!(token_clients.find(&first).as_deref(), Some("a"));
        let token = str::from_utf8(&first[7..]).unwrap();
        let respelt = format!("bEaReR  \t{token}");
        assert_eq!(token_clients.find(respelt.as_bytes()).as_deref(), Some("a"));
        assert_eq!(token_clients.find(&second), None);
        assert_eq!(token_clients.find(b"Bearer opaque"), None);
        assert_eq!(token_clients.find(&bearer("{}")), None);
    }
}
