//! Bookings of time slots with a limited capacity, counted in the transaction that books.

use std::collections::HashMap;

use domain::{
    delivery::Booking,
    id::{StoreId, TimeSlotId},
    task::TimeWindow,
};
use sea_orm::sea_query::ExprTrait as _;

use super::entity::{
    instant::Instant,
    slot_booking::{ActiveModel, Column, Entity},
};
use crate::prelude::*;

/// The number of bookings of each choice of a time slot that ends after an instant.
pub async fn counts(
    connection: &impl ConnectionTrait,
    (store_id, time_slot_id): (StoreId, TimeSlotId),
    after: Timestamp,
) -> Result<HashMap<TimeWindow, u32>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TimeSlotId.eq(time_slot_id.0))
        .filter(Column::EndsAt.gt(Instant::from(after)))
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|row| {
            let window = TimeWindow {
                after: row.starts_at.try_into()?,
                before: row.ends_at.try_into()?,
            };
            Ok((window, u32::try_from(row.booked).unwrap_or(u32::MAX)))
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
    let row = ActiveModel {
        store_id: Set(store_id.0),
        time_slot_id: Set(booking.time_slot_id.0),
        starts_at: Set(booking.window.after.into()),
        ends_at: Set(booking.window.before.into()),
        booked: Set(1),
    };
    let key = [
        Column::StoreId,
        Column::TimeSlotId,
        Column::StartsAt,
        Column::EndsAt,
    ];
    let booked = Expr::col((Entity, Column::Booked));
    let increment = OnConflict::columns(key)
        .value(Column::Booked, booked.clone().add(1))
        .action_and_where(booked.lt(i64::from(capacity)))
        .to_owned();
    let rows = Entity::insert(row)
        .on_conflict(increment)
        .exec_without_returning(transaction)
        .await?;
    Ok(rows > 0)
}

/// Releases a booking.
pub async fn release(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    booking: Booking,
) -> Result<(), Error> {
    let booked = Expr::col(Column::Booked);
    Entity::update_many()
        .col_expr(Column::Booked, booked.clone().sub(1))
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::TimeSlotId.eq(booking.time_slot_id.0))
        .filter(Column::StartsAt.eq(Instant::from(booking.window.after)))
        .filter(Column::EndsAt.eq(Instant::from(booking.window.before)))
        .filter(Column::Booked.gt(0))
        .exec(transaction)
        .await?;
    Ok(())
}
