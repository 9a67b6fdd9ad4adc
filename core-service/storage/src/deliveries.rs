//! Deliveries with their two tasks, which are written together.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId, TaskId},
    store::Store,
    task::{Task, TaskKind},
    task_event::TaskEvent,
};
use sea_orm::{DbErr, Iterable as _, JoinType, QueryResult, Value, sea_query::ExprTrait as _};

use super::{
    Storage,
    changes::Changes,
    delivery_rows::{assemble, changed_columns, delivery_changes},
    entity::{ByPosition as _, delivery, instant, json::AddressJson, store, task},
    incidents,
    shared_reads::SharedRow,
    task_changes::{self, Watched},
    task_events,
};
use crate::prelude::*;

pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    let query = delivery::Entity::find_by_id((store_id.0, id.0));
    Ok(read(connection, query).await?.pop())
}

/// The deliveries that match a query, in no particular order. One statement reads them with their
/// tasks: a reader must not see half of a concurrent cancellation, which changes both.
pub(super) async fn read(
    connection: &impl ConnectionTrait,
    query: Select<delivery::Entity>,
) -> Result<Vec<Delivery>, Error> {
    // A join, not `deliveries.id IN (subquery)`: PostgreSQL may keep a plan for that which was made
    // while the store had few deliveries, and reads all of them.
    let mut select = Query::select();
    select.from_subquery(query.into_query(), delivery::Entity);
    assemble_all(connection, with_tasks(&mut select, JoinType::LeftJoin)).await
}

/// Those of these deliveries that exist, in no particular order.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    keys: impl IntoIterator<Item = (StoreId, DeliveryId)>,
) -> Result<Vec<Delivery>, Error> {
    let mut by_store = BTreeMap::<_, BTreeSet<_>>::new();
    for (store_id, id) in keys {
        by_store.entry(store_id.0).or_default().insert(id.0);
    }
    if by_store.is_empty() {
        return Ok(Vec::new());
    }
    let any = padded(by_store)
        .into_iter()
        .fold(Condition::any(), |any, (store_id, ids)| {
            let is_of_store = delivery::Column::StoreId.eq(store_id);
            any.add(is_of_store.and(delivery::Column::Id.is_in(padded(ids))))
        });
    read(connection, delivery::Entity::find().filter(any)).await
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
        .and_where(of(delivery::Column::StoreId).eq(store_id.0))
        .and_where(of(delivery::Column::Id).eq(id.0))
        .lock(LockType::Update);
    let found = assemble_all(transaction, with_tasks(&mut select, JoinType::InnerJoin));
    Ok(found.await?.pop())
}

/// Reads the deliveries of a statement made by [`with_tasks`].
async fn assemble_all(
    connection: &impl ConnectionTrait,
    select: &SelectStatement,
) -> Result<Vec<Delivery>, Error> {
    let (of_delivery, of_task) = (
        delivery::Column::iter().count(),
        task::Column::iter().count(),
    );
    let rows = connection.query_all(select).await?;
    let deliveries = rows.iter().map(|row| {
        let delivery = delivery::Model::at(row, 0)?;
        // Null if there is no such task.
        let id: Option<Uuid> = row.try_get_by_index(of_delivery + task::Column::Id as usize)?;
        let pickup = id.map(|_| task::Model::at(row, of_delivery)).transpose()?;
        let first = of_delivery + of_task;
        let id: Option<Uuid> = row.try_get_by_index(first + task::Column::Id as usize)?;
        let dropoff = id.map(|_| task::Model::at(row, first)).transpose()?;
        assemble(&delivery, pickup, dropoff)
    });
    deliveries.collect()
}

/// Selects all columns of deliveries, then those of their pickups and dropoffs, to be read by position: a row for each
/// delivery, since each column of each row costs.
fn with_tasks(select: &mut SelectStatement, join: JoinType) -> &SelectStatement {
    select.exprs(delivery::Column::iter().map(of));
    for kind in TaskKind::ALL.map(TaskKind::as_str) {
        let column = |column: task::Column| Expr::col((kind, column));
        select.exprs(task::Column::iter().map(column));
        let is_of_delivery = column(task::Column::StoreId)
            .eq(of(delivery::Column::StoreId))
            .and(column(task::Column::DeliveryId).eq(of(delivery::Column::Id)))
            .and(Expr::cust(format!("{kind}.kind = '{kind}'")));
        select.join_as(join, task::Entity, kind, is_of_delivery);
    }
    select
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
        .filter(delivery::Column::StoreId.eq(store_id.0))
        .filter(delivery::Column::ExternalReference.eq(external_reference))
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
    let now = instant::Instant::from(now);
    let values = [store_id.0.into(), id.0.into(), now.into()];
    Ok(rows::execute(transaction, update, values).await? > 0)
}

/// A task of a store.
pub async fn find_task(
    storage: &Storage,
    store_id: StoreId,
    id: TaskId,
) -> Result<Option<Task>, Error> {
    storage.tasks.find((store_id.0, id.0)).await
}

impl SharedRow for Task {
    /// Its store and id.
    type Key = (Uuid, Uuid);

    const FROM: &'static str = "tasks";
    const KEY: &'static [&'static str] = &["tasks.store_id", "tasks.id"];

    fn columns() -> Vec<String> {
        rows::columns::<task::Entity>().collect()
    }

    fn values((store_id, id): &Self::Key) -> Vec<Value> {
        vec![(*store_id).into(), (*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        Ok((
            row.try_get_by_index(task::Column::StoreId as usize)?,
            row.try_get_by_index(task::Column::Id as usize)?,
        ))
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        task::Model::at(row, 0)?.try_into()
    }
}

/// A task of any store with its store: for the platform's own programs (`tasks:all`).
pub async fn find_task_of_any_store(
    storage: &Storage,
    id: TaskId,
) -> Result<Option<(Store, Task)>, Error> {
    storage.tasks_of_any_store.find(id.0).await
}

impl SharedRow for (Store, Task) {
    type Key = Uuid;

    const FROM: &'static str = "tasks JOIN stores ON stores.id = tasks.store_id";
    const KEY: &'static [&'static str] = &["tasks.id"];

    fn columns() -> Vec<String> {
        let stores = rows::columns::<store::Entity>();
        rows::columns::<task::Entity>().chain(stores).collect()
    }

    fn values(id: &Self::Key) -> Vec<Value> {
        vec![(*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        row.try_get_by_index(task::Column::Id as usize)
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        let store = store::Model::at(row, task::Column::iter().count())?;
        Ok((store.try_into()?, Task::read(row)?))
    }
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
