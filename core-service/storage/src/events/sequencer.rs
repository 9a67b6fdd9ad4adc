//! The sequencer: assigns numbers to committed events, in one transaction at a time.
//!
//! An event gets two numbers: `number` counts the events of its store, `position` those of all
//! stores. The sequencer's row is locked while a batch is numbered, and the counters change in the
//! same transaction. If a core crashes before the commit, nothing is numbered. An event that is
//! committed late gets a later number than events that were committed before it, even if it was
//! created earlier.

use crate::prelude::*;

/// What waits for a sequencer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Changes of tasks, for their positions.
    pub changes: bool,
    /// Events, for their numbers.
    pub events: bool,
    /// Numbered events, for the notifications of new deliveries.
    pub notifications: bool,
}

impl Waiting {
    pub fn is_anything(self) -> bool {
        self != Self::default()
    }
}

/// One statement: an idle core executes it all the time.
pub async fn waiting(connection: &impl ConnectionTrait) -> Result<Waiting, Error> {
    let select = "SELECT EXISTS (SELECT 1 FROM task_change_queue),
        EXISTS (SELECT 1 FROM events WHERE number IS NULL),
        EXISTS (SELECT 1 FROM notified_positions, event_sequencers WHERE position < last_position)";
    let rows = rows::query(connection, select, []).await?;
    let Some(row) = rows.first() else {
        return Ok(Waiting::default());
    };
    Ok(Waiting {
        changes: row.try_get_by_index(0)?,
        events: row.try_get_by_index(1)?,
        notifications: row.try_get_by_index(2)?,
    })
}

/// Assigns numbers to committed events, oldest first. Returns how many; `None` if another core is
/// assigning numbers, which may not see the newest events.
pub async fn assign_numbers(
    transaction: &impl ConnectionTrait,
    limit: usize,
) -> Result<Option<usize>, Error> {
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => "FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let select = format!("SELECT last_position FROM event_sequencers {lock}");
    let found: Option<i64> = rows::find_value(transaction, &select, []).await?;
    let Some(last_position) = found else {
        return Ok(None);
    };

    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters = [last_position.into(), limit.into()];
    let numbered = rows::execute(transaction, ASSIGN_NUMBERS, parameters).await?;
    if numbered > 0 {
        rows::run(transaction, COUNT, [last_position.into()]).await?;
        let update = "UPDATE event_sequencers SET last_position = last_position + $1";
        let count = i64::try_from(numbered).unwrap_or(i64::MAX);
        rows::run(transaction, update, [count.into()]).await?;
    }
    Ok(Some(usize::try_from(numbered).unwrap_or(usize::MAX)))
}

/// Numbers the oldest events, but those of a delivery whose event `delivery.created` waits for its number. The
/// parameters are the last position and the limit.
const ASSIGN_NUMBERS: &str = "\
    UPDATE events SET number = numbered.number, position = numbered.position
    FROM (
        SELECT batch.store_id, batch.id,
            COALESCE(
                (SELECT last_number FROM event_counters WHERE store_id = batch.store_id), 0
            ) + ROW_NUMBER() OVER (
                PARTITION BY batch.store_id ORDER BY batch.created_at, batch.id
            ) AS number,
            $1 + ROW_NUMBER() OVER (ORDER BY batch.created_at, batch.id) AS position
        FROM (
            SELECT store_id, id, created_at FROM events
            WHERE number IS NULL
                AND object_id NOT IN (SELECT delivery_id FROM task_change_queue WHERE is_creation)
            ORDER BY created_at, id LIMIT $2
        ) AS batch
    ) AS numbered
    WHERE events.store_id = numbered.store_id AND events.id = numbered.id";

/// Updates the counters of the stores whose events have positions after the last one.
const COUNT: &str = "\
    INSERT INTO event_counters (store_id, last_number, retained_after)
    SELECT store_id, MAX(number), 0 FROM events WHERE position > $1 GROUP BY store_id
    ON CONFLICT (store_id) DO UPDATE SET last_number = excluded.last_number";
