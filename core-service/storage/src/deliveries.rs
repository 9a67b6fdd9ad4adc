//! Deliveries with their two tasks, which are written together.

use std::collections::btree_map::{BTreeMap, Entry};

use domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId, TaskId},
    task::Task,
};
use sea_orm::{Iterable as _, JoinType, sea_query::ExprTrait as _};

use super::{
    delivery_rows::{assemble, completed_at},
    entity::{ByPosition as _, delivery, instant, task},
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
    let of_delivery = |column| Expr::col((delivery::Entity, column));
    let of_task = |column| Expr::col((task::Entity, column));
    let is_of_delivery = of_task(task::Column::StoreId)
        .equals((delivery::Entity, delivery::Column::StoreId))
        .and(of_task(task::Column::DeliveryId).equals((delivery::Entity, delivery::Column::Id)));
    // A join, not `deliveries.id IN (subquery)`: PostgreSQL may keep a plan for that which was made
    // while the store had few deliveries, and reads all of them.
    let with_tasks = Query::select()
        .exprs(delivery::Column::iter().map(of_delivery))
        .exprs(task::Column::iter().map(of_task))
        .from_subquery(query.into_query(), delivery::Entity)
        .join(JoinType::LeftJoin, task::Entity, is_of_delivery)
        .take();
    let columns_of_delivery = delivery::Column::iter().count();
    let mut deliveries = BTreeMap::new();
    for row in connection.query_all(&with_tasks).await? {
        let id: Uuid = row.try_get_by_index(delivery::Column::Id as usize)?;
        let (_, tasks) = match deliveries.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert((delivery::Model::at(&row, 0)?, Vec::new())),
        };
        // Null if the delivery has no task, for which `assemble` fails.
        let task: Option<Uuid> =
            row.try_get_by_index(columns_of_delivery + task::Column::Id as usize)?;
        if task.is_some() {
            tasks.push(task::Model::at(&row, columns_of_delivery)?);
        }
    }
    let deliveries = deliveries.into_values();
    deliveries
        .map(|(row, tasks)| assemble(&row, tasks))
        .collect()
}

/// As [`find`], locked until the transaction ends. `SQLite` has a single writer and needs no lock.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    // Not by the query of `find`: `PostgreSQL` does not lock the rows of an outer join.
    let locked = delivery::Entity::find_by_id((store_id.0, id.0))
        .lock_exclusive()
        .one(transaction)
        .await?;
    match locked {
        Some(_) => find(transaction, store_id, id).await,
        None => Ok(None),
    }
}

/// The creation time of the n-th newest, from 0, of a store's deliveries that were created after an
/// instant.
pub async fn nth_newest_creation_time(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    n: u32,
    after: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let created_at: Option<instant::Instant> = delivery::Entity::find()
        .select_only()
        .column(delivery::Column::CreatedAt)
        .filter(delivery::Column::StoreId.eq(store_id.0))
        .filter(delivery::Column::CreatedAt.gt(instant::Instant::from(after)))
        .order_by_desc(delivery::Column::CreatedAt)
        .offset(u64::from(n))
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    created_at.map(Timestamp::try_from).transpose()
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

/// A task of a store.
pub async fn find_task(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: TaskId,
) -> Result<Option<Task>, Error> {
    rows::first(connection, task::Entity::find_by_id((store_id.0, id.0))).await
}

/// A task of any store: for the platform's own programs (`tasks:all`).
pub async fn find_task_of_any_store(
    connection: &impl ConnectionTrait,
    id: TaskId,
) -> Result<Option<(StoreId, Task)>, Error> {
    let row = task::Entity::find()
        .filter(task::Column::Id.eq(id.0))
        .one(connection)
        .await?;
    row.map(|row| Ok((StoreId(row.store_id), Task::try_from(row)?)))
        .transpose()
}

/// Saves the state of a task.
pub async fn save_task_state(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task: &Task,
) -> Result<(), Error> {
    let row = task::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(task.id.0),
        completed_at: Set(completed_at(task.state).map(Into::into)),
        updated_at: Set(task.updated_at.into()),
        cancelled_at: Set(task.cancelled_at.map(Into::into)),
        ..Default::default()
    };
    rows::update(connection, row).await
}

/// Saves when a delivery was completed; lists filter by it.
pub async fn save_completion(
    connection: &impl ConnectionTrait,
    (store_id, id): (StoreId, DeliveryId),
    now: Timestamp,
) -> Result<(), Error> {
    let row = delivery::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(id.0),
        completed_at: Set(Some(now.into())),
        ..Default::default()
    };
    rows::update(connection, row).await
}

/// Saves the cancellation of a delivery and its tasks.
pub async fn save_cancellation(
    connection: &impl ConnectionTrait,
    delivery: &Delivery,
) -> Result<(), Error> {
    let row = delivery::ActiveModel {
        store_id: Set(delivery.store_id.0),
        id: Set(delivery.id.0),
        cancelled_at: Set(delivery.cancelled_at.map(Into::into)),
        ..Default::default()
    };
    rows::update(connection, row).await?;
    for task in [&delivery.pickup, &delivery.dropoff] {
        save_task_state(connection, delivery.store_id, task).await?;
    }
    Ok(())
}
