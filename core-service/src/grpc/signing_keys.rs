//! Token signing keys: changed and looked at by operators.

use domain::{
    api_client::Scope,
    signing_key::{Life, State},
};
use proto::{iri::Collection, signing_key};
use tonic::{Request, Response, Status};

use super::{Core, key_ring, messages};
use storage::signing_keys::StoredSigningKey;

use crate::error::Error;

#[tonic::async_trait]
impl proto::signing_keys_server::SigningKeys for Core {
    async fn rotate_signing_key(
        &self,
        request: Request<proto::RotateSigningKeyRequest>,
    ) -> Result<Response<proto::SigningKey>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let now = self.clock.now();
        let key = key_ring::generate(&self.vault, now)?;

        let id = key.id.clone();
        let keys = self
            .storage
            .write(move |transaction| {
                let key = key.clone();
                Box::pin(async move {
                    storage::signing_keys::insert(transaction, &key).await?;
                    let mut kept = Vec::new();
                    for (stored, life) in lives(storage::signing_keys::list(transaction).await?) {
                        if life.state(now).is_some() {
                            kept.push((stored.id, life));
                        } else {
                            storage::signing_keys::delete(transaction, &stored.id).await?;
                        }
                    }
                    Ok::<_, Error>(kept)
                })
            })
            .await?;
        self.read_signing_keys().await?;
        let made = keys
            .into_iter()
            .find(|(other, _)| *other == id)
            .and_then(|(id, life)| Some(message(&id, &life, life.state(now)?)))
            .ok_or_else(|| Error::Bug("the new key is not among the keys".to_owned()))?;
        Ok(Response::new(made))
    }

    async fn list_signing_keys(
        &self,
        request: Request<proto::ListSigningKeysRequest>,
    ) -> Result<Response<proto::ListSigningKeysResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let now = self.clock.now();
        let stored = storage::signing_keys::list(self.storage.reader())
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListSigningKeysResponse {
            signing_keys: lives(stored)
                .filter_map(|(stored, life)| Some(message(&stored.id, &life, life.state(now)?)))
                .collect(),
        }))
    }
}

/// Keys with what becomes of them; newest first, as they are stored.
fn lives(stored: Vec<StoredSigningKey>) -> impl Iterator<Item = (StoredSigningKey, Life)> {
    let created: Vec<_> = stored.iter().map(|key| key.created_at).collect();
    stored.into_iter().zip(Life::of_all(&created))
}

fn message(id: &str, life: &Life, state: State) -> proto::SigningKey {
    let state = match state {
        State::Published => signing_key::State::Published,
        State::Signing => signing_key::State::Signing,
        State::Retired => signing_key::State::Retired,
    };
    proto::SigningKey {
        name: Collection::SigningKeys.name(id),
        state: state.into(),
        create_time: Some(messages::timestamp(life.created_at)),
        sign_time: Some(messages::timestamp(life.signs_from)),
        expire_time: life.accepted_until.map(messages::timestamp),
    }
}
