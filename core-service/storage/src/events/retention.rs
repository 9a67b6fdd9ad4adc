//! Retention: removes the oldest events first, so that the remaining log has no gaps.

use std::collections::BTreeMap;

use crate::entity::{
    Instant,
    event::{Column, Entity},
};
use crate::prelude::*;

/// Removes the oldest events that were created before an instant. Returns how many.
pub async fn remove_oldest(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<usize, Error> {
    let before = Instant::from(before);
    let oldest: Vec<(i64, Instant)> = Entity::find()
        .select_only()
        .column(Column::Position)
        .column(Column::CreatedAt)
        .filter(Column::Position.is_not_null())
        .order_by_asc(Column::Position)
        .limit(limit)
        .into_tuple()
        .all(transaction)
        .await?;
    let is_older = |(_, created_at): &(_, Instant)| *created_at < before;
    let Some((last, _)) = oldest.into_iter().take_while(is_older).last() else {
        return Ok(0);
    };
    // First: the sequencer, too, locks this row before those of the stores.
    let update = "UPDATE event_sequencers SET retained_after = $1 WHERE retained_after < $1";
    rows::execute(transaction, update, [last.into()]).await?;
    let removed = Entity::delete_many()
        .filter(Column::Position.lte(last))
        .exec_with_returning(transaction)
        .await?;

    let mut retained_after = BTreeMap::new();
    for row in &removed {
        let number = row.number.unwrap_or_default();
        let newest = retained_after.entry(row.store_id).or_insert(number);
        *newest = std::cmp::max(number, *newest);
    }
    for (store_id, number) in retained_after {
        let update = "UPDATE event_counters SET retained_after = $2
            WHERE store_id = $1 AND retained_after < $2";
        rows::execute(transaction, update, [store_id.into(), number.into()]).await?;
    }
    Ok(removed.len())
}
