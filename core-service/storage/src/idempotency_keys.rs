//! Answers kept for requests that may come again: a row is written in the transaction that does
//! what the request asks, so that there is both or neither.

use domain::id::{ApiClientId, StoreId};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, ExprTrait as _, OnConflict},
};

use super::{
    ConnectionTrait, Error,
    entity::{
        idempotency_key::{ActiveModel, Column, Entity},
        instant::Instant,
    },
};

/// Names what a client asks for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub store_id: StoreId,
    pub api_client_id: ApiClientId,
    /// Of the client's own key and what it is for.
    pub hash: [u8; 32],
}

/// What is remembered of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Tells it from others with its key.
    pub request_hash: Vec<u8>,
    pub sealed_answer: Vec<u8>,
}

/// What became of the wish to be the first with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Ours,
    Taken(Kept),
}

/// What is kept under a key, if it was put there later than an instant.
pub async fn find(
    connection: &impl ConnectionTrait,
    key: Key,
    later_than: Timestamp,
) -> Result<Option<Kept>, Error> {
    let row = Entity::find_by_id(id(key))
        .filter(Column::CreatedAt.gt(Instant::from(later_than)))
        .one(connection)
        .await?;
    Ok(row.map(|row| Kept {
        request_hash: row.request_hash,
        sealed_answer: row.sealed_answer,
    }))
}

/// Takes a key, unless it was taken later than an instant; then [`keep`] must follow in the same
/// transaction. One who is about to take it is waited for, 2 s at most
/// ([`Error::is_lock_timeout`]).
pub async fn claim(
    transaction: &impl ConnectionTrait,
    key: Key,
    request_hash: [u8; 32],
    (now, later_than): (Timestamp, Timestamp),
) -> Result<Claim, Error> {
    let row = ActiveModel {
        store_id: Set(key.store_id.0),
        api_client_id: Set(key.api_client_id.0),
        key_hash: Set(key.hash.to_vec()),
        request_hash: Set(request_hash.to_vec()),
        sealed_answer: Set(Vec::new()),
        created_at: Set(now.into()),
    };
    // What has expired, but is not removed yet, is as if it were not there.
    let unless_taken = OnConflict::columns([Column::StoreId, Column::ApiClientId, Column::KeyHash])
        .update_columns([Column::RequestHash, Column::SealedAnswer, Column::CreatedAt])
        .action_and_where(Expr::col((Entity, Column::CreatedAt)).lte(Instant::from(later_than)))
        .to_owned();
    // On SQLite, where a transaction that writes is alone, nobody is waited for.
    let may_wait = transaction.get_database_backend() == DbBackend::Postgres;
    if may_wait {
        transaction
            .execute_unprepared("SET LOCAL lock_timeout = '2s'")
            .await?;
    }
    let rows = Entity::insert(row)
        .on_conflict(unless_taken)
        .exec_without_returning(transaction)
        .await?;
    if may_wait {
        transaction
            .execute_unprepared("SET LOCAL lock_timeout = DEFAULT")
            .await?;
    }
    if rows > 0 {
        return Ok(Claim::Ours);
    }
    let kept = find(transaction, key, later_than).await?;
    kept.map(Claim::Taken)
        .ok_or_else(|| Error::inconsistent("idempotency_keys", "one that is there and is not"))
}

/// Puts the answer under a key that was just taken.
pub async fn keep(
    transaction: &impl ConnectionTrait,
    key: Key,
    sealed_answer: Vec<u8>,
) -> Result<(), Error> {
    Entity::update_many()
        .col_expr(Column::SealedAnswer, Expr::value(sealed_answer))
        .filter(Column::StoreId.eq(key.store_id.0))
        .filter(Column::ApiClientId.eq(key.api_client_id.0))
        .filter(Column::KeyHash.eq(key.hash.to_vec()))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Whether there are any taken no later than an instant.
pub async fn is_any_as_old(
    connection: &impl ConnectionTrait,
    no_later_than: Timestamp,
) -> Result<bool, Error> {
    let found = Entity::find()
        .filter(Column::CreatedAt.lte(Instant::from(no_later_than)))
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Removes some of those taken no later than an instant, of any store, the oldest first. How
/// many that were.
pub async fn remove(
    transaction: &impl ConnectionTrait,
    no_later_than: Timestamp,
    most: u64,
) -> Result<u64, Error> {
    let key = [Column::StoreId, Column::ApiClientId, Column::KeyHash];
    let oldest = Entity::find()
        .select_only()
        .columns(key)
        .filter(Column::CreatedAt.lte(Instant::from(no_later_than)))
        .order_by_asc(Column::CreatedAt)
        .limit(most)
        .into_query();
    let removed = Entity::delete_many()
        .filter(Expr::tuple(key.map(Expr::col)).in_subquery(oldest))
        // Again: one that was found may have been taken anew by the time it is locked.
        .filter(Column::CreatedAt.lte(Instant::from(no_later_than)))
        .exec(transaction)
        .await?;
    Ok(removed.rows_affected)
}

fn id(key: Key) -> (uuid::Uuid, uuid::Uuid, Vec<u8>) {
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

    /// Takes a key at an instant and puts a kept answer under it.
    async fn ask(
        storage: &Arc<Storage>,
        (key, request): (Key, u8),
        now: Timestamp,
        later_than: Timestamp,
    ) -> Result<Claim, Error> {
        storage
            .write(move |transaction| {
                Box::pin(async move {
                    let times = (now, later_than);
                    let claim = claim(transaction, key, [request; 32], times).await?;
                    if claim == Claim::Ours {
                        keep(transaction, key, vec![request]).await?;
                    }
                    Ok(claim)
                })
            })
            .await
    }

    fn taken(request: u8) -> Claim {
        Claim::Taken(Kept {
            request_hash: vec![request; 32],
            sealed_answer: vec![request],
        })
    }

    #[tokio::test]
    async fn the_first_takes_a_key_until_it_expires() {
        let (_directory, storage) = fixture::sqlite().await;
        let second = SignedDuration::from_secs(1);
        let long_ago = NOW - second;

        let first = ask(&storage, (key(1), 1), NOW, long_ago).await.unwrap();
        let again = ask(&storage, (key(1), 2), NOW, long_ago).await.unwrap();
        let other = ask(&storage, (key(2), 3), NOW, long_ago).await.unwrap();
        let expired = ask(&storage, (key(1), 4), NOW + second, NOW).await.unwrap();
        let after = ask(&storage, (key(1), 5), NOW + second, NOW).await.unwrap();

        assert_eq!((first, again, other), (Claim::Ours, taken(1), Claim::Ours));
        assert_eq!((expired, after), (Claim::Ours, taken(4)));
    }

    #[tokio::test]
    async fn the_oldest_are_removed_first_and_so_many_at_once() {
        let (_directory, storage) = fixture::sqlite().await;
        let at = |second: u8| NOW + SignedDuration::from_secs(second.into());
        for number in (0..5).rev() {
            let asked = ask(&storage, (key(number), number), at(number), NOW).await;
            asked.unwrap();
        }
        let remove = |most| {
            storage.write(move |transaction| {
                Box::pin(async move { remove(transaction, at(3), most).await })
            })
        };

        let mut removed = Vec::new();
        for most in [2, 200, 200] {
            removed.push(remove(most).await.unwrap());
        }

        assert_eq!(removed, [2, 2, 0]);
        let reader = storage.reader();
        assert!(!is_any_as_old(reader, at(3)).await.unwrap());
        assert!(is_any_as_old(reader, at(4)).await.unwrap());
    }
}
