//! Removes erased deliveries with what is stored of them.

#[cfg(test)]
mod tests;

use super::{entity::Instant, notifications, personal_data::PastRetention};
use crate::prelude::*;

/// The most notifications that one transaction removes.
const NOTIFICATIONS: u64 = 500;

/// What the age of a delivery counts from, as in the index.
const SINCE: &str = "CASE WHEN created_at > dropoff_before THEN created_at ELSE dropoff_before END";

/// What is stored of tasks and of deliveries, but for notifications. Images are deleted when a delivery is erased, stored
/// responses after seven days; events have a retention of their own.
const OF_TASKS: [(&str, &str); 2] = [("task_events", "task_id"), ("incidents", "task_id")];
const OF_DELIVERIES: [(&str, &str); 2] =
    [("retail_price_uses", "delivery_id"), ("deliveries", "id")];

/// Removes erased deliveries of all stores that were created, whose dropoff ended and whose tasks changed last at or before
/// these instants, so many at most, the oldest first. Before them, their finished notifications: what is not finished is
/// removed by its own retention later. Returns whether more may be left. Skips deliveries that another transaction has
/// locked.
pub async fn remove_erased(
    transaction: &impl ConnectionTrait,
    past: PastRetention,
    limit: u64,
) -> Result<bool, Error> {
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => "FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    // Not `NOT EXISTS`: PostgreSQL may read all tasks for it.
    let select = format!(
        "SELECT store_id, id FROM deliveries WHERE erased_at IS NOT NULL AND {SINCE} <= $1 AND (
                SELECT MAX(updated_at) FROM tasks WHERE tasks.store_id = deliveries.store_id
                    AND tasks.delivery_id = deliveries.id
            ) <= $2 ORDER BY {SINCE} LIMIT {limit} {lock}"
    );
    let instants = [past.ended, past.changed].map(|instant| Instant::from(instant).into());
    let deliveries = keys(transaction, &select, instants).await?;
    if deliveries.is_empty() {
        return Ok(false);
    }
    let removed = notifications::remove_of_deliveries(transaction, &deliveries, NOTIFICATIONS);
    if removed.await? == NOTIFICATIONS {
        return Ok(true);
    }
    let (list, values) = rows::pairs(&deliveries);
    let delete = format!(
        "DELETE FROM tasks WHERE (store_id, delivery_id) IN ({list}) RETURNING store_id, id"
    );
    let tasks = keys(transaction, &delete, values).await?;
    if !tasks.is_empty() {
        delete_all(transaction, OF_TASKS, &tasks).await?;
    }
    delete_all(transaction, OF_DELIVERIES, &deliveries).await?;
    Ok(u64::try_from(deliveries.len()) == Ok(limit))
}

/// The pairs of ids that a statement returns.
async fn keys(
    transaction: &impl ConnectionTrait,
    statement: &str,
    values: impl IntoIterator<Item = sea_orm::Value>,
) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let rows = rows::query(transaction, statement, values).await?;
    let keys = rows
        .iter()
        .map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)));
    keys.collect()
}

/// Deletes the rows of tables that have the store and the id of one of these pairs.
async fn delete_all(
    transaction: &impl ConnectionTrait,
    tables: impl IntoIterator<Item = (&str, &str)>,
    pairs: &[(Uuid, Uuid)],
) -> Result<(), Error> {
    let (list, values) = rows::pairs(pairs);
    for (table, id) in tables {
        let delete = format!("DELETE FROM {table} WHERE (store_id, {id}) IN ({list})");
        rows::run(transaction, &delete, values.clone()).await?;
    }
    Ok(())
}
