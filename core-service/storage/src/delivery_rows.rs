//! Rows of deliveries and their tasks, made of domain types and converted to them.

use domain::{
    delivery::{Booking, Delivery, DistanceSource, Route},
    id::{DeliveryId, StoreId, TaskId, TimeSlotId},
    money::Price,
    store,
    task::{Task, TaskDetails, TaskKind, TaskState, TimeWindow},
};
use jiff::Timestamp;
use sea_orm::ActiveValue::Set;

use super::{
    Error,
    entity::{
        delivery, instant,
        json::{AddressJson, MetadataJson, TagsJson},
        task,
    },
};

const PICKUP: &str = "pickup";
const DROPOFF: &str = "dropoff";
const STRAIGHT_LINE: &str = "straight_line";
const OSRM: &str = "osrm";

/// Builds a delivery from its row and those of its tasks.
pub(super) fn assemble(row: &delivery::Model, tasks: Vec<task::Model>) -> Result<Delivery, Error> {
    let (mut pickup, mut dropoff) = (None, None);
    for task in tasks {
        let task = Task::try_from(task)?;
        match task.kind {
            TaskKind::Pickup => pickup = Some(task),
            TaskKind::Dropoff => dropoff = Some(task),
        }
    }
    let incomplete = || Error::inconsistent("deliveries", "a delivery without both tasks");
    Ok(Delivery {
        id: DeliveryId(row.id),
        store_id: StoreId(row.store_id),
        pickup: pickup.ok_or_else(incomplete)?,
        dropoff: dropoff.ok_or_else(incomplete)?,
        route: Route {
            distance_meters: non_negative(row.distance_meters)?,
            duration_seconds: non_negative(row.duration_seconds)?,
            source: distance_source(&row.distance_source)?,
        },
        price: price(row)?,
        retail_price: row.retail_price.clone(),
        booking: booking(row)?,
        created_at: row.created_at.try_into()?,
        cancelled_at: instant::optional(row.cancelled_at)?,
        external_reference: row.external_reference.clone(),
    })
}

pub(super) fn delivery_row(delivery: &Delivery) -> delivery::ActiveModel {
    let (price, booking) = (delivery.price, delivery.booking);
    delivery::ActiveModel {
        store_id: Set(delivery.store_id.0),
        id: Set(delivery.id.0),
        distance_meters: Set(delivery.route.distance_meters.into()),
        duration_seconds: Set(delivery.route.duration_seconds.into()),
        distance_source: Set(match delivery.route.source {
            DistanceSource::StraightLine => STRAIGHT_LINE.to_owned(),
            DistanceSource::Osrm => OSRM.to_owned(),
        }),
        price_net: Set(price.map(|price| price.net)),
        price_tax: Set(price.map(|price| price.tax)),
        price_currency: Set(price.map(|price| price.currency.code().to_owned())),
        // The name of the quote that set the price.
        retail_price: Set(delivery.retail_price.clone()),
        booked_time_slot_id: Set(booking.map(|booking| booking.time_slot_id.0)),
        booked_after: Set(booking.map(|booking| booking.window.after.into())),
        booked_before: Set(booking.map(|booking| booking.window.before.into())),
        created_at: Set(delivery.created_at.into()),
        cancelled_at: Set(delivery.cancelled_at.map(Into::into)),
        external_reference: Set(delivery.external_reference.clone()),
        dropoff_before: Set(Some(delivery.dropoff.window.before.into())),
        completed_at: Set(None),
        erased_at: Set(None),
    }
}

pub(super) fn task_row(store_id: StoreId, task: &Task) -> task::ActiveModel {
    let kind = match task.kind {
        TaskKind::Pickup => PICKUP,
        TaskKind::Dropoff => DROPOFF,
    };
    let details = task.details.clone();
    task::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(task.id.0),
        delivery_id: Set(task.delivery_id.0),
        kind: Set(kind.to_owned()),
        address: Set(AddressJson(task.address.clone())),
        after: Set(task.window.after.into()),
        before: Set(task.window.before.into()),
        time_slot: Set(task.has_time_slot),
        comments: Set(details.comments),
        weight: Set(details.weight),
        packages: Set(details.packages.into()),
        tags: Set(TagsJson(details.tags)),
        metadata: Set(MetadataJson(details.metadata)),
        created_at: Set(task.created_at.into()),
        updated_at: Set(task.updated_at.into()),
        completed_at: Set(completed_at(task.state).map(Into::into)),
        cancelled_at: Set(task.cancelled_at.map(Into::into)),
    }
}

pub(super) fn completed_at(state: TaskState) -> Option<Timestamp> {
    match state {
        TaskState::Todo => None,
        TaskState::Done { completed_at } => Some(completed_at),
    }
}

impl TryFrom<task::Model> for Task {
    type Error = Error;

    fn try_from(row: task::Model) -> Result<Self, Self::Error> {
        Ok(Self {
            id: TaskId(row.id),
            delivery_id: DeliveryId(row.delivery_id),
            kind: match row.kind.as_str() {
                PICKUP => TaskKind::Pickup,
                DROPOFF => TaskKind::Dropoff,
                other => return Err(Error::inconsistent("tasks", format!("kind {other:?}"))),
            },
            state: instant::optional(row.completed_at)?.map_or(TaskState::Todo, |completed_at| {
                TaskState::Done { completed_at }
            }),
            address: row.address.0,
            window: TimeWindow {
                after: row.after.try_into()?,
                before: row.before.try_into()?,
            },
            has_time_slot: row.time_slot,
            details: TaskDetails {
                comments: row.comments,
                weight: row.weight,
                packages: row.packages.into(),
                tags: row.tags.0,
                metadata: row.metadata.0,
            },
            created_at: row.created_at.try_into()?,
            updated_at: row.updated_at.try_into()?,
            cancelled_at: instant::optional(row.cancelled_at)?,
        })
    }
}

fn distance_source(text: &str) -> Result<DistanceSource, Error> {
    match text {
        STRAIGHT_LINE => Ok(DistanceSource::StraightLine),
        OSRM => Ok(DistanceSource::Osrm),
        other => {
            let reason = format!("distance source {other:?}");
            Err(Error::inconsistent("deliveries", reason))
        }
    }
}

fn price(row: &delivery::Model) -> Result<Option<Price>, Error> {
    let (Some(net), Some(tax), Some(code)) = (row.price_net, row.price_tax, &row.price_currency)
    else {
        return Ok(None);
    };
    let currency =
        store::parse_currency(code).map_err(|error| Error::inconsistent("deliveries", error))?;
    Ok(Some(Price { net, tax, currency }))
}

fn booking(row: &delivery::Model) -> Result<Option<Booking>, Error> {
    let (Some(id), Some(after), Some(before)) =
        (row.booked_time_slot_id, row.booked_after, row.booked_before)
    else {
        return Ok(None);
    };
    Ok(Some(Booking {
        time_slot_id: TimeSlotId(id),
        window: TimeWindow {
            after: after.try_into()?,
            before: before.try_into()?,
        },
    }))
}

fn non_negative(number: i64) -> Result<u32, Error> {
    number
        .try_into()
        .map_err(|error| Error::inconsistent("deliveries", error))
}
