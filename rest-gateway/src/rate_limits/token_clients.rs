//! Caches the clients of access tokens. The gateway cannot verify tokens, and trusting an
//! unverified one would let any sender use up another client's quota. So a token's client is
//! cached only after core has accepted the token.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest, Sha256};

const MAX_TOKENS: u64 = 100_000;

/// About the lifetime of tokens.
const TIME_TO_LIVE: Duration = Duration::from_hours(1);

/// The API keys of the clients of accepted tokens, by the SHA-256 of the `Authorization` header.
#[derive(Debug)]
pub(crate) struct TokenClients(moka::sync::Cache<[u8; 32], Arc<str>>);

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl TokenClients {
    pub(super) fn new() -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(MAX_TOKENS)
                .time_to_live(TIME_TO_LIVE)
                .build(),
        )
    }

    pub(super) fn find(&self, authorization: &[u8]) -> Option<Arc<str>> {
        self.0.get(&key(authorization))
    }

    /// Caches the client of a token that core has accepted.
    pub(crate) fn record_accepted(&self, authorization: &[u8]) {
        let key = key(authorization);
        if !self.0.contains_key(&key)
            && let Some(client) = client(authorization)
        {
            tracing::Span::current().record("client.key", &*client);
            self.0.insert(key, client);
        }
    }
}

fn key(authorization: &[u8]) -> [u8; 32] {
    Sha256::digest(authorization).into()
}

/// The subject of a JWT: the key of its API client.
fn client(authorization: &[u8]) -> Option<Arc<str>> {
    let text = str::from_utf8(authorization).ok()?;
    let mut parts = text.rsplit(' ').next()?.split('.');
    let payload = BASE64_URL_SAFE_NO_PAD.decode(parts.nth(1)?).ok()?;
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
        assert_eq!(token_clients.find(&second), None);
        assert_eq!(token_clients.find(b"Bearer opaque"), None);
        assert_eq!(token_clients.find(&bearer("{}")), None);
    }
}
