//! Responses stored under idempotency keys, to be replayed when a request is retried. A response
//! is written in the transaction that executes the request, so that both exist or neither.

use domain::id::{ApiClientId, StoreId};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, ExprTrait as _, OnConflict},
};
use uuid::Uuid;

use super::{
    ConnectionTrait, Error,
    entity::{
        idempotency_key::{ActiveModel, Column, Entity},
        instant::Instant,
    },
};

/// Identifies an operation that a client may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub store_id: StoreId,
    pub api_client_id: ApiClientId,
    /// The hash of the client's idempotency key and the operation.
    pub hash: [u8; 32],
}

/// The stored response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// Distinguishes the request from others with the same key.
    pub request_hash: Vec<u8>,
    pub encrypted_response: Vec<u8>,
}

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
    request_hash: [u8; 32],
    (now, cutoff): (Timestamp, Timestamp),
) -> Result<Acquisition, Error> {
    let row = ActiveModel {
        store_id: Set(key.store_id.0),
        api_client_id: Set(key.api_client_id.0),
        key_hash: Set(key.hash.to_vec()),
        request_hash: Set(request_hash.to_vec()),
        encrypted_response: Set(Vec::new()),
        created_at: Set(now.into()),
    };
    // An expired key that is not deleted yet is free.
    let replace_expired =
        OnConflict::columns([Column::StoreId, Column::ApiClientId, Column::KeyHash])
            .update_columns([
                Column::RequestHash,
                Column::EncryptedResponse,
                Column::CreatedAt,
            ])
            .action_and_where(Expr::col((Entity, Column::CreatedAt)).lte(Instant::from(cutoff)))
            .to_owned();
    // SQLite has a single writer: there is no other transaction to wait for.
    let may_wait = transaction.get_database_backend() == DbBackend::Postgres;
    if may_wait {
        transaction
            .execute_unprepared("SET LOCAL lock_timeout = '2s'")
            .await?;
    }
    let rows = Entity::insert(row)
        .on_conflict(replace_expired)
        .exec_without_returning(transaction)
        .await?;
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

/// Stores the response under a key that is acquired.
pub async fn store_response(
    transaction: &impl ConnectionTrait,
    key: Key,
    encrypted_response: Vec<u8>,
) -> Result<(), Error> {
    Entity::update_many()
        .col_expr(Column::EncryptedResponse, Expr::value(encrypted_response))
        .filter(Column::StoreId.eq(key.store_id.0))
        .filter(Column::ApiClientId.eq(key.api_client_id.0))
        .filter(Column::KeyHash.eq(key.hash.to_vec()))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Stored responses to a store's clients that were acquired at or after an instant: those after a
/// key, in the order of keys, `limit` at most.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    (since, after): (Timestamp, Option<Key>),
    limit: u64,
) -> Result<Vec<(Key, Vec<u8>)>, Error> {
    let position = [Column::ApiClientId, Column::KeyHash];
    let mut query = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::CreatedAt.gte(Instant::from(since)))
        .order_by_asc(Column::ApiClientId)
        .order_by_asc(Column::KeyHash)
        .limit(limit);
    if let Some(after) = after {
        let after = [
            Expr::value(after.api_client_id.0),
            Expr::value(after.hash.to_vec()),
        ];
        query = query.filter(Expr::tuple(position.map(Expr::col)).gt(Expr::tuple(after)));
    }
    let rows = query.all(connection).await?.into_iter();
    rows.map(|row| {
        let key = key(row.store_id, row.api_client_id, row.key_hash)?;
        Ok((key, row.encrypted_response))
    })
    .collect()
}

