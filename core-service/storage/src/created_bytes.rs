//! How many deliveries, and of how many bytes, each store created per hour. A store has one row for each hour of
//! the day; the same hour of the next day overwrites it.

use domain::id::StoreId;
use jiff::SignedDuration;

use super::entity::Instant;
use crate::prelude::*;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// What a store created in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedInHour {
    pub hour: Timestamp,
    pub deliveries: i64,
    pub bytes: i64,
}

/// Adds a delivery to what a store created in the current hour. Call late in a transaction: it locks the hour's
/// row.
pub async fn add(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    bytes: i64,
    now: Timestamp,
) -> Result<(), Error> {
    let hours = now.as_second().div_euclid(HOUR.as_secs());
    let hour = Timestamp::from_second(hours * HOUR.as_secs()).unwrap_or(now);
    let add = "INSERT INTO created_bytes (store_id, hour_of_day, hour, bytes, deliveries)
        VALUES ($1, $2, $3, $4, 1)
        ON CONFLICT (store_id, hour_of_day) DO UPDATE SET
            hour = excluded.hour,
            bytes = excluded.bytes + CASE
                WHEN created_bytes.hour = excluded.hour THEN created_bytes.bytes ELSE 0
            END,
            deliveries = 1 + CASE
                WHEN created_bytes.hour = excluded.hour THEN created_bytes.deliveries ELSE 0
            END";
    let values = [
        store_id.0.into(),
        hours.rem_euclid(24).into(),
        Instant::from(hour).into(),
        bytes.into(),
    ];
    rows::run(transaction, add, values).await
}

/// What a store created in each hour that began after an instant, oldest first.
pub async fn hours_after(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    after: Timestamp,
) -> Result<Vec<CreatedInHour>, Error> {
    let select = "SELECT hour, deliveries, bytes FROM created_bytes
        WHERE store_id = $1 AND hour > $2 ORDER BY hour";
    let parameters = [store_id.0.into(), Instant::from(after).into()];
    let rows = rows::query(connection, select, parameters).await?;
    rows.iter()
        .map(|row| {
            let hour: Instant = row.try_get_by_index(0)?;
            Ok(CreatedInHour {
                hour: hour.try_into()?,
                deliveries: row.try_get_by_index(1)?,
                bytes: row.try_get_by_index(2)?,
            })
        })
        .collect()
}
