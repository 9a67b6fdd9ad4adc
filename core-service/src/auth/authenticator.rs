//! Authentication: verifies bearer tokens and finds their clients.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{
    api_client::{ApiClient, Scopes},
    api_secrets::ValidSecret,
    id::StoreId,
    store::Store,
};
use jiff::Timestamp;
use process::clock::Clock;
use sha2::{Digest, Sha256};
use storage::Storage;
use tokio::{sync::Mutex, time::Instant};
use tonic::metadata::MetadataMap;

use super::{audit::Audit, caller::Caller};
use crate::{
    auth::access_token::{self, Claims},
    error::{Error, Unauthenticated},
    workers::key_ring::KeyRing,
};

/// How long a caller is cached. Every core notices a disabled client, a secret that was ended or a
/// changed store within this time.
const CACHE_TTL: Duration = Duration::from_mins(1);

const CACHE_CAPACITY: u64 = 100_000;

/// How often to check that a stream's client is still permitted. The streams of a client share the
/// query.
const REVOCATION_CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct Authenticator {
    storage: Arc<Storage>,
    key_ring: Arc<KeyRing>,
    pub(super) clock: Clock,
    /// The callers by the SHA-256 of their tokens.
    cache: moka::sync::Cache<[u8; 32], CachedCaller>,
    /// The clients of streams by their keys, as they were checked in the last interval. Locked
    /// during a query, so that no other stream repeats it.
    checked: Mutex<HashMap<String, (Instant, Option<ApiClient>)>>,
    /// The stores that were enabled when a token was issued, and when to read them again: the next token reads
    /// only its client. Not those that were disabled, so that they are enabled at once.
    enabled_stores: moka::sync::Cache<StoreId, Timestamp>,
}

#[derive(Clone)]
struct CachedCaller {
    caller: Arc<Caller>,
    /// When the token is verified again: at the latest when it or its secret expires.
    valid_until: Timestamp,
}

impl Authenticator {
    pub(crate) fn new(storage: Arc<Storage>, key_ring: Arc<KeyRing>, clock: Clock) -> Self {
        Self {
            storage,
            key_ring,
            clock,
            cache: moka::sync::Cache::builder()
                .max_capacity(CACHE_CAPACITY)
                .time_to_live(CACHE_TTL)
                .build(),
            checked: Mutex::default(),
            enabled_stores: moka::sync::Cache::builder()
                .max_capacity(CACHE_CAPACITY)
                .time_to_live(CACHE_TTL)
                .build(),
        }
    }

    /// Invalidates the cache, after a change to a client or a store.
    pub(crate) fn invalidate(&self) {
        self.cache.invalidate_all();
        self.enabled_stores.invalidate_all();
    }

    /// Fails if the store of a client is disabled. Notices it within [`CACHE_TTL`] if another core has disabled it.
    pub(crate) async fn check_store(&self, client: &ApiClient) -> Result<(), Error> {
        let (Some(id), now) = (client.store_id, self.clock.now()) else {
            return Ok(());
        };
        let is_fresh = |until: Timestamp| now < until;
        if self.enabled_stores.get(&id).is_some_and(is_fresh) {
            return Ok(());
        }
        let store = storage::stores::find_shared(&self.storage, id).await?;
        require_enabled(store.as_ref())?;
        let until = now.checked_add(CACHE_TTL).unwrap_or(now);
        self.enabled_stores.insert(id, until);
        Ok(())
    }

