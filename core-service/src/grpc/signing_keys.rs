//! Token signing keys: rotates and lists them, for operators.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    signing_key::{KeyLifecycle, State},
};
use process::clock::Clock;
use proto::{iri::Collection, signing_key};
use tonic::{Request, Response, Status};

use super::{caller::Caller, idempotency::Idempotency, key_ring::KeyRing, messages};
use storage::{Storage, signing_keys::StoredSigningKey};

use crate::error::Error;

pub(super) struct SigningKeys {
    pub(super) storage: Arc<Storage>,
    pub(super) clock: Clock,
    pub(super) idempotency: Arc<Idempotency>,
    pub(super) key_ring: Arc<KeyRing>,
}

#[tonic::async_trait]
impl proto::signing_keys_server::SigningKeys for SigningKeys {
    async fn rotate_signing_key(
        &self,
        request: Request<proto::RotateSigningKeyRequest>,
    ) -> Result<Response<proto::SigningKey>, Status> {
        let caller = Caller::with_scope(&request, Scope::Admin)?;

        let idempotency = request.into_inner().idempotency;
        let request_key = self
            .idempotency
            .read_key(&caller, "RotateSigningKey", idempotency)?;
        let now = self.clock.now();
        let key = self.key_ring.generate(now)?;

        let created = self
            .idempotency
            .write(request_key, move |transaction| {
                let key = key.clone();
                Box::pin(async move {
                    storage::signing_keys::insert(transaction, &key).await?;
                    let mut created = None;
                    for (stored, lifecycle) in
                        lifecycles(storage::signing_keys::list(transaction).await?)
                    {
                        match lifecycle.state(now) {
                            Some(state) if stored.id == key.id => {
                                created = Some(message(&key.id, &lifecycle, state));
                            }
                            Some(_) => {}
                            None => storage::signing_keys::delete(transaction, &stored.id).await?,
                        }
                    }
                    created
                        .ok_or_else(|| Error::Bug("the new key is not among the keys".to_owned()))
                })
            })
            .await?;
        self.key_ring.load().await?;
        Ok(created)
    }

    async fn list_signing_keys(
        &self,
        request: Request<proto::ListSigningKeysRequest>,
    ) -> Result<Response<proto::ListSigningKeysResponse>, Status> {
        Caller::with_scope(&request, Scope::Admin)?;

        let now = self.clock.now();
        let stored = storage::signing_keys::list(self.storage.reader())
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListSigningKeysResponse {
            signing_keys: lifecycles(stored)
                .filter_map(|(stored, lifecycle)| {
                    Some(message(&stored.id, &lifecycle, lifecycle.state(now)?))
                })
                .collect(),
        }))
    }
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
