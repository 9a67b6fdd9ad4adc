//! The encrypted keys that sign access tokens.

use super::entity::signing_key::{ActiveModel, Column, Entity, Model};
use crate::prelude::*;

#[derive(Clone, Debug)]
pub struct StoredSigningKey {
    /// RFC 7638 thumbprint: the token's `kid`.
    pub id: String,
    pub encrypted_private_key: Vec<u8>,
    pub created_at: Timestamp,
}

/// All keys, newest first.
pub async fn list(connection: &impl ConnectionTrait) -> Result<Vec<StoredSigningKey>, Error> {
    let query = Entity::find().order_by_desc(Column::CreatedAt);
    rows::all(connection, query.order_by_desc(Column::Id)).await
}

impl TryFrom<Model> for StoredSigningKey {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            id: row.id,
            encrypted_private_key: row.encrypted_private_key,
            created_at: row.created_at.try_into()?,
        })
    }
}

/// Locks all keys until the transaction ends.
pub async fn lock(transaction: &impl ConnectionTrait) -> Result<(), Error> {
    Entity::find()
        .order_by_asc(Column::Id)
        .lock_exclusive()
        .all(transaction)
        .await?;
    Ok(())
}

pub async fn insert(
    connection: &impl ConnectionTrait,
    key: &StoredSigningKey,
) -> Result<(), Error> {
    let row = ActiveModel {
        id: Set(key.id.clone()),
        encrypted_private_key: Set(key.encrypted_private_key.clone()),
        created_at: Set(key.created_at.into()),
    };
    rows::insert(connection, row).await
}

pub async fn delete(connection: &impl ConnectionTrait, id: &str) -> Result<(), Error> {
    Entity::delete_by_id(id).exec(connection).await?;
    Ok(())
}

/// Replaces the ciphertext of a private key.
pub async fn save(
    transaction: &impl ConnectionTrait,
    id: String,
    encrypted_private_key: Vec<u8>,
) -> Result<(), Error> {
    let row = ActiveModel {
        id: Set(id),
        encrypted_private_key: Set(encrypted_private_key),
        ..Default::default()
    };
    rows::update(transaction, row).await
}
