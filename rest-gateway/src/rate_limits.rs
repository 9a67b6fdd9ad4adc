//! Rate limits: per API client, per address and credentials at the token endpoint, and per address for
//! tracking pages. Each gateway counts separately: behind a load balancer, limits multiply by the number of
//! gateways.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

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

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
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
        peer_key(last_untrusted(peer, headers, &self.trusted_proxies))
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

/// The client's address: the last hop that is not a trusted proxy, which is the peer or one in
/// `X-Forwarded-For`: any client may have forged the hops before it.
pub(crate) fn last_untrusted(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    let mut last = peer.to_canonical();
    let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let hops = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    for hop in hops {
        if !is_trusted(last) {
            break;
        }
        // The hop that reported a malformed one is the last with a known address.
        let Some(address) = parse_hop(hop) else { break };
        last = address;
    }
    last
}

/// Parses an address, optionally in brackets, optionally with a port.
fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let hop = str::from_utf8(hop).ok()?.trim();
    let inner = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let with_port = || hop.parse().map(|addr: SocketAddr| addr.ip());
    let address: IpAddr = inner.unwrap_or(hop).parse().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
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
    use proptest::{collection, prelude::*};

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

    const PROXY: &str = "10.0.0.1";

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| {
            let value = HeaderValue::from_str(value).unwrap();
            (X_FORWARDED_FOR, value)
        });
        values.collect()
    }

    #[track_caller]
    fn check(peer: &str, values: &[&str], expected: &str) {
        let trusted = networks(&["10.0.0.0/8", "fd00::/8"]);
        let address = last_untrusted(peer.parse().unwrap(), &headers(values), &trusted);
        assert_eq!(address, expected.parse::<IpAddr>().unwrap(), "{values:?}");
    }

    #[test]
    fn a_header_of_an_untrusted_peer_is_ignored() {
        check("192.0.2.1", &["192.0.2.9"], "192.0.2.1");
        check("::ffff:192.0.2.1", &["192.0.2.9"], "192.0.2.1");
        check("::ffff:10.0.0.1", &["192.0.2.9"], "192.0.2.9");
        check(PROXY, &[], PROXY);
    }

    #[test]
    fn the_last_untrusted_hop_is_the_client() {
        for (value, expected) in [
            ("192.0.2.9", "192.0.2.9"),
            ("1.1.1.1, 192.0.2.9", "192.0.2.9"),
            ("1.1.1.1,192.0.2.9:8080 , 10.9.9.9", "192.0.2.9"),
            ("2001:db8::9", "2001:db8::9"),
            ("[2001:db8::9]", "2001:db8::9"),
            ("[2001:db8::9]:80", "2001:db8::9"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ] {
            check(PROXY, &[value], expected);
        }
        check(PROXY, &["1.1.1.1", "192.0.2.9"], "192.0.2.9");
    }

    #[test]
    fn a_malformed_hop_ends_the_search() {
        for value in [
            "",
            "192.0.2.9, unknown",
            "192.0.2.9,",
            "999.0.2.9",
            "[192.0.2.9",
        ] {
            check(PROXY, &[value], PROXY);
        }
        check(PROXY, &["1.1.1.1, ?, 10.0.0.7"], "10.0.0.7");
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parser_panic(values in collection::vec(any::<Vec<u8>>(), 0..4)) {
            let values = values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok());
            let headers = values.map(|value| (X_FORWARDED_FOR, value)).collect();

            let _ = last_untrusted(PROXY.parse().unwrap(), &headers, &networks(&["10.0.0.0/8"]));
        }

        /// Text before the trusted proxy's own element yields no address of the client's choice.
        #[test]
        fn a_client_cannot_forge_another_address(text in "[ -~]{0,60}", client: [u8; 4]) {
            let client = IpAddr::from(client);
            let trusted = networks(&["10.0.0.1"]);
            prop_assume!(!trusted[0].contains(client));

            let forged = headers(&[&text, &client.to_string()]);

            prop_assert_eq!(last_untrusted(PROXY.parse().unwrap(), &forged, &trusted), client);
        }
    }
}
