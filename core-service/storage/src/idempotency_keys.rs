//! Responses stored under idempotency keys, to be replayed when a request is retried. A response
//! is written in the transaction that executes the request, so that both exist or neither.

use domain::id::{ApiClientId, DeliveryId, StoreId};
use sea_orm::Value;

use super::entity::{
    Instant,
    idempotency_key::{Column, Entity},
};
use crate::prelude::*;

/// Identifies an operation that a client may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub store_id: StoreId,
    pub api_client_id: ApiClientId,
    /// The hash of the client's idempotency key and the operation.
    pub hash: [u8; 32],
}

/// What is stored of a request under its key.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Distinguishes it from others with the same key.
    pub hash: [u8; 32],
    /// The delivery whose personal data its response may have.
    pub delivery_id: Option<DeliveryId>,
}

impl Request {
    fn stored_delivery(self) -> Uuid {
        self.delivery_id.map_or(NO_DELIVERY, |id| id.0)
    }
}

/// The stored response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// [`Request::hash`].
    pub request_hash: Vec<u8>,
    pub encrypted_response: Vec<u8>,
}

/// A response to store under a key that must be free.
#[derive(Clone, Debug)]
pub struct NewResponse {
    pub key: Key,
    pub request: Request,
    pub encrypted_response: Vec<u8>,
    pub created_at: Timestamp,
}

/// Instead of a delivery, in the index.
const NO_DELIVERY: Uuid = Uuid::nil();

/// The result of [`acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquisition {
    Acquired,
    Stored(StoredResponse),
}

/// The response under a key, unless the key was acquired at or before `cutoff`.
pub async fn find(
    connection: &impl ConnectionTrait,
    key: Key,
    cutoff: Timestamp,
) -> Result<Option<StoredResponse>, Error> {
    let row = Entity::find_by_id(id(key))
        .filter(Column::CreatedAt.gt(Instant::from(cutoff)))
        .one(connection)
        .await?;
    Ok(row.map(|row| StoredResponse {
        request_hash: row.request_hash,
        encrypted_response: row.encrypted_response,
    }))
}

/// Acquires a key if it is free or was acquired at or before `cutoff`. If it is acquired,
/// [`store_response`] must follow in the same transaction. Waits up to 2 s for a transaction that
/// is acquiring the same key ([`Error::is_lock_timeout`]).
pub async fn acquire(
    transaction: &impl ConnectionTrait,
    key: Key,
    request: Request,
    now: Timestamp,
    cutoff: Timestamp,
) -> Result<Acquisition, Error> {
    // An expired key that is not deleted yet is free.
    let acquire = "INSERT INTO idempotency_keys
            (store_id, api_client_id, key_hash, request_hash, encrypted_response, created_at, delivery_id)
        VALUES ($1, $2, $3, $4, $5, $6, $8)
        ON CONFLICT (store_id, api_client_id, key_hash) DO UPDATE SET
            request_hash = excluded.request_hash,
            encrypted_response = excluded.encrypted_response,
            created_at = excluded.created_at,
            delivery_id = excluded.delivery_id
        WHERE idempotency_keys.created_at <= $7";
    let values = columns(key).into_iter().chain([
        request.hash.to_vec().into(),
        Vec::<u8>::new().into(),
        Instant::from(now).into(),
        Instant::from(cutoff).into(),
        request.stored_delivery().into(),
    ]);
    // SQLite has a single writer: there is no other transaction to wait for.
    let may_wait = transaction.get_database_backend() == DbBackend::Postgres;
    if may_wait {
        transaction
            .execute_unprepared("SET LOCAL lock_timeout = '2s'")
            .await?;
    }
    let rows = rows::execute(transaction, acquire, values).await?;
    if may_wait {
        transaction
            .execute_unprepared("SET LOCAL lock_timeout = DEFAULT")
            .await?;
    }
    if rows > 0 {
        return Ok(Acquisition::Acquired);
    }
    let stored = find(transaction, key, cutoff).await?;
    stored.map(Acquisition::Stored).ok_or_else(|| {
        Error::inconsistent("idempotency_keys", "a key that is neither free nor stored")
    })
}

