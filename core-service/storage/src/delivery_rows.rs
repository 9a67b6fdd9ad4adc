//! Rows of deliveries and their tasks, made of domain types and converted to them.

use domain::{
    courier::{ListKey, Place},
    delivery::{Booking, Delivery, Route},
    id::{CourierId, DeliveryId, StoreId, TaskId, TimeSlotId},
    lifecycle::DeliveryState,
    money::Price,
    store,
    task::{Actor, StateName, Task, TaskDetails, TaskState, TimeWindow},
    tracking::{TrackingLink, TrackingSecret},
};
use sea_orm::ActiveValue::Set;
use uuid::Uuid;

use super::{
    Error,
    entity::{
        delivery, instant,
        json::{AddressJson, MetadataJson, PackagesJson, TagsJson},
        task,
    },
};

/// Builds a delivery from its row and those of its tasks.
pub(super) fn assemble(
    row: &delivery::Model,
    pickup: Option<task::Model>,
    dropoff: Option<task::Model>,
) -> Result<Delivery, Error> {
    let (Some(pickup), Some(dropoff)) = (pickup, dropoff) else {
        let reason = "a delivery without both tasks";
        return Err(Error::inconsistent("deliveries", reason));
    };
    let inconsistent = |what: String| Error::inconsistent("deliveries", what);
    Ok(Delivery {
        id: DeliveryId(row.id),
        store_id: StoreId(row.store_id),
        pickup: pickup.try_into()?,
        dropoff: dropoff.try_into()?,
        route: Route {
            distance_meters: non_negative(row.distance_meters)?,
            duration_seconds: non_negative(row.duration_seconds)?,
            source: row.distance_source.parse().map_err(inconsistent)?,
        },
        price: price(row)?,
        retail_price: row.retail_price.clone(),
        booking: booking(row)?,
        created_at: row.created_at.try_into()?,
        external_reference: row.external_reference.clone(),
        is_erased: row.erased_at.is_some(),
        tracking: tracking(row)?,
    })
}

pub(super) fn delivery_row(delivery: &Delivery) -> delivery::ActiveModel {
    let (price, booking) = (delivery.price, delivery.booking);
    delivery::ActiveModel {
        store_id: Set(delivery.store_id.0),
        id: Set(delivery.id.0),
        distance_meters: Set(delivery.route.distance_meters.into()),
        duration_seconds: Set(delivery.route.duration_seconds.into()),
        distance_source: Set(delivery.route.source.as_str().to_owned()),
        price_net: Set(price.map(|price| price.net)),
        price_tax: Set(price.map(|price| price.tax)),
        price_currency: Set(price.map(|price| price.currency.code().to_owned())),
        // The name of the quote that set the price.
        retail_price: Set(delivery.retail_price.clone()),
        booked_time_slot_id: Set(booking.map(|booking| booking.time_slot_id.0)),
        booked_after: Set(booking.map(|booking| booking.window.after.into())),
        booked_before: Set(booking.map(|booking| booking.window.before.into())),
        created_at: Set(delivery.created_at.into()),
        cancelled_at: Set(None),
        external_reference: Set(delivery.external_reference.clone()),
        dropoff_before: Set(Some(delivery.dropoff.window.before.into())),
        completed_at: Set(None),
        erased_at: Set(None),
        state: Set(None),
        tracking_secret: Set(delivery.tracking.map(|link| link.secret.0.to_vec())),
        tracking_revoked_at: Set(None),
    }
}

/// What may change in the row of a delivery after its creation.
pub(super) fn delivery_changes(delivery: &Delivery) -> delivery::ActiveModel {
    let booking = delivery.booking;
    delivery::ActiveModel {
        store_id: Set(delivery.store_id.0),
        id: Set(delivery.id.0),
        booked_time_slot_id: Set(booking.map(|booking| booking.time_slot_id.0)),
        booked_after: Set(booking.map(|booking| booking.window.after.into())),
        booked_before: Set(booking.map(|booking| booking.window.before.into())),
        cancelled_at: Set(delivery.cancelled_at().map(Into::into)),
        dropoff_before: Set(Some(delivery.dropoff.window.before.into())),
        completed_at: Set(delivery.completed_at().map(Into::into)),
        state: Set(stored_state(delivery).map(|state| state.as_str().to_owned())),
        ..Default::default()
    }
}

/// The state, unless other columns tell it: those of a delivery that is created, completed or cancelled.
pub(super) fn stored_state(delivery: &Delivery) -> Option<DeliveryState> {
    match delivery.state() {
        DeliveryState::Created | DeliveryState::Completed | DeliveryState::Cancelled => None,
        state => Some(state),
    }
}

pub(super) fn task_row(store_id: StoreId, task: &Task) -> task::ActiveModel {
    let details = task.details.clone();
    task::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(task.id.0),
        delivery_id: Set(task.delivery_id.0),
        kind: Set(task.kind.as_str().to_owned()),
        address: Set(AddressJson(task.address.clone())),
        after: Set(task.window.after.into()),
        before: Set(task.window.before.into()),
        time_slot: Set(task.has_time_slot),
        comments: Set(details.comments),
        weight: Set(details.weight),
        packages: Set(PackagesJson(details.packages)),
        tags: Set(TagsJson(details.tags)),
        metadata: Set(MetadataJson(details.metadata)),
        created_at: Set(task.created_at.into()),
        updated_at: Set(task.updated_at.into()),
        completed_at: Set(None),
        cancelled_at: Set(None),
        state: Set(None),
        state_since: Set(None),
        state_set_by: Set(None),
        failure_reason: Set(None),
        courier_id: Set(None),
        list_day: Set(None),
        list_position: Set(None),
        open_incidents: Set(None),
    }
}

