//! Token signing keys: rotates, revokes and lists them, for operators.

use domain::{
    api_client::Scope,
    signing_key::{KeyLifecycle, State},
};
use jiff::Timestamp;
use proto::{iri::Collection, revoke_signing_keys_request::Keys, signing_key};
use storage::{Session, signing_keys::StoredSigningKey};
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{auth::caller::Caller, error::Error, messages};

#[tonic::async_trait]
impl proto::signing_keys_server::SigningKeys for Services {
    async fn rotate_signing_key(
        &self,
        request: Request<proto::RotateSigningKeyRequest>,
    ) -> Reply<proto::SigningKey> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let idempotency = request.idempotency;
        let request_key =
            self.idempotency
                .read_key(&caller, "RotateSigningKey", "", idempotency)?;
        let now = self.clock.now();
        let key = self.key_ring.generate(now)?;

        let audit = caller.audit.clone();
        let created = self
            .idempotency
            .write(request_key, move |transaction| async move {
                storage::signing_keys::insert(&transaction, &key).await?;
                let name = Collection::SigningKeys.name(&key.id);
                audit.record(&transaction, None, name).await?;
                let mut created = None;
                for (stored, lifecycle) in
                    lifecycles(storage::signing_keys::list(&transaction).await?)
                {
                    match lifecycle.state(now) {
                        Some(state) if stored.id == key.id => {
                            created = Some(message(&key.id, &lifecycle, state));
                        }
                        Some(_) => {}
                        None => storage::signing_keys::delete(&transaction, &stored.id).await?,
                    }
                }
                created.ok_or_else(|| Error::Bug("the new key is not among the keys".to_owned()))
            })
            .await?;
        caller.audit("RotateSigningKey", &created.get_ref().name, &created);
        self.key_ring.reload().await?;
        Ok(created)
    }

    async fn revoke_signing_keys(
        &self,
        request: Request<proto::RevokeSigningKeysRequest>,
    ) -> Reply<proto::RevokeSigningKeysResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let revoked = revoked(request.keys)?;
        let idempotency = request.idempotency;
        let request_key =
            self.idempotency
                .read_key(&caller, "RevokeSigningKeys", "", idempotency)?;
        let revoked_keys = match &revoked {
            None => "all".to_owned(),
            Some(id) => Collection::SigningKeys.name(id),
        };
        let now = self.clock.now();
        let new_key = self.key_ring.generate(now)?;
        let (audit, name) = (caller.audit.clone(), revoked_keys.clone());
        let remaining = self
            .idempotency
            .write(request_key, move |transaction| async move {
                audit.record(&transaction, None, name).await?;
                revoke(&transaction, revoked, new_key, now).await
            })
            .await?;
        caller.audit("RevokeSigningKeys", &revoked_keys, &remaining);
        self.key_ring.reload().await?;
        self.authenticator.invalidate();
        Ok(remaining)
    }

    async fn list_signing_keys(
        &self,
        request: Request<proto::ListSigningKeysRequest>,
    ) -> Reply<proto::ListSigningKeysResponse> {
        Caller::with_scope(request, Scope::Admin)?;

        let now = self.clock.now();
        let stored = storage::signing_keys::list(self.storage.reader())
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListSigningKeysResponse {
            signing_keys: accepted(stored, now),
        }))
    }
}

/// The id of the key to revoke; `None` for all keys.
fn revoked(keys: Option<Keys>) -> Result<Option<String>, Error> {
    match keys {
        Some(Keys::All(true)) => Ok(None),
        Some(Keys::KeyId(id)) if !id.is_empty() => Ok(Some(id)),
        Some(Keys::KeyId(_) | Keys::All(false)) | None => {
            let description = "is required: the id of a key, or all";
            Err(Error::invalid("keys", "REQUIRED", description))
        }
    }
}

/// Deletes the revoked keys, and those that have expired: a key expires only because of a newer one,
/// and would be valid again if that were deleted. Creates a key if the signing one is among the
/// revoked.
async fn revoke(
    transaction: &Session,
    revoked: Option<String>,
    new_key: StoredSigningKey,
    now: Timestamp,
) -> Result<proto::RevokeSigningKeysResponse, Error> {
    // Concurrent revocations, and re-encryption with another master key, wait for each other.
    storage::signing_keys::lock(transaction).await?;
    let mut is_found = false;
    let mut needs_successor = false;
    for (stored, lifecycle) in lifecycles(storage::signing_keys::list(transaction).await?) {
        let state = lifecycle.state(now);
        let is_revoked = revoked.as_ref().is_none_or(|id| *id == stored.id);
        if is_revoked && state.is_some() {
            tracing::warn!(key = stored.id, "signing key revoked");
            is_found = true;
            needs_successor |= state == Some(State::Signing);
        }
        if is_revoked || state.is_none() {
            storage::signing_keys::delete(transaction, &stored.id).await?;
        }
    }
    if let Some(id) = revoked
        && !is_found
    {
        return Err(Error::NotFound(Collection::SigningKeys.name(id)));
    }
    if needs_successor {
        storage::signing_keys::insert(transaction, &new_key).await?;
    }
    Ok(proto::RevokeSigningKeysResponse {
        signing_keys: accepted(storage::signing_keys::list(transaction).await?, now),
    })
}

/// The keys that tokens are verified with.
fn accepted(stored: Vec<StoredSigningKey>, now: Timestamp) -> Vec<proto::SigningKey> {
    let keys = lifecycles(stored);
    keys.filter_map(|(stored, lifecycle)| {
        Some(message(&stored.id, &lifecycle, lifecycle.state(now)?))
    })
    .collect()
}

/// Adds each key's lifecycle. The keys are sorted newest first.
fn lifecycles(
    stored: Vec<StoredSigningKey>,
) -> impl Iterator<Item = (StoredSigningKey, KeyLifecycle)> {
    let created: Vec<_> = stored.iter().map(|key| key.created_at).collect();
    stored.into_iter().zip(KeyLifecycle::of_all(&created))
}

fn message(id: &str, lifecycle: &KeyLifecycle, state: State) -> proto::SigningKey {
    let state = match state {
        State::Published => signing_key::State::Published,
        State::Signing => signing_key::State::Signing,
        State::Retired => signing_key::State::Retired,
    };
    proto::SigningKey {
        name: Collection::SigningKeys.name(id),
        state: state.into(),
        create_time: Some(messages::timestamp(lifecycle.created_at)),
        sign_time: Some(messages::timestamp(lifecycle.signs_from)),
        expire_time: lifecycle.accepted_until.map(messages::timestamp),
    }
}
