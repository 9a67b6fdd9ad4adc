//! Bookings of time slots with a limited capacity, counted in the transaction that books.

use std::collections::HashMap;

use domain::{
    delivery::Booking,
    id::{StoreId, TimeSlotId},
    task::TimeWindow,
};
use sea_orm::Value;

use super::entity::instant::Instant;
use crate::prelude::*;

/// The number of bookings of each choice of a time slot that ends after an instant.
pub async fn counts(
    connection: &impl ConnectionTrait,
    (store_id, time_slot_id): (StoreId, TimeSlotId),
    after: Timestamp,
) -> Result<HashMap<TimeWindow, u32>, Error> {
    let select = "SELECT starts_at, ends_at, booked FROM slot_bookings
        WHERE store_id = $1 AND time_slot_id = $2 AND ends_at > $3";
    let after = Instant::from(after).into();
    let parameters = [store_id.0.into(), time_slot_id.0.into(), after];
    let rows = rows::query(connection, select, parameters).await?;
    rows.iter()
        .map(|row| {
            let instant = |index| row.try_get_by_index::<Instant>(index);
            let window = TimeWindow {
                after: instant(0)?.try_into()?,
                before: instant(1)?.try_into()?,
            };
            let booked: i64 = row.try_get_by_index(2)?;
            Ok((window, u32::try_from(booked).unwrap_or(u32::MAX)))
        })
        .collect()
}

/// Books a choice unless it is full: one conditional statement, so that concurrent bookings never
/// exceed the capacity. Returns whether it was booked.
pub async fn book(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    booking: Booking,
    capacity: u32,
) -> Result<bool, Error> {
    let book = "INSERT INTO slot_bookings (store_id, time_slot_id, starts_at, ends_at, booked)
        VALUES ($1, $2, $3, $4, 1)
        ON CONFLICT (store_id, time_slot_id, starts_at, ends_at) DO UPDATE
            SET booked = slot_bookings.booked + 1 WHERE slot_bookings.booked < $5";
    let capacity = i64::from(capacity).into();
    let values = key(store_id, booking).into_iter().chain([capacity]);
    Ok(rows::execute(transaction, book, values).await? > 0)
}

fn key(store_id: StoreId, booking: Booking) -> [Value; 4] {
    [
        store_id.0.into(),
        booking.time_slot_id.0.into(),
        Instant::from(booking.window.after).into(),
        Instant::from(booking.window.before).into(),
    ]
}

/// Releases a booking.
pub async fn release(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    booking: Booking,
) -> Result<(), Error> {
    let release = "UPDATE slot_bookings SET booked = booked - 1
        WHERE store_id = $1 AND time_slot_id = $2 AND starts_at = $3 AND ends_at = $4 AND booked > 0";
    rows::execute(transaction, release, key(store_id, booking)).await?;
    Ok(())
}
