//! The ring of token signing keys that a core holds, and where it comes from.

use std::{
    sync::{Arc, RwLock},
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

use super::Core;
use crate::{
    access_token::{KeyError, Keyring, SigningKey},
    clock::Clock,
    error::Error,
    storage::{self, Storage, signing_keys::StoredSigningKey},
    vault::{Purpose, Vault},
};

/// Tokens with made-up key ids must not become a query each.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct SigningKeys {
    ring: RwLock<Arc<Keyring>>,
    issuer: String,
    /// When they were last read again; held by whoever does.
    reloaded: Mutex<Option<Instant>>,
}

impl SigningKeys {
    /// Reads the keys, and makes the first if there is none. Two cores that start at the same
    /// moment may make one each; both verify everywhere.
    pub(crate) async fn load(
        storage: &Storage,
        vault: &Vault,
        clock: &Clock,
        issuer: String,
    ) -> Result<Self, Error> {
        let mut ring = read(storage, vault, &issuer).await?;
        if ring.is_none() {
            let private_key = SigningKey::generate().map_err(bug)?;
            let id = SigningKey::from_pkcs8(&private_key)
                .map_err(bug)?
                .id()
                .to_owned();
            let sealed_private_key = vault.seal(Purpose::SigningKey, id.as_bytes(), &private_key);
            let key = StoredSigningKey {
                id,
                sealed_private_key,
                created_at: clock.now(),
            };
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
            ring = read(storage, vault, &issuer).await?;
        }
        let ring = ring.ok_or_else(|| Error::Bug("no signing key after making one".to_owned()))?;
        Ok(Self {
            ring: RwLock::new(Arc::new(ring)),
            issuer,
            reloaded: Mutex::new(None),
        })
    }

    pub(crate) fn ring(&self) -> Arc<Keyring> {
        let ring = self
            .ring
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(&ring)
    }
}

impl Core {
    /// Reads the keys again, unless that was done just now. Who comes while another reads waits
    /// for what it finds.
    pub(super) async fn reload_signing_keys(&self) -> Result<(), Error> {
        let keys = &self.signing_keys;
        let mut reloaded = keys.reloaded.lock().await;
        if reloaded.is_some_and(|at| at.elapsed() < RELOAD_PAUSE) {
            return Ok(());
        }
        if let Some(ring) = read(&self.storage, &self.vault, &keys.issuer).await? {
            *keys
                .ring
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(ring);
        }
        *reloaded = Some(Instant::now());
        Ok(())
    }
}

/// None if there is no key yet.
async fn read(storage: &Storage, vault: &Vault, issuer: &str) -> Result<Option<Keyring>, Error> {
    let keys: Vec<_> = storage::signing_keys::list(storage.reader())
        .await?
        .iter()
        .map(|stored| {
            let private_key = vault.unseal(
                Purpose::SigningKey,
                stored.id.as_bytes(),
                &stored.sealed_private_key,
            )?;
            SigningKey::from_pkcs8(&private_key).map_err(bug)
        })
        .collect::<Result<_, Error>>()?;
    Ok((!keys.is_empty()).then(|| Keyring::new(keys, issuer.to_owned())))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn bug(error: KeyError) -> Error {
    Error::Bug(error.to_string())
}
