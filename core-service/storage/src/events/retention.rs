//! Retention: removes the oldest events first, so that the remaining log has no gaps.

use std::collections::BTreeMap;

use sea_orm::sea_query::ExprTrait as _;

use crate::entity::{
    event::{Column, Entity},
    event_counter, event_sequencer,
    instant::Instant,
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
    event_sequencer::Entity::update_many()
        .col_expr(event_sequencer::Column::RetainedAfter, Expr::value(last))
        .filter(Expr::col(event_sequencer::Column::RetainedAfter).lt(last))
        .exec(transaction)
        .await?;
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
        use event_counter::{Column, Entity};
        Entity::update_many()
            .col_expr(Column::RetainedAfter, Expr::value(number))
            .filter(Column::StoreId.eq(store_id))
            .filter(Column::RetainedAfter.lt(number))
            .exec(transaction)
            .await?;
    }
    Ok(removed.len())
}
