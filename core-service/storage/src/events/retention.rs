//! Retention: removes the oldest events first, so that the remaining log has no gaps.

use crate::entity::{
    event::{Column, Entity},
    instant::Instant,
};
use crate::prelude::*;

/// Whether the oldest event was created before an instant. Writes nothing.
pub async fn is_any_older(
    connection: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<bool, Error> {
    let oldest = oldest(connection, 1).await?;
    Ok(oldest
        .first()
        .is_some_and(|(_, created_at)| *created_at < Instant::from(before)))
}

/// Removes the oldest events that were created before an instant. Returns how many.
pub async fn remove_oldest(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let before = Instant::from(before);
    let last = oldest(transaction, limit)
        .await?
        .into_iter()
        .take_while(|(_, created_at)| *created_at < before)
        .last();
    let Some((last, _)) = last else {
        return Ok(0);
    };
    let last = || [last.into()];
    // In the order in which the sequencer locks them.
    let update = "UPDATE event_sequencers SET retained_after = $1 WHERE retained_after < $1";
    rows::execute(transaction, update, last()).await?;
    let update = "UPDATE event_counters SET retained_after = removed.last_number
        FROM (
            SELECT store_id, MAX(number) AS last_number FROM events
            WHERE position <= $1 GROUP BY store_id
        ) AS removed
        WHERE event_counters.store_id = removed.store_id
            AND event_counters.retained_after < removed.last_number";
    rows::execute(transaction, update, last()).await?;
    rows::execute(
        transaction,
        "DELETE FROM events WHERE position <= $1",
        last(),
    )
    .await
}

/// The positions and creation instants of the oldest events.
async fn oldest(
    connection: &impl ConnectionTrait,
    limit: u64,
) -> Result<Vec<(i64, Instant)>, Error> {
    let found = Entity::find()
        .select_only()
        .column(Column::Position)
        .column(Column::CreatedAt)
        .filter(Column::Position.is_not_null())
        .order_by_asc(Column::Position)
        .limit(limit)
        .into_tuple()
        .all(connection)
        .await?;
    Ok(found)
}
