//! Whose token is whose. The gateway can't judge tokens, and a name in one that nobody has
//! judged may be anybody's: to believe it would let everyone use up everyone's budget. So a token
//! is only believed once core has answered to it.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// How many tokens are remembered.
const KEPT: u64 = 100_000;

/// How long: about as long as tokens are good.
const REMEMBERED: Duration = Duration::from_hours(1);

/// The clients whose tokens core has accepted, by the SHA-256 of what was in `Authorization`.
#[derive(Clone, Debug)]
pub(crate) struct KnownClients(moka::sync::Cache<[u8; 32], Arc<str>>);

/// A token that core may accept.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    known_clients: KnownClients,
    authorization: Arc<[u8]>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl KnownClients {
    pub(super) fn new() -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(KEPT)
                .time_to_live(REMEMBERED)
                .build(),
        )
    }

    pub(super) fn find(&self, authorization: &[u8]) -> Option<Arc<str>> {
        self.0.get(&key(authorization))
    }

    pub(crate) fn token(&self, authorization: &[u8]) -> Token {
        Token {
            known_clients: self.clone(),
            authorization: authorization.into(),
        }
    }
}

impl Token {
    /// Core has done what was asked with it.
    pub(crate) fn was_accepted(&self) {
        let key = key(&self.authorization);
        let clients = &self.known_clients.0;
        if !clients.contains_key(&key)
            && let Some(client) = client(&self.authorization)
        {
            clients.insert(key, client);
        }
    }
}

fn key(authorization: &[u8]) -> [u8; 32] {
    Sha256::digest(authorization).into()
}

/// The subject of a JWT.
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

    fn bearing(claims: &str) -> Vec<u8> {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(claims);
        format!("Bearer e30.{payload}.c2lnbmF0dXJl").into_bytes()
    }

    #[test]
    fn a_token_is_its_clients_once_core_has_accepted_it() {
        let known_clients = KnownClients::new();
        let (first, second) = (
            bearing(r#"{"sub":"a"}"#),
            bearing(r#"{"sub":"a","jti":"2"}"#),
        );

        assert_eq!(known_clients.find(&first), None);
        known_clients.token(&first).was_accepted();
        known_clients.token(b"Bearer opaque").was_accepted();
        known_clients.token(&bearing("{}")).was_accepted();

        assert_eq!(known_clients.find(&first).as_deref(), Some("a"));
        assert_eq!(known_clients.find(&second), None);
        assert_eq!(known_clients.find(b"Bearer opaque"), None);
        assert_eq!(known_clients.find(&bearing("{}")), None);
    }
}
