//! The ring of token signing keys that a core holds, and where it comes from.

use std::{
    sync::{Arc, RwLock},
    time::Duration,
};

use domain::signing_key::{KNOWN_FOR, Life};
use jiff::Timestamp;
use tokio::{sync::Mutex, time::Instant};

use super::Core;
use process::clock::Clock;
use storage::{Storage, signing_keys::StoredSigningKey};

use crate::{
    access_token::{KeyError, Keyring, SigningKey},
    error::Error,
    vault::{Purpose, Vault},
};

/// Tokens with made-up key ids must not become a query each.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct KeyRing {
    known: RwLock<Known>,
    issuer: String,
    /// When they were last read again; held by whoever does.
    reloaded: Mutex<Option<Instant>>,
}

/// The keys as they were at an instant.
#[derive(Clone)]
struct Known {
    ring: Arc<Keyring>,
    at: Timestamp,
}

impl KeyRing {
    /// Reads the keys, and makes the first if there is none. Two cores that start at the same
    /// moment may make one each; both verify everywhere.
    pub(crate) async fn load(
        storage: &Storage,
        vault: &Vault,
        clock: &Clock,
        issuer: String,
    ) -> Result<Self, Error> {
        let now = clock.now();
        let mut ring = read(storage, vault, &issuer, now).await?;
        if ring.is_none() {
            let key = generate(vault, now)?;
            storage
                .write(move |transaction| {
                    let key = key.clone();
                    Box::pin(async move {
                        storage::signing_keys::insert(transaction, &key)
                            .await
                            .map_err(Error::from)
                    })
                })
                .await?;
            ring = read(storage, vault, &issuer, now).await?;
        }
        let ring = ring.ok_or_else(|| Error::Bug("no signing key after making one".to_owned()))?;
        Ok(Self {
            known: RwLock::new(Known {
                ring: Arc::new(ring),
                at: now,
            }),
            issuer,
            reloaded: Mutex::new(None),
        })
    }

    /// As far as this core knows.
    pub(crate) fn ring(&self) -> Arc<Keyring> {
        self.known().ring
    }

    fn known(&self) -> Known {
        let known = self.known.read();
        known
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

impl Core {
    /// The keys to sign with: a core that has not heard of a new one in time would go on with
    /// the old.
    pub(super) async fn keys_to_sign_with(&self) -> Result<Arc<Keyring>, Error> {
        let known = self.key_ring.known();
        if self.clock.now().duration_since(known.at).abs() < KNOWN_FOR {
            return Ok(known.ring);
        }
        self.reload_signing_keys().await?;
        Ok(self.key_ring.ring())
    }

    /// Reads the keys again, unless that was done just now. Who comes while another reads waits
    /// for what it finds.
    pub(super) async fn reload_signing_keys(&self) -> Result<(), Error> {
        let mut reloaded = self.key_ring.reloaded.lock().await;
        if reloaded.is_some_and(|at| at.elapsed() < RELOAD_PAUSE) {
            return Ok(());
        }
        self.read_signing_keys().await?;
        *reloaded = Some(Instant::now());
        Ok(())
    }

    /// Reads the keys again, now.
    pub(super) async fn read_signing_keys(&self) -> Result<(), Error> {
        let (keys, now) = (&self.key_ring, self.clock.now());
        if let Some(ring) = read(&self.storage, &self.vault, &keys.issuer, now).await? {
            let known = Known {
                ring: Arc::new(ring),
                at: now,
            };
            *keys
                .known
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = known;
        }
        Ok(())
    }
}

/// A new key, sealed.
pub(super) fn generate(vault: &Vault, now: Timestamp) -> Result<StoredSigningKey, Error> {
    let private_key = SigningKey::generate().map_err(bug)?;
    let id = SigningKey::from_pkcs8(&private_key)
        .map_err(bug)?
        .id()
        .to_owned();
    Ok(StoredSigningKey {
        sealed_private_key: vault.seal(Purpose::SigningKey, id.as_bytes(), &private_key),
        id,
        created_at: now,
    })
}

/// None if there is no key yet.
async fn read(
    storage: &Storage,
    vault: &Vault,
    issuer: &str,
    now: Timestamp,
) -> Result<Option<Keyring>, Error> {
    let stored = storage::signing_keys::list(storage.reader()).await?;
    let created: Vec<_> = stored.iter().map(|key| key.created_at).collect();
    let keys: Vec<_> = stored
        .iter()
        .zip(Life::of_all(&created))
        .filter(|(_, life)| life.state(now).is_some())
        .map(|(stored, life)| {
            let private_key = vault.unseal(
                Purpose::SigningKey,
                stored.id.as_bytes(),
                &stored.sealed_private_key,
            )?;
            let key = SigningKey::from_pkcs8(&private_key).map_err(bug)?;
            Ok((key, life))
        })
        .collect::<Result<_, Error>>()?;
    Ok((!keys.is_empty()).then(|| Keyring::new(keys, issuer.to_owned())))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn bug(error: KeyError) -> Error {
    Error::Bug(error.to_string())
}
