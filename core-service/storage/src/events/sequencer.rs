//! The sequencer: gives committed events their numbers, one core at a time.
//!
//! Who numbers holds a lease, by the leases' clock, so that others need not try. What makes it
//! safe is not the lease but its row: it is locked for as long as a batch is numbered, and the
//! counters move in the same transaction. A core that dies in the middle has numbered nothing. An
//! event that is committed late, whenever it was created, gets a later number.

use std::{collections::BTreeMap, time::Duration};

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, Statement,
    sea_query::{Expr, ExprTrait as _, LockBehavior, LockType, OnConflict},
};
use uuid::Uuid;

use crate::{
    Error,
    entity::{
        event, event_counter,
        event_sequencer::{Column, Entity, ONLY},
    },
    lease_clock,
};

/// What came of a turn at numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Another core numbers events.
    NotOurs,
    /// So many have a number now.
    Numbered(usize),
}

/// Whether any event has no number yet: a look that writes nothing.
pub async fn is_any_unnumbered(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    let found: Option<Uuid> = event::Entity::find()
        .select_only()
        .column(event::Column::Id)
        .filter(event::Column::Number.is_null())
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Numbers committed events, the oldest first, if the lease is the holder's, over, or free; it
/// is the holder's then for so long.
pub async fn number(
    transaction: &impl ConnectionTrait,
    (holder, lease): (Uuid, Duration),
    most: usize,
) -> Result<Round, Error> {
    let ours = Condition::any()
        .add(Column::Holder.is_null())
        .add(Column::Holder.eq(holder))
        .add(Expr::col(Column::HeldUntil).lte(lease_clock::now(transaction)));
    // Whoever holds the row's lock is numbering at this moment.
    let sequencer = Entity::find_by_id(ONLY)
        .filter(ours)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .one(transaction)
        .await?;
    let Some(sequencer) = sequencer else {
        return Ok(Round::NotOurs);
    };

    let numbered = assign(transaction, sequencer.last_position, most).await?;

    let mut last_numbers = BTreeMap::new();
    for (store_id, number) in &numbered {
        let last = last_numbers.entry(*store_id).or_insert(*number);
        *last = std::cmp::max(*last, *number);
    }
    count(transaction, last_numbers).await?;
    let last_position = sequencer
        .last_position
        .saturating_add(i64::try_from(numbered.len()).unwrap_or(i64::MAX));
    Entity::update_many()
        .col_expr(Column::Holder, Expr::value(holder))
        .col_expr(Column::HeldUntil, lease_clock::end_of(transaction, lease))
        .col_expr(Column::LastPosition, Expr::value(last_position))
        .filter(Column::Id.eq(ONLY))
        .exec(transaction)
        .await?;
    Ok(Round::Numbered(numbered.len()))
}

/// Ends the lease of whoever holds it, or of one holder.
pub async fn give_up(
    transaction: &impl ConnectionTrait,
    holder: Option<Uuid>,
) -> Result<(), Error> {
    let mut held = Condition::all().add(Column::Id.eq(ONLY));
    if let Some(holder) = holder {
        held = held.add(Column::Holder.eq(holder));
    }
    Entity::update_many()
        .col_expr(Column::Holder, Expr::value(None::<Uuid>))
        .col_expr(Column::HeldUntil, Expr::value(0_i64))
        .filter(held)
        .exec(transaction)
        .await?;
    Ok(())
}

/// Gives numbers and positions in one statement: whose and which.
async fn assign(
    transaction: &impl ConnectionTrait,
    last_position: i64,
    most: usize,
) -> Result<Vec<(Uuid, i64)>, Error> {
    // Numbers only, nothing from outside, are put into the text.
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
                 WHERE number IS NULL ORDER BY created_at, id LIMIT {most} \
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

/// Writes how far each store is numbered.
async fn count(
    transaction: &impl ConnectionTrait,
    last_numbers: BTreeMap<Uuid, i64>,
) -> Result<(), Error> {
    use event_counter::{ActiveModel, Column, Entity};

    if last_numbers.is_empty() {
        return Ok(());
    }
    let rows = last_numbers
        .into_iter()
        .map(|(store_id, last_number)| ActiveModel {
            store_id: Set(store_id),
            last_number: Set(last_number),
            trimmed_to: Set(0),
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
