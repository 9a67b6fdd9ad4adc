//! Deliveries with their two tasks, which are written together.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    delivery::{Booking, Delivery, Route},
    id::{DeliveryId, StoreId, TimeSlotId},
    lifecycle::DeliveryState,
    money::Price,
    store,
    task::{Task, TaskKind, TimeWindow},
    task_event::TaskEvent,
    tracking::{TrackingLink, TrackingSecret},
};
use sea_orm::{DbErr, Iterable as _, JoinType, sea_query::ExprTrait as _};

use super::{
    changes::Changes,
    entity::{
        AddressJson, ByPosition as _, Instant,
        delivery::{self, Column},
        task,
    },
    incidents,
    task_changes::{self, Watched},
    task_events,
    tasks::changed_columns,
};
use crate::prelude::*;

pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    let query = delivery::Entity::find_by_id((store_id.0, id.0));
    Ok(read(connection, query, ALL).await?.pop())
}

/// How many deliveries a statement finds or changes together: the parameters of their rows stay below the 32,766 that
/// `SQLite` permits.
pub(super) const MAX_DELIVERIES: usize = 500;

/// What is read of deliveries and of each of their tasks: the first columns of either table.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    delivery: usize,
    task: usize,
}

pub(super) const ALL: Columns = Columns {
    delivery: Column::CancelledAt as usize,
    task: task::Model::COLUMNS.len(),
};

/// Those of which shops see something: not the booking, the position in a courier's list, and who set the state.
pub(super) const SHOWN_TO_SHOPS: Columns = Columns {
    delivery: Column::BookedTimeSlotId as usize,
    task: task::Column::ListPosition as usize,
};

/// The deliveries that match a query, in no particular order. One statement reads them with their
/// tasks: a reader must not see half of a concurrent cancellation, which changes both.
pub(super) async fn read(
    connection: &impl ConnectionTrait,
    query: Select<delivery::Entity>,
    columns: Columns,
) -> Result<Vec<Delivery>, Error> {
    // A join, not `deliveries.id IN (subquery)`: PostgreSQL may keep a plan for that which was made
    // while the store had few deliveries, and reads all of them.
    let mut select = Query::select();
    select.from_subquery(query.into_query(), delivery::Entity);
    let select = with_tasks(&mut select, JoinType::LeftJoin, columns);
    assemble_all(connection, select, columns).await
}

/// Those of these deliveries that exist, in no particular order.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    keys: impl IntoIterator<Item = (StoreId, DeliveryId)>,
) -> Result<Vec<Delivery>, Error> {
    let keys: Vec<_> = keys.into_iter().collect();
    let mut found = Vec::new();
    for keys in keys.chunks(MAX_DELIVERIES) {
        let mut by_store = BTreeMap::<_, BTreeSet<_>>::new();
        for (store_id, id) in keys {
            by_store.entry(store_id.0).or_default().insert(id.0);
        }
        let any = padded(by_store)
            .into_iter()
            .fold(Condition::any(), |any, (store_id, ids)| {
                let is_of_store = Column::StoreId.eq(store_id);
                any.add(is_of_store.and(Column::Id.is_in(padded(ids))))
            });
        found.extend(read(connection, delivery::Entity::find().filter(any), ALL).await?);
    }
    Ok(found)
}

/// The store of a delivery.
pub async fn find_store(
    connection: &impl ConnectionTrait,
    id: DeliveryId,
) -> Result<Option<StoreId>, Error> {
    // The primary key of deliveries begins with the store.
    let select = "SELECT store_id FROM deliveries
        WHERE store_id IN (SELECT id FROM stores) AND id = $1 LIMIT 1";
    let found = rows::find_value(connection, select, [id.0.into()]).await?;
    Ok(found.map(StoreId))
}

/// As [`find`], locked until the transaction ends. `SQLite` has a single writer and needs no lock.
/// A delivery without tasks is not found.
///
/// The tasks are locked too: after `PostgreSQL` has waited for a lock, it reads the rows that it locks in
/// their newest version, and other rows as they were when the statement began.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    // Not the outer join of `find`, whose tasks cannot be locked.
    let mut select = Query::select();
    select
        .from(delivery::Entity)
        .and_where(of(Column::StoreId).eq(store_id.0))
        .and_where(of(Column::Id).eq(id.0))
        .lock(LockType::Update);
    let select = with_tasks(&mut select, JoinType::InnerJoin, ALL);
    Ok(assemble_all(transaction, select, ALL).await?.pop())
}

