//! Places taken in slots of limited capacity, counted in the transaction that takes one.

use std::collections::HashMap;

use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, QueryFilter,
    sea_query::{Expr, ExprTrait as _, OnConflict},
};

use super::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        slot_booking::{ActiveModel, Column, Entity},
    },
};
use crate::domain::{
    id::{StoreId, TimeSlotId},
    task::TimeWindow,
};

/// A place in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booking {
    pub(crate) store_id: StoreId,
    pub(crate) time_slot_id: TimeSlotId,
    pub(crate) window: TimeWindow,
    /// How many places the slot has.
    pub(crate) capacity: u32,
}

/// How many places are taken in slots that end later than an instant.
pub(crate) async fn counts(
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

/// Takes a place, if one is left: one conditional statement, so that concurrent bookings never
/// exceed the capacity. Whether one was left.
pub(crate) async fn book(
    transaction: &impl ConnectionTrait,
    booking: Booking,
) -> Result<bool, Error> {
    let row = ActiveModel {
        store_id: Set(booking.store_id.0),
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
    let one_more = OnConflict::columns(key)
        .value(Column::Booked, booked.clone().add(1))
        .action_and_where(booked.lt(i64::from(booking.capacity)))
        .to_owned();
    let rows = Entity::insert(row)
        .on_conflict(one_more)
        .exec_without_returning(transaction)
        .await?;
    Ok(rows > 0)
}
