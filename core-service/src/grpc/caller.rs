//! Who calls: from a bearer token to a [`Caller`], and what a caller may do.

use std::{sync::Arc, time::Duration};

use domain::{
    address::Address,
    api_client::{Scope, Scopes},
    id::ApiClientId,
    store::Store,
};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use tonic::metadata::MetadataMap;

use super::Core;

use crate::{
    access_token::{self, Claims},
    error::{Error, Unauthenticated},
};

/// How long a judged token is believed without asking the database again: a client that is
/// disabled, and a store that is changed, are so at every core after this long.
const BELIEVED: Duration = Duration::from_mins(1);

/// How many judged tokens are kept.
const KEPT: u64 = 100_000;

/// How often it is asked whether a stream's client still may hold it.
const STREAM_CHECK: Duration = Duration::from_secs(30);

/// An API client whose token is good.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) id: ApiClientId,
    scopes: Scopes,
    store: Option<Store>,
    /// The client's own default pickup address.
    pub(crate) default_address: Option<Address>,
    judged_at: Timestamp,
    /// Seconds since 1970.
    expires: i64,
}

impl Caller {
    /// A shop's program without a scope, for what an operator asks on a store's behalf.
    pub(super) fn of_store(id: ApiClientId, store: Store, now: Timestamp) -> Self {
        Self {
            id,
            scopes: Scopes::new([]),
            store: Some(store),
            default_address: None,
            judged_at: now,
            expires: now.as_second(),
        }
    }

    /// Fails unless the token has a scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Error::Forbidden { scope })
        }
    }

    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// The store the client belongs to.
    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }
}

/// The tokens that were judged good a short while ago, by their SHA-256.
#[derive(Debug)]
pub(crate) struct Callers(moka::sync::Cache<[u8; 32], Arc<Caller>>);

impl Callers {
    pub(crate) fn new() -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(KEPT)
                .time_to_live(BELIEVED)
                .build(),
        )
    }

    /// Forgets them all, because something about a client or a store has changed.
    pub(crate) fn forget(&self) {
        self.0.invalidate_all();
    }
}

impl Core {
    /// Judges the bearer token of a call (RFC 6750 §2.1).
    pub(crate) async fn authenticate(&self, metadata: &MetadataMap) -> Result<Arc<Caller>, Error> {
        let token = bearer_token(metadata)?;
        let key = <[u8; 32]>::from(Sha256::digest(token));
        let now = self.clock.now();
        if let Some(caller) = self.callers.0.get(&key)
            && now.duration_since(caller.judged_at)
                < SignedDuration::try_from(BELIEVED).unwrap_or_default()
        {
            if now.as_second() >= caller.expires {
                return Err(Error::Unauthenticated(Unauthenticated::ExpiredToken));
            }
            return Ok(caller);
        }

        let claims = self.verify(token, now).await?;
        let caller = Arc::new(self.find_caller(&claims, now).await?);
        self.callers.0.insert(key, Arc::clone(&caller));
        Ok(caller)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        let mut judged = self.key_ring.ring().verify(token, now);
        if judged == Err(access_token::Error::UnknownKey) {
            self.reload_signing_keys().await?;
            judged = self.key_ring.ring().verify(token, now);
        }
        judged.map_err(|error| {
            Error::Unauthenticated(match error {
                access_token::Error::Expired => Unauthenticated::ExpiredToken,
                access_token::Error::Invalid | access_token::Error::UnknownKey => {
                    Unauthenticated::InvalidToken
                }
            })
        })
    }

    async fn find_caller(&self, claims: &Claims, now: Timestamp) -> Result<Caller, Error> {
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
            // What the client has lost since, its tokens have lost too.
            scopes: Scopes::new(scopes.iter().filter(|scope| client.scopes.contains(*scope))),
            store,
            default_address: client.default_address,
            judged_at: now,
            expires: claims.exp,
        })
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

impl Core {
    /// Ends, with why, when the token's client may hold a stream no more; that its token has
    /// expired since the stream was opened does not matter.
    pub(super) async fn revoked(
        &self,
        token: &MetadataMap,
        permit: impl Fn(&Caller) -> Result<(), Error>,
    ) -> Error {
        loop {
            tokio::time::sleep(STREAM_CHECK).await;
            match self.authenticate(token).await {
                Ok(caller) => {
                    if let Err(refused) = permit(&caller) {
                        return refused;
                    }
                }
                Err(Error::Unauthenticated(Unauthenticated::ExpiredToken)) => {}
                Err(error @ Error::Unauthenticated(_)) => return error,
                // The database may be away for a while; that takes nothing from anybody.
                Err(_) => {}
            }
        }
    }
}