/// Stores the response to a request that no other has made. Fails with a unique violation if the key is not
/// free, or expired but not deleted yet.
pub(super) async fn insert(
    connection: &impl ConnectionTrait,
    response: &NewResponse,
) -> Result<(), Error> {
    let insert = "INSERT INTO idempotency_keys
            (store_id, api_client_id, key_hash, request_hash, encrypted_response, created_at, delivery_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    rows::run(connection, insert, values(Some(response))).await
}

/// The values of a row, in the order of its columns; all are null without a response.
pub(super) fn values(response: Option<&NewResponse>) -> [Value; 7] {
    let key = response.map(|response| response.key);
    let request = response.map(|response| response.request);
    let encrypted = response.map(|response| response.encrypted_response.clone());
    let created_at = response.map(|response| Instant::from(response.created_at));
    [
        key.map(|key| key.store_id.0).into(),
        key.map(|key| key.api_client_id.0).into(),
        key.map(|key| key.hash.to_vec()).into(),
        request.map(|request| request.hash.to_vec()).into(),
        encrypted.into(),
        created_at.into(),
        request.map(Request::stored_delivery).into(),
    ]
}

/// Stores the response under a key that is acquired.
pub async fn store_response(
    transaction: &impl ConnectionTrait,
    key: Key,
    encrypted_response: Vec<u8>,
) -> Result<(), Error> {
    let store = "UPDATE idempotency_keys SET encrypted_response = $4
        WHERE store_id = $1 AND api_client_id = $2 AND key_hash = $3";
    let values = columns(key).into_iter().chain([encrypted_response.into()]);
    rows::run(transaction, store, values).await
}

fn columns(key: Key) -> [Value; 3] {
    let (store_id, api_client_id, hash) = id(key);
    [store_id.into(), api_client_id.into(), hash.into()]
}

/// Which stored responses are listed.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// Those that may have the personal data of the delivery.
    OfDelivery(DeliveryId),
    /// Those under keys acquired at or after the instant, that programs of earlier versions stored: of any delivery.
    Unnamed(Timestamp),
}

/// Stored responses to a store's clients: those after a key, in the order of keys, `limit` at most.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    listed: Listed,
    after: Option<Key>,
    limit: u64,
) -> Result<Vec<(Key, Vec<u8>)>, Error> {
    let of_store = Entity::find().filter(Column::StoreId.eq(store_id.0));
    let responses = match listed {
        Listed::OfDelivery(id) => of_store.filter(Column::DeliveryId.eq(id.0)),
        Listed::Unnamed(since) => of_store
            .filter(Column::DeliveryId.is_null())
            .filter(Column::CreatedAt.gte(Instant::from(since))),
    };
    let after = after.map(|key| [key.api_client_id.0.into(), key.hash.to_vec().into()]);
    let page = rows::after(responses, [Column::ApiClientId, Column::KeyHash], after).limit(limit);
    let rows = page.all(connection).await?.into_iter();
    rows.map(|row| {
        let key = key(row.store_id, row.api_client_id, row.key_hash)?;
        Ok((key, row.encrypted_response))
    })
    .collect()
}

/// The first bytes of the stored responses to clients of all stores: those after a key, in the
/// order of keys, `limit` at most.
pub async fn list_prefixes(
    connection: &impl ConnectionTrait,
    after: Option<Key>,
    length: usize,
    limit: u64,
) -> Result<Vec<(Key, Vec<u8>)>, Error> {
    let position = [Column::StoreId, Column::ApiClientId, Column::KeyHash];
    let prefixes = Entity::find().select_only().columns(position).column_as(
        Expr::cust(format!("substr(encrypted_response, 1, {length})")),
        "prefix",
    );
    let page = rows::after(prefixes, position, after.map(columns)).limit(limit);
    let rows: Vec<(Uuid, Uuid, Vec<u8>, Vec<u8>)> = page.into_tuple().all(connection).await?;
    rows.into_iter()
        .map(|(store_id, api_client_id, hash, prefix)| {
            Ok((key(store_id, api_client_id, hash)?, prefix))
        })
        .collect()
}

/// The stored response under a key, locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    key: Key,
) -> Result<Option<Vec<u8>>, Error> {
    let row = Entity::find_by_id(id(key))
        .lock_exclusive()
        .one(transaction)
        .await?;
    Ok(row.map(|row| row.encrypted_response))
}

/// Deletes keys of all stores that were acquired at or before `cutoff`, oldest first. Returns
/// how many.
pub async fn delete_expired(
    transaction: &impl ConnectionTrait,
    cutoff: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let delete = match transaction.get_database_backend() {
        // By the place of the row: with the key, PostgreSQL may read all keys for each batch. Concurrent cores skip
        // each other's rows, and one that is locked is not acquired again meanwhile.
        DbBackend::Postgres => {
            "DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(
                SELECT ctid FROM idempotency_keys WHERE created_at <= $1
                ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
            ))"
        }
        _ => {
            "DELETE FROM idempotency_keys WHERE (store_id, api_client_id, key_hash) IN (
                SELECT store_id, api_client_id, key_hash FROM idempotency_keys
                WHERE created_at <= $1 ORDER BY created_at LIMIT $2
            )"
        }
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [Instant::from(cutoff).into(), limit.into()];
    rows::execute(transaction, delete, values).await
}

fn key(store_id: Uuid, api_client_id: Uuid, hash: Vec<u8>) -> Result<Key, Error> {
    let hash = hash.try_into();
    Ok(Key {
        store_id: StoreId(store_id),
        api_client_id: ApiClientId(api_client_id),
        hash: hash.map_err(|_| Error::inconsistent("idempotency_keys", "the length of a hash"))?,
    })
}

fn id(key: Key) -> (Uuid, Uuid, Vec<u8>) {
    (key.store_id.0, key.api_client_id.0, key.hash.to_vec())
}

#[cfg(test)]
mod tests;