/// The first bytes of the stored responses to clients of all stores: those after a key, in the order of
/// keys, `limit` at most.
pub async fn list_prefixes(
    connection: &impl ConnectionTrait,
    after: Option<Key>,
    (length, limit): (usize, u64),
) -> Result<Vec<(Key, Vec<u8>)>, Error> {
    let position = [Column::StoreId, Column::ApiClientId, Column::KeyHash];
    let mut query = Entity::find().select_only().columns(position).column_as(
        Expr::cust(format!("substr(encrypted_response, 1, {length})")),
        "prefix",
    );
    for column in position {
        query = query.order_by_asc(column);
    }
    if let Some(after) = after {
        let after = [
            Expr::value(after.store_id.0),
            Expr::value(after.api_client_id.0),
            Expr::value(after.hash.to_vec()),
        ];
        query = query.filter(Expr::tuple(position.map(Expr::col)).gt(Expr::tuple(after)));
    }
    let rows: Vec<(Uuid, Uuid, Vec<u8>, Vec<u8>)> =
        query.limit(limit).into_tuple().all(connection).await?;
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

/// Whether any key was acquired at or before `cutoff`.
pub async fn is_any_expired(
    connection: &impl ConnectionTrait,
    cutoff: Timestamp,
) -> Result<bool, Error> {
    let found = Entity::find()
        .filter(Column::CreatedAt.lte(Instant::from(cutoff)))
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Deletes keys of all stores that were acquired at or before `cutoff`, oldest first. Returns
/// how many.
pub async fn delete_expired(
    transaction: &impl ConnectionTrait,
    cutoff: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let key = [Column::StoreId, Column::ApiClientId, Column::KeyHash];
    let oldest = Entity::find()
        .select_only()
        .columns(key)
        .filter(Column::CreatedAt.lte(Instant::from(cutoff)))
        .order_by_asc(Column::CreatedAt)
        .limit(limit)
        .into_query();
    let removed = Entity::delete_many()
        .filter(Expr::tuple(key.map(Expr::col)).in_subquery(oldest))
        // Repeated, because a key may have been acquired again before it is locked.
        .filter(Column::CreatedAt.lte(Instant::from(cutoff)))
        .exec(transaction)
        .await?;
    Ok(removed.rows_affected)
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
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::*;
    use crate::{Storage, fixture};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn key(number: u8) -> Key {
        Key {
            store_id: StoreId(uuid::Uuid::nil()),
            api_client_id: ApiClientId(uuid::Uuid::nil()),
            hash: [number; 32],
        }
    }

    /// Acquires a key at an instant and stores a response under it.
    async fn request(
        storage: &Arc<Storage>,
        (key, body): (Key, u8),
        now: Timestamp,
        cutoff: Timestamp,
    ) -> Result<Acquisition, Error> {
        storage
            .write(move |transaction| {
                Box::pin(async move {
                    let times = (now, cutoff);
                    let acquisition = acquire(transaction, key, [body; 32], times).await?;
                    if acquisition == Acquisition::Acquired {
                        store_response(transaction, key, vec![body]).await?;
                    }
                    Ok(acquisition)
                })
            })
            .await
    }

    fn stored(body: u8) -> Acquisition {
        Acquisition::Stored(StoredResponse {
            request_hash: vec![body; 32],
            encrypted_response: vec![body],
        })
    }

    #[tokio::test]
    async fn the_first_request_acquires_a_key_until_it_expires() {
        let (_directory, storage) = fixture::sqlite().await;
        let second = SignedDuration::from_secs(1);
        let past = NOW - second;

        let first = request(&storage, (key(1), 1), NOW, past).await.unwrap();
        let again = request(&storage, (key(1), 2), NOW, past).await.unwrap();
        let other = request(&storage, (key(2), 3), NOW, past).await.unwrap();
        let expired = request(&storage, (key(1), 4), NOW + second, NOW)
            .await
            .unwrap();
        let after = request(&storage, (key(1), 5), NOW + second, NOW)
            .await
            .unwrap();

        assert_eq!(
            (first, again, other),
            (Acquisition::Acquired, stored(1), Acquisition::Acquired)
        );
        assert_eq!((expired, after), (Acquisition::Acquired, stored(4)));
    }

    #[tokio::test]
    async fn the_oldest_keys_are_deleted_first_and_up_to_the_limit() {
        let (_directory, storage) = fixture::sqlite().await;
        let at = |second: u8| NOW + SignedDuration::from_secs(second.into());
        for number in (0..5).rev() {
            let result = request(&storage, (key(number), number), at(number), NOW).await;
            result.unwrap();
        }
        let delete = |limit| {
            storage.write(move |transaction| {
                Box::pin(async move { delete_expired(transaction, at(3), limit).await })
            })
        };

        let mut deleted = Vec::new();
        for limit in [2, 200, 200] {
            deleted.push(delete(limit).await.unwrap());
        }

        assert_eq!(deleted, [2, 2, 0]);
        let reader = storage.reader();
        assert!(!is_any_expired(reader, at(3)).await.unwrap());
        assert!(is_any_expired(reader, at(4)).await.unwrap());
    }

    #[tokio::test]
    async fn responses_are_listed_by_store_and_age_in_the_order_of_keys_on_sqlite() {
        let (_directory, storage) = fixture::sqlite().await;
        assert_responses_are_listed(&storage).await;
    }

    #[tokio::test]
    async fn responses_are_listed_by_store_and_age_in_the_order_of_keys_on_postgres() {
        if let Some(storage) = fixture::postgres().await {
            assert_responses_are_listed(&storage).await;
        }
    }

    async fn assert_responses_are_listed(storage: &Arc<Storage>) {
        let second = SignedDuration::from_secs(1);
        let client = ApiClientId(uuid::Uuid::max());
        let of_other_client = |number| Key {
            api_client_id: client,
            ..key(number)
        };
        let of_other_store = Key {
            store_id: StoreId(uuid::Uuid::max()),
            ..key(9)
        };
        for (key, now) in [
            (key(3), NOW),
            (key(2), NOW + second),
            (of_other_client(1), NOW),
            (key(4), NOW - second),
            (of_other_store, NOW),
        ] {
            let result = request(storage, (key, key.hash[0]), now, NOW - second * 2).await;
            result.unwrap();
        }

        for limit in [1, 2, 9] {
            let mut listed = Vec::new();
            loop {
                let after = listed.last().map(|(key, _)| *key);
                let page = list(storage.reader(), key(0).store_id, (NOW, after), limit);
                let page = page.await.unwrap();
                assert!(page.len() as u64 <= limit);
                if page.is_empty() {
                    break;
                }
                listed.extend(page);
            }
            let expected = [key(2), key(3), of_other_client(1)];
            assert_eq!(listed, expected.map(|key| (key, vec![key.hash[0]])));
        }
    }

    #[tokio::test]
    async fn prefixes_of_all_responses_are_listed_in_the_order_of_keys_on_sqlite() {
        let (_directory, storage) = fixture::sqlite().await;
        assert_prefixes_are_listed(&storage).await;
    }

    #[tokio::test]
    async fn prefixes_of_all_responses_are_listed_in_the_order_of_keys_on_postgres() {
        if let Some(storage) = fixture::postgres().await {
            assert_prefixes_are_listed(&storage).await;
        }
    }

    async fn assert_prefixes_are_listed(storage: &Arc<Storage>) {
        let last = uuid::Uuid::max();
        let of_other_client = Key {
            api_client_id: ApiClientId(last),
            ..key(1)
        };
        let of_other_store = Key {
            store_id: StoreId(last),
            ..key(0)
        };
        let keys = [key(2), key(3), of_other_client, of_other_store];
        for key in keys.into_iter().rev() {
            let response = vec![key.hash[0], 7, 8];
            let write = storage.write(move |transaction| {
                let response = response.clone();
                Box::pin(async move {
                    acquire(transaction, key, [0; 32], (NOW, Timestamp::MIN)).await?;
                    store_response(transaction, key, response).await
                })
            });
            write.await.unwrap();
        }

        for limit in [1, 3, 9] {
            let mut listed = Vec::new();
            loop {
                let after = listed.last().map(|(key, _)| *key);
                let page = list_prefixes(storage.reader(), after, (2, limit))
                    .await
                    .unwrap();
                assert!(page.len() as u64 <= limit);
                if page.is_empty() {
                    break;
                }
                listed.extend(page);
            }
            assert_eq!(listed, keys.map(|key| (key, vec![key.hash[0], 7])));
        }
    }
}
