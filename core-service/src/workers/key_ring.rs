//! The key ring: the signing keys of access tokens that a core has in memory, loaded from the
//! database.

use std::{sync::Arc, time::Duration};

use domain::signing_key::{KEY_CACHE_MAX_AGE, KeyLifecycle};
use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::{sync::Mutex, time::Instant};

use process::clock::Clock;
use storage::{Storage, signing_keys::StoredSigningKey};

use crate::{
    auth::access_token::{SigningKey, SigningKeySet},
    error::Error,
    secrets::secret_box::{Purpose, SecretBox},
};

/// The minimum interval between reloads, so that tokens with invented key ids don't cause a query
/// each.
const MIN_RELOAD_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct KeyRing {
    storage: Arc<Storage>,
    secret_box: Arc<SecretBox>,
    clock: Clock,
    issuer: String,
    /// With the time of the last load.
    loaded: RwLock<(Arc<SigningKeySet>, Timestamp)>,
    /// The time of the last reload; locked during a reload.
    last_reload: Mutex<Option<Instant>>,
}

impl KeyRing {
    /// Loads the keys, and creates the first if there is none.
    pub(crate) async fn open(
        storage: Arc<Storage>,
        secret_box: Arc<SecretBox>,
        clock: Clock,
        issuer: String,
    ) -> Result<Self, Error> {
        let now = clock.now();
        let keys = read_or_create(&storage, &secret_box, &issuer, now).await?;
        Ok(Self {
            storage,
            secret_box,
            clock,
            issuer,
            loaded: RwLock::new((Arc::new(keys), now)),
            last_reload: Mutex::new(None),
        })
    }

    /// The keys as of the last load.
    pub(crate) fn keys(&self) -> Arc<SigningKeySet> {
        Arc::clone(&self.loaded.read().0)
    }

    /// The keys, reloaded if they are too old: another core may have created or revoked one.
    pub(crate) async fn fresh_keys(&self) -> Result<Arc<SigningKeySet>, Error> {
        let (keys, loaded_at) = self.loaded.read().clone();
        if self.clock.now().duration_since(loaded_at).abs() < KEY_CACHE_MAX_AGE {
            return Ok(keys);
        }
        self.reload_if_due().await?;
        Ok(self.keys())
    }

    /// Reloads the keys, unless that was done within [`MIN_RELOAD_INTERVAL`]. Concurrent
    /// callers wait for one reload.
    pub(crate) async fn reload_if_due(&self) -> Result<(), Error> {
        let mut last_reload = self.last_reload.lock().await;
        if last_reload.is_some_and(|at| at.elapsed() < MIN_RELOAD_INTERVAL) {
            return Ok(());
        }
        self.reload().await?;
        *last_reload = Some(Instant::now());
        Ok(())
    }

    pub(crate) async fn reload(&self) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(keys) = read(&self.storage, &self.secret_box, &self.issuer, now).await? {
            *self.loaded.write() = (Arc::new(keys), now);
        }
        Ok(())
    }

    /// Generates a key and encrypts it, to be stored.
    pub(crate) fn generate(&self, now: Timestamp) -> Result<StoredSigningKey, Error> {
        generate(&self.secret_box, now)
    }
}

/// Reads the keys, and creates the first if there is none. Two cores that start at the same time
/// may create one each; every core accepts tokens of both.
pub(crate) async fn read_or_create(
    storage: &Storage,
    secret_box: &SecretBox,
    issuer: &str,
    now: Timestamp,
) -> Result<SigningKeySet, Error> {
    if let Some(keys) = read(storage, secret_box, issuer, now).await? {
        return Ok(keys);
    }
    let key = generate(secret_box, now)?;
    storage
        .write(move |transaction| async move { storage::signing_keys::insert(&transaction, &key).await })
        .await?;
    read(storage, secret_box, issuer, now)
        .await?
        .ok_or_else(|| Error::Bug("no signing key after creating one".to_owned()))
}

fn generate(secret_box: &SecretBox, now: Timestamp) -> Result<StoredSigningKey, Error> {
    let private_key = SigningKey::generate().map_err(Error::Bug)?;
    let id = SigningKey::from_pkcs8(&private_key)
        .map_err(Error::Bug)?
        .id()
        .to_owned();
    Ok(StoredSigningKey {
        encrypted_private_key: secret_box.encrypt(Purpose::SigningKey, id.as_bytes(), &private_key),
        id,
        created_at: now,
    })
}

/// Reads the keys from the database; `None` if there is none.
async fn read(
    storage: &Storage,
    secret_box: &SecretBox,
    issuer: &str,
    now: Timestamp,
) -> Result<Option<SigningKeySet>, Error> {
    let stored = storage::signing_keys::list(storage.reader()).await?;
    let created: Vec<_> = stored.iter().map(|key| key.created_at).collect();
    let keys: Vec<_> = stored
        .iter()
        .zip(KeyLifecycle::of_all(&created))
        .filter(|(_, lifecycle)| lifecycle.state(now).is_some())
        .map(|(stored, lifecycle)| {
            let private_key = secret_box.decrypt(
                Purpose::SigningKey,
                stored.id.as_bytes(),
                &stored.encrypted_private_key,
            )?;
            let key = SigningKey::from_pkcs8(&private_key).map_err(Error::Bug)?;
            Ok((key, lifecycle))
        })
        .collect::<Result<_, Error>>()?;
    Ok((!keys.is_empty()).then(|| SigningKeySet::new(keys, issuer.to_owned())))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use storage::fixture;
    use tempfile::TempDir;

    use super::*;

    /// A key ring at the epoch, and the id of a key that another core has created since.
    async fn outdated() -> (TempDir, KeyRing, String) {
        let (directory, storage) = fixture::sqlite().await;
        let secret_box = SecretBox::open_or_create(&directory.path().join("master.key"));
        let key_ring = KeyRing::open(
            storage,
            Arc::new(secret_box.unwrap()),
            Clock::manual(Timestamp::UNIX_EPOCH),
            "http://delivery.example".to_owned(),
        );
        let key_ring = key_ring.await.unwrap();
        // As another core does.
        let key = key_ring.generate(Timestamp::UNIX_EPOCH).unwrap();
        let id = key.id.clone();
        let insert = key_ring.storage.write(move |transaction| async move {
            storage::signing_keys::insert(&transaction, &key).await
        });
        insert.await.unwrap();
        (directory, key_ring, id)
    }

    #[tokio::test]
    async fn keys_are_fresh_for_thirty_seconds_before_and_after_their_load() {
        let moment = SignedDuration::from_micros(1);
        for direction in [1, -1] {
            let (_directory, key_ring, id) = outdated().await;

            key_ring
                .clock
                .advance((KEY_CACHE_MAX_AGE - moment) * direction);
            assert!(!key_ring.fresh_keys().await.unwrap().contains(&id));
            key_ring.clock.advance(moment * direction);
            assert!(key_ring.fresh_keys().await.unwrap().contains(&id));
        }
    }

    #[tokio::test]
    async fn keys_are_reloaded_only_after_the_minimum_interval() {
        let (_directory, key_ring, id) = outdated().await;

        let now = Instant::now();
        for (last_reload, is_found) in [
            (now, false),
            (now.checked_sub(MIN_RELOAD_INTERVAL).unwrap(), true),
        ] {
            *key_ring.last_reload.lock().await = Some(last_reload);
            key_ring.reload_if_due().await.unwrap();
            assert_eq!(key_ring.keys().contains(&id), is_found);
        }
    }
}
