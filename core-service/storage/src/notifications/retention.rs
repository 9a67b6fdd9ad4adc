//! Retention: removes finished (delivered, exhausted or cancelled) notifications, with their
//! attempts.

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
    remove(transaction, &old).await
}

/// Removes the finished notifications of deliveries, by store and id, so many at most. Returns how many. As
/// [`remove_finished`], skips rows that are locked.
pub async fn remove_of_deliveries(
    transaction: &impl ConnectionTrait,
    deliveries: &[(Uuid, Uuid)],
    limit: u64,
) -> Result<u64, Error> {
    let (deliveries, values) = rows::pairs(deliveries);
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => " FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let select = format!(
        "SELECT store_id, id FROM notifications WHERE (store_id, delivery_id) IN ({deliveries})
            AND finished_at IS NOT NULL LIMIT {limit}{lock}"
    );
    let found = rows::query(transaction, &select, values).await?;
    let keys = found
        .iter()
        .map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)));
    remove(transaction, &keys.collect::<Result<Vec<_>, Error>>()?).await
}

/// Removes locked notifications, by store and id, with their attempts. Returns how many.
async fn remove(
    transaction: &impl ConnectionTrait,
    notifications: &[(Uuid, Uuid)],
) -> Result<u64, Error> {
    if notifications.is_empty() {
        return Ok(0);
    }
    let (keys, values) = rows::pairs(notifications);
    let attempts = format!("DELETE FROM attempts WHERE (store_id, notification_id) IN ({keys})");
    rows::execute(transaction, &attempts, values.clone()).await?;
    let finished = format!("DELETE FROM notifications WHERE (store_id, id) IN ({keys})");
    rows::execute(transaction, &finished, values).await
}
