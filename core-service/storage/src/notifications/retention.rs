//! Retention: removes finished (delivered, exhausted or cancelled) notifications, with their
//! attempts.

use crate::entity::{
    attempt,
    instant::Instant,
    notification::{Column, Entity},
};
use crate::prelude::*;

/// Removes notifications that finished before an instant, oldest first, with their attempts.
/// Returns how many. Fewer than `limit` means that no more remain, except rows that another core
/// has locked: concurrent cores skip each other's rows.
pub async fn remove_finished(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let old: Vec<(Uuid, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::StoreId, Column::Id])
        .filter(Column::FinishedAt.lt(Instant::from(before)))
        .order_by_asc(Column::FinishedAt)
        .limit(limit)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_tuple()
        .all(transaction)
        .await?;
    if old.is_empty() {
        return Ok(0);
    }
    let stores = padded(old.iter().map(|(store_id, _)| *store_id));
    let ids = padded(old.iter().map(|(_, id)| *id));
    attempt::Entity::delete_many()
        .filter(attempt::Column::StoreId.is_in(stores.iter().copied()))
        .filter(attempt::Column::NotificationId.is_in(ids.iter().copied()))
        .exec(transaction)
        .await?;
    let removed = Entity::delete_many()
        .filter(Column::StoreId.is_in(stores))
        .filter(Column::Id.is_in(ids))
        .exec(transaction)
        .await?;
    Ok(removed.rows_affected)
}