    /// Verifies the bearer token of a call (RFC 6750 §2.1).
    pub(crate) async fn authenticate(&self, metadata: &MetadataMap) -> Result<Arc<Caller>, Error> {
        let token = bearer_token(metadata)?;
        let key = <[u8; 32]>::from(Sha256::digest(token));
        let now = self.clock.now();
        if let Some(cached) = self.cache.get(&key)
            && now < cached.valid_until
        {
            return Ok(cached.caller);
        }

        let claims = self.verify(token, now).await?;
        let (caller, secret) = self.find_caller(&claims, now).await?;
        let caller = Arc::new(caller);
        let ends = [
            now.checked_add(CACHE_TTL).ok(),
            Timestamp::from_second(claims.exp).ok(),
            secret.expires_at,
        ];
        let cached = CachedCaller {
            caller: Arc::clone(&caller),
            valid_until: ends.into_iter().flatten().min().unwrap_or(now),
        };
        self.cache.insert(key, cached);
        Ok(caller)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        // Fresh, because a key may have been revoked at another core.
        let mut verified = self.key_ring.fresh_keys().await?.verify(token, now);
        if verified == Err(access_token::Error::UnknownKey) {
            self.key_ring.reload_if_due().await?;
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

    /// Finds the client of a token, with its store, and the token's secret.
    async fn find_caller(
        &self,
        claims: &Claims,
        now: Timestamp,
    ) -> Result<(Caller, ValidSecret), Error> {
        let client = storage::api_clients::find_by_key(&self.storage, &claims.client_id).await?;
        let (client, secret) = with_secret(client, claims, now)?;
        let store = match client.store_id {
            Some(id) => storage::stores::find_shared(&self.storage, id).await?,
            None => None,
        };
        require_enabled(store.as_ref())?;
        if let Some(id) = client.courier_id {
            let courier = storage::couriers::find(self.storage.reader(), id).await?;
            if courier.is_none_or(|courier| courier.disabled_at.is_some()) {
                return Err(Error::Unauthenticated(Unauthenticated::InvalidToken));
            }
        }
        Ok((caller(client, store, claims), secret))
    }

    /// Like [`Self::authenticate`], for a stream. Returns the claims for [`Self::revoked`] too.
    pub(crate) async fn authenticate_stream(
        &self,
        metadata: &MetadataMap,
    ) -> Result<(Caller, Claims), Error> {
        let now = self.clock.now();
        let claims = self.verify(bearer_token(metadata)?, now).await?;
        let (caller, _) = self.find_caller(&claims, now).await?;
        Ok((caller, claims))
    }

    /// Waits until the token of a stream, its key or its secret has ended, or its client is no
    /// longer permitted, and returns why. `authorize` gets the caller without its store.
    pub(crate) async fn revoked(
        &self,
        claims: &Claims,
        authorize: impl Fn(&Caller) -> Result<(), Error>,
    ) -> Error {
        loop {
            tokio::time::sleep(REVOCATION_CHECK_INTERVAL).await;
            let now = self.clock.now();
            if now.as_second() >= claims.exp {
                return Error::Unauthenticated(Unauthenticated::ExpiredToken);
            }
            let checked = self.check_client(claims, now, &authorize).await;
            // An unavailable database must not end streams.
            if let Err(error @ (Error::Unauthenticated(_) | Error::Forbidden { .. })) = checked {
                return error;
            }
        }
    }

    /// The client of a stream's token, read in the last interval.
    async fn checked_client(&self, claims: &Claims) -> Result<Option<ApiClient>, Error> {
        let mut checked = self.checked.lock().await;
        checked.retain(|_, (at, _)| at.elapsed() < REVOCATION_CHECK_INTERVAL);
        if let Some((_, client)) = checked.get(&claims.client_id) {
            return Ok(client.clone());
        }
        let client = storage::api_clients::find_by_key(&self.storage, &claims.client_id).await?;
        checked.insert(claims.client_id.clone(), (Instant::now(), client.clone()));
        Ok(client)
    }

    /// Fails if the client of a token is no longer permitted. Reads the database instead of the
    /// cache, which does not notice at once what was changed at another core.
    async fn check_client(
        &self,
        claims: &Claims,
        now: Timestamp,
        authorize: impl Fn(&Caller) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let keys = self.key_ring.fresh_keys().await?;
        if !keys.contains(&claims.key_id) {
            return Err(Error::Unauthenticated(Unauthenticated::InvalidToken));
        }
        let (client, _) = with_secret(self.checked_client(claims).await?, claims, now)?;
        authorize(&caller(client, None, claims))
    }
}

/// A client and the secret of its token. Fails if the client is disabled, or if the secret has
/// ended. The token names its secret, because its time alone could not distinguish a token issued
/// right before a rotation from one issued right after it.
fn with_secret(
    client: Option<ApiClient>,
    claims: &Claims,
    now: Timestamp,
) -> Result<(ApiClient, ValidSecret), Error> {
    client
        .and_then(|client| {
            let secret = client.find_secret(&claims.secret_id, now)?;
            Some((client, secret))
        })
        .ok_or(Error::Unauthenticated(Unauthenticated::InvalidToken))
}

/// The streams need no check: they are those of clients without a store.
pub(crate) fn require_enabled(store: Option<&Store>) -> Result<(), Error> {
    if store.is_some_and(|store| store.disabled_at.is_some()) {
        return Err(Error::StoreDisabled);
    }
    Ok(())
}

fn caller(client: ApiClient, store: Option<Store>, claims: &Claims) -> Caller {
    let granted = Scopes::parse_known(&claims.scope);
    Caller {
        id: client.id,
        // Scopes that were removed from the client are removed from its tokens.
        scopes: Scopes::new(granted.iter().filter(|scope| client.scopes.permits(*scope))),
        store,
        courier_id: client.courier_id,
        task_status: client.task_status,
        default_address: client.default_address,
        audit: Audit::default(),
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
        _ => Err(Error::Unauthenticated(Unauthenticated::NotBearer)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use domain::{
        api_client::TaskStatus,
        api_secrets::{ApiSecrets, SecretHash},
        id::ApiClientId,
    };
    use jiff::SignedDuration;
    use storage::fixture;
    use tempfile::TempDir;

    use super::*;
    use crate::secrets::secret_box::SecretBox;

    impl Authenticator {
        /// Changes a client as another core does, without invalidating this one's cache.
        async fn disable(&self, client: &ApiClient) {
            let disabled = ApiClient {
                disabled_at: Some(self.clock.now()),
                ..client.clone()
            };
            let changed = self.storage.write(move |transaction| async move {
                storage::api_clients::update(&transaction, &disabled).await
            });
            changed.await.unwrap();
        }
    }

    /// An authenticator at the epoch, and a client with a token of an hour.
    pub(crate) async fn authenticator() -> (TempDir, Authenticator, ApiClient, MetadataMap) {
        let (directory, storage) = fixture::sqlite().await;
        let client = ApiClient {
            id: ApiClientId::new(),
            store_id: None,
            courier_id: None,
            display_name: "Operator".to_owned(),
            api_key: "the-key".to_owned(),
            secrets: ApiSecrets::new(SecretHash::of("secret")),
            scopes: Scopes::parse("admin").unwrap(),
            task_status: TaskStatus::Specified,
            default_address: None,
            created_at: Timestamp::UNIX_EPOCH,
            disabled_at: None,
        };
        let new = client.clone();
        let inserted = storage.write(move |transaction| async move {
            storage::api_clients::insert(&transaction, &new).await
        });
        inserted.await.unwrap();
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let secret_box = SecretBox::open_or_create(&directory.path().join("master.key"));
        let key_ring = KeyRing::open(
            Arc::clone(&storage),
            Arc::new(secret_box.unwrap()),
            clock.clone(),
            "http://delivery.example".to_owned(),
        );
        let key_ring = Arc::new(key_ring.await.unwrap());
        let secret = client.secrets.accept("secret", clock.now()).unwrap();
        let signer = key_ring.keys();
        let token = signer.sign(&client, secret, &client.scopes, clock.now(), 3600);
        let bearer = format!("Bearer {}", token.unwrap().access_token);
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", bearer.parse().unwrap());
        let authenticator = Authenticator::new(storage, key_ring, clock);
        (directory, authenticator, client, metadata)
    }

    #[tokio::test]
    async fn a_change_at_another_core_is_noticed_after_a_minute() {
        let (_directory, authenticator, client, metadata) = authenticator().await;
        let caller = authenticator.authenticate(&metadata).await.unwrap();
        assert_eq!(caller.id, client.id);

        authenticator.disable(&client).await;

        let moment = SignedDuration::from_micros(1);
        authenticator
            .clock
            .advance(SignedDuration::from_mins(1) - moment);
        let caller = authenticator.authenticate(&metadata).await.unwrap();
        assert_eq!(caller.id, client.id);
        authenticator.clock.advance(moment);
        let denied = authenticator.authenticate(&metadata).await.unwrap_err();
        let is_invalid = matches!(
            denied,
            Error::Unauthenticated(Unauthenticated::InvalidToken)
        );
        assert!(is_invalid, "{denied:?}");
    }

    #[tokio::test]
    async fn the_streams_of_a_client_share_a_check_in_two_seconds() {
        let (_directory, authenticator, client, metadata) = authenticator().await;
        let (_, claims) = authenticator.authenticate_stream(&metadata).await.unwrap();
        let is_disabled = async || {
            let client = authenticator.checked_client(&claims).await.unwrap();
            client.unwrap().disabled_at.is_some()
        };
        assert!(!is_disabled().await);
        authenticator.disable(&client).await;
        assert!(!is_disabled().await);

        for (checked_at, _) in authenticator.checked.lock().await.values_mut() {
            *checked_at = checked_at.checked_sub(REVOCATION_CHECK_INTERVAL).unwrap();
        }

        assert!(is_disabled().await);
    }

    #[tokio::test]
    async fn a_token_has_the_scopes_that_its_client_permits() {
        let (_directory, authenticator, client, metadata) = authenticator().await;
        let (_, claims) = authenticator.authenticate_stream(&metadata).await.unwrap();
        let claims = |scope: &str| Claims {
            scope: scope.to_owned(),
            ..claims.clone()
        };
        for (granted, expected) in [
            ("dispatch", "dispatch"),
            ("dispatch:read platform:read", "dispatch:read platform:read"),
            ("dispatch admin", "dispatch admin"),
            ("admin courier", "admin"),
            ("tasks:all", ""),
        ] {
            let caller = caller(client.clone(), None, &claims(granted));
            assert_eq!(caller.scopes.to_string(), expected, "{granted}");
        }
    }

    #[test]
    fn a_token_is_read_from_one_header_of_the_bearer_scheme() {
        let read = |values: &[&'static str]| {
            let mut metadata = MetadataMap::new();
            for value in values {
                metadata.append("authorization", value.parse().unwrap());
            }
            match bearer_token(&metadata) {
                Ok(token) => Ok(token.to_owned()),
                Err(Error::Unauthenticated(why)) => Err(why),
                Err(other) => panic!("{other:?}"),
            }
        };

        for header in ["Bearer  a.b.c ", "bearer a.b.c"] {
            assert_eq!(read(&[header]), Ok("a.b.c".to_owned()));
        }
        assert_eq!(read(&[]), Err(Unauthenticated::NoToken));
        for other in ["Basic a.b.c", "a.b.c", ""] {
            assert_eq!(read(&[other]), Err(Unauthenticated::NotBearer));
        }
        let twice = read(&["Bearer a", "Bearer a"]);
        assert_eq!(twice, Err(Unauthenticated::InvalidToken));
    }
}
