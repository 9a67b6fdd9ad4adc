//! Retention: what has ended is kept for a while, with its attempts, and then removed.

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{LockBehavior, LockType},
};
use uuid::Uuid;

use crate::{
    ConnectionTrait, Error,
    entity::{
        attempt,
        instant::Instant,
        notification::{Column, Entity},
    },
};

/// Removes some of the notifications that ended before an instant, the longest ended first, and
/// their attempts. How many; fewer than asked for when there are no more. Cores that do so at
/// the same moment step past each other.
pub async fn remove_finished(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    most: u64,
) -> Result<u64, Error> {
    let old: Vec<(Uuid, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id])
        .filter(Column::FinishedAt.lt(Instant::from(before)))
        .order_by_asc(Column::FinishedAt)
        .limit(most)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_tuple()
        .all(transaction)
        .await?;
    if old.is_empty() {
        return Ok(0);
    }
    let stores = old.iter().map(|(store_id, _)| *store_id);
    let ids = old.iter().map(|(_, id)| *id);
    attempt::Entity::delete_many()
        .filter(attempt::Column::StoreId.is_in(stores.clone()))
        .filter(attempt::Column::NotificationId.is_in(ids.clone()))
        .exec(transaction)
        .await?;
    let removed = Entity::delete_many()
        .filter(Column::StoreId.is_in(stores))
        .filter(Column::Id.is_in(ids))
        .exec(transaction)
        .await?;
    Ok(removed.rows_affected)
}
