//! Authentication: verifies bearer tokens and finds their clients.

use std::{sync::Arc, time::Duration};

use domain::api_client::Scopes;
use jiff::{SignedDuration, Timestamp};
use process::clock::Clock;
use sha2::{Digest, Sha256};
use storage::Storage;
use tonic::metadata::MetadataMap;

use super::{caller::Caller, key_ring::KeyRing};

use crate::{
    access_token::{self, Claims},
    error::{Error, Unauthenticated},
};

/// How long a caller is cached. Every core notices a disabled client or a changed store within this
/// time.
const CACHE_TTL: Duration = Duration::from_mins(1);

/// The most cached callers.
const CACHE_CAPACITY: u64 = 100_000;

/// How often to check that a stream's client is still permitted.
const REVOCATION_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Authenticates calls.
pub(super) struct Authenticator {
    storage: Arc<Storage>,
    key_ring: Arc<KeyRing>,
    clock: Clock,
    /// By the SHA-256 of their tokens.
    cache: moka::sync::Cache<[u8; 32], CachedCaller>,
}

#[derive(Clone)]
struct CachedCaller {
    caller: Arc<Caller>,
    verified_at: Timestamp,
    /// Unix time in seconds.
    expires_at: i64,
}

impl Authenticator {
    pub(super) fn new(storage: Arc<Storage>, key_ring: Arc<KeyRing>, clock: Clock) -> Self {
        Self {
            storage,
            key_ring,
            clock,
            cache: moka::sync::Cache::builder()
                .max_capacity(CACHE_CAPACITY)
                .time_to_live(CACHE_TTL)
                .build(),
        }
    }

    /// Invalidates the cache, after a change to a client or a store.
    pub(super) fn invalidate(&self) {
        self.cache.invalidate_all();
    }

    /// Verifies the bearer token of a call (RFC 6750 §2.1).
    pub(super) async fn authenticate(&self, metadata: &MetadataMap) -> Result<Arc<Caller>, Error> {
        let token = bearer_token(metadata)?;
        let key = <[u8; 32]>::from(Sha256::digest(token));
        let now = self.clock.now();
        if let Some(cached) = self.cache.get(&key)
            && now.duration_since(cached.verified_at)
                < SignedDuration::try_from(CACHE_TTL).unwrap_or_default()
        {
            if now.as_second() >= cached.expires_at {
                return Err(Error::Unauthenticated(Unauthenticated::ExpiredToken));
            }
            return Ok(cached.caller);
        }

        let claims = self.verify(token, now).await?;
        let caller = Arc::new(self.find_caller(&claims).await?);
        let cached = CachedCaller {
            caller: Arc::clone(&caller),
            verified_at: now,
            expires_at: claims.exp,
        };
        self.cache.insert(key, cached);
        Ok(caller)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        let mut verified = self.key_ring.keys().verify(token, now);
        if verified == Err(access_token::Error::UnknownKey) {
            self.key_ring.reload().await?;
            verified = self.key_ring.keys().verify(token, now);
        }
        verified.map_err(|error| {
            Error::Unauthenticated(match error {
                access_token::Error::Expired => Unauthenticated::ExpiredToken,
                access_token::Error::Invalid | access_token::Error::UnknownKey => {
                    Unauthenticated::InvalidToken
                }
            })
        })
    }

    async fn find_caller(&self, claims: &Claims) -> Result<Caller, Error> {
        let invalid = || Error::Unauthenticated(Unauthenticated::InvalidToken);
        let reader = self.storage.reader();
        let client = storage::api_clients::find_by_key(reader, &claims.client_id)
            .await?
            .filter(|client| client.disabled_at.is_none())
            .ok_or_else(invalid)?;
        let store = match client.store_id {
            Some(id) => storage::stores::find(reader, id).await?,
            None => None,
        };
        let scopes = Scopes::parse(&claims.scope).map_err(|_| invalid())?;
        Ok(Caller {
            id: client.id,
            // Scopes that were removed from the client are removed from its tokens.
            scopes: Scopes::new(scopes.iter().filter(|scope| client.scopes.contains(*scope))),
            store,
            default_address: client.default_address,
        })
    }

    /// Waits until the token's client is no longer permitted, and returns why. The expiry of the
    /// token during the stream has no effect.
    pub(super) async fn revoked(
        &self,
        metadata: &MetadataMap,
        authorize: impl Fn(&Caller) -> Result<(), Error>,
    ) -> Error {
        loop {
            tokio::time::sleep(REVOCATION_CHECK_INTERVAL).await;
            match self.authenticate(metadata).await {
                Ok(caller) => {
                    if let Err(error) = authorize(&caller) {
                        return error;
                    }
                }
                Err(Error::Unauthenticated(Unauthenticated::ExpiredToken)) => {}
                Err(error @ Error::Unauthenticated(_)) => return error,
                // An unavailable database must not end streams.
                Err(_) => {}
            }
        }
    }
}

fn bearer_token(metadata: &MetadataMap) -> Result<&str, Error> {
    let mut values = metadata.get_all("authorization").iter();
    let value = values
        .next()
        .ok_or(Error::Unauthenticated(Unauthenticated::NoToken))?;
    let invalid = Error::Unauthenticated(Unauthenticated::InvalidToken);
    if values.next().is_some() {
        return Err(invalid);
    }
    let Ok(text) = value.to_str() else {
        return Err(invalid);
    };
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        Some(_) => Err(Error::Unauthenticated(Unauthenticated::NoToken)),
        None => Err(invalid),
    }
}
