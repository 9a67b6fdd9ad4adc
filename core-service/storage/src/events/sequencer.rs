//! The sequencer: assigns numbers to committed events, one core at a time.
//!
//! An event gets two numbers: `number` counts the events of its store, `position` those of all
//! stores. The active core holds a lease, so that the others do not try; it expires by the lease
//! clock. Correctness does not depend on the lease: the sequencer's row is locked while a batch is
//! numbered, and the counters change in the same transaction. If a core crashes before the commit,
//! nothing is numbered. An event that is committed late gets a later number than events that were
//! committed before it, even if it was created earlier.

use std::time::Duration;

use sea_orm::sea_query::ExprTrait as _;

use crate::prelude::*;
use crate::{
    entity::{
        event,
        event_sequencer::{Column, Entity},
    },
    lease_clock,
};

use super::SEQUENCER_ROW;

/// The result of one run of the sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencerRun {
    /// Another core holds the lease, or is assigning numbers.
    LeaseHeldElsewhere,
    /// How many events were numbered.
    Numbered(usize),
}

/// Whether any event has no number yet.
pub async fn is_any_unnumbered(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    let unnumbered = event::Entity::find().filter(event::Column::Number.is_null());
    rows::exist(connection, unnumbered).await
}

/// Assigns numbers to committed events, oldest first, if the lease is free, expired, or held by
/// `lease_owner`. Begins or extends its lease.
pub async fn assign_numbers(
    transaction: &impl ConnectionTrait,
    (lease_owner, lease): (Uuid, Duration),
    limit: usize,
) -> Result<SequencerRun, Error> {
    let is_available = Condition::any()
        .add(Column::LeaseOwner.is_null())
        .add(Column::LeaseOwner.eq(lease_owner))
        .add(Expr::col(Column::LeaseExpiresAt).lte(lease_clock::now(transaction)));
    // Another transaction that has locked the row is assigning numbers.
    let sequencer = Entity::find_by_id(SEQUENCER_ROW)
        .filter(is_available)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .one(transaction)
        .await?;
    let Some(sequencer) = sequencer else {
        return Ok(SequencerRun::LeaseHeldElsewhere);
    };

    let last_position = sequencer.last_position;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [last_position.into(), limit.into()];
    let numbered = rows::execute(transaction, ASSIGN_NUMBERS, values).await?;
    if numbered > 0 {
        rows::execute(transaction, SAVE_COUNTERS, [last_position.into()]).await?;
    }
    let last_position = last_position.saturating_add_unsigned(numbered);
    Entity::update_many()
        .col_expr(Column::LeaseOwner, Expr::value(lease_owner))
        .col_expr(
            Column::LeaseExpiresAt,
            lease_clock::expiry(transaction, lease),
        )
        .col_expr(Column::LastPosition, Expr::value(last_position))
        .filter(Column::Id.eq(SEQUENCER_ROW))
        .exec(transaction)
        .await?;
    let numbered = usize::try_from(numbered).unwrap_or(usize::MAX);
    Ok(SequencerRun::Numbered(numbered))
}

/// Releases the sequencer's lease if `lease_owner` holds it, or, with `None`, if any core does.
pub async fn release_sequencer_lease(
    transaction: &impl ConnectionTrait,
    lease_owner: Option<Uuid>,
) -> Result<(), Error> {
    let release = "UPDATE event_sequencers SET lease_owner = NULL, lease_expires_at = 0
        WHERE lease_owner = $1 OR $1 IS NULL";
    rows::execute(transaction, release, [lease_owner.into()]).await?;
    Ok(())
}

/// Numbers the oldest events. The parameters are the last position and the limit.
const ASSIGN_NUMBERS: &str = "\
    UPDATE events SET number = numbered.number, position = numbered.position
    FROM (
        SELECT batch.store_id, batch.id,
            COALESCE(event_counters.last_number, 0) + ROW_NUMBER() OVER (
                PARTITION BY batch.store_id ORDER BY batch.created_at, batch.id
            ) AS number,
            $1 + ROW_NUMBER() OVER (ORDER BY batch.created_at, batch.id) AS position
        FROM (
            SELECT store_id, id, created_at FROM events
            WHERE number IS NULL ORDER BY created_at, id LIMIT $2
        ) AS batch
        LEFT JOIN event_counters ON event_counters.store_id = batch.store_id
    ) AS numbered
    WHERE events.store_id = numbered.store_id AND events.id = numbered.id";

/// Saves the last number of each store with an event after a position.
const SAVE_COUNTERS: &str = "\
    INSERT INTO event_counters (store_id, last_number, retained_after)
    SELECT store_id, MAX(number), 0 FROM events WHERE position > $1 GROUP BY store_id
    ON CONFLICT (store_id) DO UPDATE SET last_number = excluded.last_number";
