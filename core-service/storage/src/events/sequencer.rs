//! The sequencer: assigns numbers to committed events, in one transaction at a time.
//!
//! An event gets two numbers: `number` counts the events of its store, `position` those of all
//! stores. The sequencer's row is locked while a batch is numbered, and the counters change in the
//! same transaction. If a core crashes before the commit, nothing is numbered. An event that is
//! committed late gets a later number than events that were committed before it, even if it was
//! created earlier.

use std::collections::BTreeMap;

use crate::entity::event;
use crate::prelude::*;

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
    let numbered = rows::query(transaction, ASSIGN_NUMBERS, parameters).await?;

    if numbered.is_empty() {
        return Ok(Some(0));
    }
    let mut last_numbers: BTreeMap<Uuid, i64> = BTreeMap::new();
    for row in &numbered {
        let (store_id, number) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let last = last_numbers.entry(store_id).or_insert(number);
        *last = std::cmp::max(*last, number);
    }
    let save = format!(
        "INSERT INTO event_counters (store_id, last_number, retained_after) VALUES {}
            ON CONFLICT (store_id) DO UPDATE SET last_number = excluded.last_number",
        rows::placeholders(&mut (1..), last_numbers.len(), 3)
    );
    let values = last_numbers
        .into_iter()
        .flat_map(|(store_id, number)| [store_id.into(), number.into(), 0_i64.into()]);
    rows::execute(transaction, &save, values).await?;
    let count = i64::try_from(numbered.len()).unwrap_or(i64::MAX);
    let update = "UPDATE event_sequencers SET last_position = last_position + $1";
    rows::execute(transaction, update, [count.into()]).await?;
    Ok(Some(numbered.len()))
}

/// Numbers the oldest events, but those of a delivery whose event `delivery.created` waits for its number. The parameters are the last position and the limit. Returns the store
/// and number of each event.
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
    WHERE events.store_id = numbered.store_id AND events.id = numbered.id
    RETURNING events.store_id, events.number";
