//! The sequencer: assigns numbers to committed events, in one transaction at a time.
//!
//! An event gets two numbers: `number` counts the events of its store, `position` those of all
//! stores. The sequencer's row is locked while a batch is numbered, and the counters change in the
//! same transaction. If a core crashes before the commit, nothing is numbered. An event that is
//! committed late gets a later number than events that were committed before it, even if it was
//! created earlier.

use std::collections::BTreeMap;

use sea_orm::{Statement, sea_query::ExprTrait as _};

use crate::entity::{
    event, event_counter,
    event_sequencer::{Column, Entity},
};
use crate::prelude::*;

use super::SEQUENCER_ROW;

/// Whether any event has no number yet.
pub async fn is_any_unnumbered(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    let unnumbered = event::Entity::find().filter(event::Column::Number.is_null());
    rows::exist(connection, unnumbered).await
}

/// Assigns numbers to committed events, oldest first. Returns how many; `None` if another core is
/// assigning numbers, which may not see the newest events.
pub async fn assign_numbers(
    transaction: &impl ConnectionTrait,
    limit: usize,
) -> Result<Option<usize>, Error> {
    let sequencer = Entity::find_by_id(SEQUENCER_ROW)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .one(transaction)
        .await?;
    let Some(sequencer) = sequencer else {
        return Ok(None);
    };

    let numbered = assign_batch(transaction, sequencer.last_position, limit).await?;

    let mut last_numbers = BTreeMap::new();
    for (store_id, number) in &numbered {
        let last = last_numbers.entry(*store_id).or_insert(*number);
        *last = std::cmp::max(*last, *number);
    }
    save_counters(transaction, last_numbers).await?;
    let count = i64::try_from(numbered.len()).unwrap_or(i64::MAX);
    Entity::update_many()
        .col_expr(
            Column::LastPosition,
            Expr::col(Column::LastPosition).add(count),
        )
        .filter(Column::Id.eq(SEQUENCER_ROW))
        .exec(transaction)
        .await?;
    Ok(Some(numbered.len()))
}

/// Assigns numbers and positions in one statement. Returns the store and number of each event.
async fn assign_batch(
    transaction: &impl ConnectionTrait,
    last_position: i64,
    limit: usize,
) -> Result<Vec<(Uuid, i64)>, Error> {
    // Only integers are interpolated, no external text.
    let sql = format!(
        "UPDATE events SET number = numbered.number, position = numbered.position \
         FROM ( \
             SELECT batch.store_id, batch.id, \
                 COALESCE(event_counters.last_number, 0) + ROW_NUMBER() OVER ( \
                     PARTITION BY batch.store_id ORDER BY batch.created_at, batch.id \
                 ) AS number, \
                 {last_position} + ROW_NUMBER() OVER ( \
                     ORDER BY batch.created_at, batch.id \
                 ) AS position \
             FROM ( \
                 SELECT store_id, id, created_at FROM events \
                 WHERE number IS NULL ORDER BY created_at, id LIMIT {limit} \
             ) AS batch \
             LEFT JOIN event_counters ON event_counters.store_id = batch.store_id \
         ) AS numbered \
         WHERE events.store_id = numbered.store_id AND events.id = numbered.id \
         RETURNING events.store_id, events.number"
    );
    let statement = Statement::from_string(transaction.get_database_backend(), sql);
    let rows = transaction.query_all_raw(statement).await?;
    rows.into_iter()
        .map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
        .collect()
}

/// Saves the last number of each store.
async fn save_counters(
    transaction: &impl ConnectionTrait,
    last_numbers: BTreeMap<Uuid, i64>,
) -> Result<(), Error> {
    use event_counter::{ActiveModel, Column, Entity};

    let rows = last_numbers
        .into_iter()
        .map(|(store_id, last_number)| ActiveModel {
            store_id: Set(store_id),
            last_number: Set(last_number),
            retained_after: Set(0),
        });
    Entity::insert_many(rows)
        .on_conflict(
            OnConflict::column(Column::StoreId)
                .update_column(Column::LastNumber)
                .to_owned(),
        )
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}