/// What may change in a task after its creation.
pub(super) fn changed_columns(store_id: StoreId, task: &Task) -> task::ActiveModel {
    let state = match task.state {
        TaskState::Doing | TaskState::Failed(_) => Some(task.state.name()),
        TaskState::Todo | TaskState::Done | TaskState::Cancelled => None,
    };
    task::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(task.id.0),
        after: Set(task.window.after.into()),
        before: Set(task.window.before.into()),
        time_slot: Set(task.has_time_slot),
        updated_at: Set(task.updated_at.into()),
        completed_at: Set(task.completed_at().map(Into::into)),
        cancelled_at: Set(task.cancelled_at().map(Into::into)),
        state: Set(state.map(|state| state.as_str().to_owned())),
        state_since: Set(Some(task.state_since.into())),
        state_set_by: Set(Some(task.state_set_by.as_str().to_owned())),
        failure_reason: Set(failure_reason(&task.state)),
        courier_id: Set(task.place.map(|place| place.list.courier_id.0)),
        list_day: Set(task.place.map(|place| place.list.day.to_string())),
        list_position: Set(task.place.map(|place| place.position.into())),
        open_incidents: Set((task.open_incidents > 0).then_some(task.open_incidents.into())),
        ..Default::default()
    }
}

pub(super) fn failure_reason(state: &TaskState) -> Option<String> {
    match state {
        TaskState::Failed(reason) => Some(reason.as_str().to_owned()),
        _ => None,
    }
}

/// A task's state, since when, and who set it. A core of an earlier version writes only `completed_at` and
/// `cancelled_at`.
fn state(row: &task::Model) -> Result<(TaskState, instant::Instant, Actor), Error> {
    let inconsistent = |what: String| Error::inconsistent("tasks", what);
    // A core of an earlier version leaves the actor of the state before.
    let set_by = |since, default| match row.state_set_by.as_deref() {
        _ if row.state_since != Some(since) => Ok(default),
        None => Ok(default),
        Some(name) => name.parse().map_err(inconsistent),
    };
    if let Some(since) = row.completed_at {
        // By a program with `tasks:all`, which acts for dispatch.
        return Ok((TaskState::Done, since, set_by(since, Actor::Dispatch)?));
    }
    if let Some(since) = row.cancelled_at {
        return Ok((TaskState::Cancelled, since, set_by(since, Actor::Shop)?));
    }
    let name = row.state.as_deref().map(str::parse);
    let state = match name.transpose().map_err(inconsistent)? {
        None => TaskState::Todo,
        Some(StateName::Doing) => TaskState::Doing,
        Some(StateName::Failed) => {
            let reason = row.failure_reason.as_deref().unwrap_or_default().parse();
            TaskState::Failed(reason.map_err(inconsistent)?)
        }
        Some(other) => return Err(inconsistent(format!("state {other:?}"))),
    };
    let since = row.state_since.unwrap_or(row.created_at);
    Ok((state, since, set_by(since, Actor::Shop)?))
}

impl TryFrom<task::Model> for Task {
    type Error = Error;

    fn try_from(row: task::Model) -> Result<Self, Self::Error> {
        let (state, state_since, state_set_by) = state(&row)?;
        let list = list_key("tasks", row.courier_id, row.list_day.as_deref())?;
        let position = row.list_position.unwrap_or_default().try_into();
        let position = position.map_err(|_| Error::inconsistent("tasks", "a negative position"))?;
        Ok(Self {
            id: TaskId(row.id),
            delivery_id: DeliveryId(row.delivery_id),
            kind: row
                .kind
                .parse()
                .map_err(|error: String| Error::inconsistent("tasks", error))?,
            state,
            state_since: state_since.try_into()?,
            state_set_by,
            address: row.address.0,
            window: TimeWindow {
                after: row.after.try_into()?,
                before: row.before.try_into()?,
            },
            has_time_slot: row.time_slot,
            details: TaskDetails {
                comments: row.comments,
                weight: row.weight,
                packages: row.packages.0,
                tags: row.tags.0,
                metadata: row.metadata.0,
            },
            place: list.map(|list| Place { list, position }),
            open_incidents: row.open_incidents.map_or(Ok(0), non_negative)?,
            created_at: row.created_at.try_into()?,
            updated_at: row.updated_at.try_into()?,
        })
    }
}

/// The list in a row's columns, if any.
pub(super) fn list_key(
    table: &'static str,
    courier_id: Option<Uuid>,
    day: Option<&str>,
) -> Result<Option<ListKey>, Error> {
    let (Some(id), Some(day)) = (courier_id, day) else {
        return Ok(None);
    };
    Ok(Some(ListKey {
        day: day
            .parse()
            .map_err(|error| Error::inconsistent(table, error))?,
        courier_id: CourierId(id),
    }))
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

fn tracking(row: &delivery::Model) -> Result<Option<TrackingLink>, Error> {
    // A program of an earlier version erases a delivery without its secret.
    let secret = row.tracking_secret.as_deref();
    let Some(secret) = secret.filter(|_| row.erased_at.is_none()) else {
        return Ok(None);
    };
    let wrong_length = |_| Error::inconsistent("deliveries", "a tracking secret of another length");
    Ok(Some(TrackingLink {
        secret: TrackingSecret(secret.try_into().map_err(wrong_length)?),
        revoked_at: instant::optional(row.tracking_revoked_at)?,
    }))
}

fn non_negative(number: i64) -> Result<u32, Error> {
    number
        .try_into()
        .map_err(|error| Error::inconsistent("deliveries", error))
}