/// Reads the deliveries of a statement made by [`with_tasks`].
async fn assemble_all(
    connection: &impl ConnectionTrait,
    select: &SelectStatement,
    columns: Columns,
) -> Result<Vec<Delivery>, Error> {
    let rows = connection.query_all(select).await?;
    let deliveries = rows.iter().map(|row| {
        let delivery = delivery::Model::first(row, 0..columns.delivery)?;
        // Null if there is no such task.
        let read_task = |first: usize| -> Result<_, DbErr> {
            let id: Option<Uuid> = row.try_get_by_index(first + task::Column::Id as usize)?;
            let columns = first..first + columns.task;
            id.map(|_| task::Model::first(row, columns)).transpose()
        };
        let pickup = read_task(columns.delivery)?;
        let dropoff = read_task(columns.delivery + columns.task)?;
        assemble(&delivery, pickup, dropoff)
    });
    deliveries.collect()
}

/// Selects columns of deliveries, then those of their pickups and dropoffs, to be read by position: a row for each
/// delivery, since each column of each row costs.
fn with_tasks(select: &mut SelectStatement, join: JoinType, columns: Columns) -> &SelectStatement {
    select.exprs(Column::iter().take(columns.delivery).map(of));
    for kind in TaskKind::ALL.map(TaskKind::as_str) {
        let column = |column: task::Column| Expr::col((kind, column));
        select.exprs(task::Column::iter().take(columns.task).map(column));
        let is_of_delivery = column(task::Column::StoreId)
            .eq(of(Column::StoreId))
            .and(column(task::Column::DeliveryId).eq(of(Column::Id)))
            .and(Expr::cust(format!("{kind}.kind = '{kind}'")));
        select.join_as(join, task::Entity, kind, is_of_delivery);
    }
    select
}

/// Builds a delivery from its row and those of its tasks.
fn assemble(
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
        revoked_at: Instant::optional(row.tracking_revoked_at)?,
    }))
}

fn non_negative(number: i64) -> Result<u32, Error> {
    number
        .try_into()
        .map_err(|error| Error::inconsistent("deliveries", error))
}

/// A column with the name of its table.
fn of(column: impl ColumnTrait) -> Expr {
    Expr::col(column.as_column_ref())
}

/// The id of the delivery with a store's external reference.
pub async fn find_by_external_reference(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    external_reference: &str,
) -> Result<Option<DeliveryId>, Error> {
    let row = delivery::Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::ExternalReference.eq(external_reference))
        .one(connection)
        .await?;
    Ok(row.map(|row| DeliveryId(row.id)))
}

/// Revokes the link of a delivery's tracking page. Returns whether it had one that was valid.
pub async fn revoke_tracking(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
    now: Timestamp,
) -> Result<bool, Error> {
    let update = "UPDATE deliveries SET tracking_revoked_at = $3 WHERE store_id = $1 AND id = $2
        AND tracking_secret IS NOT NULL AND tracking_revoked_at IS NULL";
    let now = Instant::from(now);
    let values = [store_id.0.into(), id.0.into(), now.into()];
    Ok(rows::execute(transaction, update, values).await? > 0)
}

/// The updates that turn `before` into `after`: of each task that differs, of the columns that lists filter deliveries
/// by, and of the incidents that a reschedule closes. With them, the tasks' new events are inserted.
pub fn changes(
    before: &Delivery,
    after: &Delivery,
    history: &[TaskEvent],
) -> Result<Changes, Error> {
    let mut changes = Changes::default();
    if !history.is_empty() {
        changes.insert(task_events::insertion(after.store_id, history).into_query());
    }
    let tasks = [
        (&before.pickup, &after.pickup),
        (&before.dropoff, &after.dropoff),
    ];
    let is_changed = |(before, after): &(&Task, &Task)| before != after;
    for (before, task) in tasks.into_iter().filter(is_changed) {
        let mut row = changed_columns(after.store_id, task);
        if task.is_corrected(before) {
            row.address = Set(AddressJson(task.address.clone()));
            row.comments = Set(task.details.comments.clone());
        }
        changes.update(row)?;
        if before.open_incidents > task.open_incidents {
            changes.update_all(incidents::closing(after.store_id, task));
        }
    }
    let change = Watched::Delivery(after.store_id, after.id);
    changes.insert(task_changes::insertion([change]).into_query());
    // Not the state itself: a core of an earlier version does not store it.
    let filtered = |delivery: &Delivery| {
        let tasks = [&delivery.pickup, &delivery.dropoff];
        let states = tasks.map(|task| (task.state.clone(), task.place.is_some()));
        (states, delivery.dropoff.window.before)
    };
    if filtered(before) != filtered(after) || before.booking != after.booking {
        changes.update(delivery_changes(after))?;
    }
    Ok(changes)
}

/// What may change in the row of a delivery after its creation.
fn delivery_changes(delivery: &Delivery) -> delivery::ActiveModel {
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
        state: Set(stored_state(delivery)),
        ..Default::default()
    }
}

/// The column `state` of a delivery.
pub(super) fn stored_state(delivery: &Delivery) -> Option<String> {
    match delivery.state() {
        // Which other columns tell.
        DeliveryState::Created | DeliveryState::Completed | DeliveryState::Cancelled => None,
        state => Some(state.as_str().to_owned()),
    }
}
