//! Retention: removes finished (delivered, exhausted or cancelled) notifications, with their
//! attempts.

use sea_orm::Value;

use crate::entity::{
    Instant,
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
    let keys = padded(old);
    let pairs = rows::placeholders(&mut (1..), keys.len(), 2);
    let values: Vec<Value> = keys
        .into_iter()
        .flat_map(|(store_id, id)| [store_id.into(), id.into()])
        .collect();
    // In pairs: with a list of stores and one of ids, PostgreSQL may read all rows of a large store.
    let attempts =
        format!("DELETE FROM attempts WHERE (store_id, notification_id) IN (VALUES {pairs})");
    rows::execute(transaction, &attempts, values.clone()).await?;
    let finished = format!("DELETE FROM notifications WHERE (store_id, id) IN (VALUES {pairs})");
    rows::execute(transaction, &finished, values).await
}
