//! How long events are kept: the oldest go first, so that what is kept has no gaps.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait as _},
};

use crate::{
    ConnectionTrait, Error,
    entity::{
        event::{Column, Entity},
        event_counter, event_sequencer,
        instant::Instant,
    },
};

/// Whether the oldest event was created before an instant: a look that writes nothing.
pub async fn is_any_older(
    connection: &impl ConnectionTrait,
    than: Timestamp,
) -> Result<bool, Error> {
    let oldest = oldest(connection, 1).await?;
    Ok(oldest
        .first()
        .is_some_and(|(_, created_at)| *created_at < Instant::from(than)))
}

/// Removes the oldest events, as far as they were created before an instant. How many that were.
pub async fn trim(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    most: u64,
) -> Result<usize, Error> {
    let before = Instant::from(before);
    let last = oldest(transaction, most)
        .await?
        .into_iter()
        .take_while(|(_, created_at)| *created_at < before)
        .last();
    let Some((last, _)) = last else {
        return Ok(0);
    };
    let removed = Entity::delete_many()
        .filter(Column::Position.lte(last))
        .exec_with_returning(transaction)
        .await?;

    let mut trimmed_to = BTreeMap::new();
    for row in &removed {
        let number = row.number.unwrap_or_default();
        let newest = trimmed_to.entry(row.store_id).or_insert(number);
        *newest = std::cmp::max(number, *newest);
    }
    for (store_id, number) in trimmed_to {
        use event_counter::{Column, Entity};
        Entity::update_many()
            .col_expr(Column::TrimmedTo, Expr::value(number))
            .filter(Column::StoreId.eq(store_id))
            .filter(Column::TrimmedTo.lt(number))
            .exec(transaction)
            .await?;
    }
    event_sequencer::Entity::update_many()
        .col_expr(event_sequencer::Column::TrimmedTo, Expr::value(last))
        .filter(Expr::col(event_sequencer::Column::TrimmedTo).lt(last))
        .exec(transaction)
        .await?;
    Ok(removed.len())
}

/// The places of the oldest events and when they were created.
async fn oldest(
    connection: &impl ConnectionTrait,
    most: u64,
) -> Result<Vec<(i64, Instant)>, Error> {
    let found = Entity::find()
        .select_only()
        .column(Column::Position)
        .column(Column::CreatedAt)
        .filter(Column::Position.is_not_null())
        .order_by_asc(Column::Position)
        .limit(most)
        .into_tuple()
        .all(connection)
        .await?;
    Ok(found)
}
