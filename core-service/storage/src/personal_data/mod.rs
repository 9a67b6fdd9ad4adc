//! Erases the personal data of deliveries, and finds deliveries to erase.

#[cfg(test)]
mod tests;

use domain::{
    id::{DeliveryId, StoreId, TaskId},
    task::Task,
};
use sea_orm::{
    DerivePartialModel,
    sea_query::{ExprTrait as _, Query},
};

use crate::prelude::*;
use crate::{
    entity::{AddressJson, Instant, MetadataJson, TagsJson, delivery, task},
    images, incidents,
    task_changes::{self, Watched},
    task_events,
    tasks::failure_reason,
};

/// The position of a task in a search, which reads tasks by store and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub store_id: StoreId,
    pub task_id: TaskId,
}

/// Which deliveries are past their retention.
#[derive(Clone, Copy, Debug)]
pub struct PastRetention {
    /// Those created, and whose dropoff ended, at or before this instant.
    pub ended: Timestamp,
    /// Unless a task was changed after this one: then the response to the command may be stored.
    pub changed: Timestamp,
}

/// Erases the personal data in a delivery's tasks, their history, their incidents and their images.
pub async fn erase(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
    now: Timestamp,
) -> Result<(), Error> {
    // First, to lock the delivery: a concurrent cancellation or completion, whose response has its
    // addresses, commits before this continues, or reads the erased tasks.
    let update = "UPDATE deliveries SET erased_at = $3, tracking_secret = NULL
        WHERE store_id = $1 AND id = $2";
    let values = [store_id.0.into(), id.0.into(), Instant::from(now).into()];
    rows::execute(transaction, update, values).await?;
    erase_tasks(transaction, store_id, id).await
}

/// Like [`erase`], unless the delivery was changed since [`find_past_retention`] found it.
pub async fn erase_past_retention(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
    past: PastRetention,
    now: Timestamp,
) -> Result<(), Error> {
    let update = "UPDATE deliveries SET erased_at = $3, tracking_secret = NULL
        WHERE store_id = $1 AND id = $2 AND dropoff_before <= $4 AND NOT EXISTS (
            SELECT 1 FROM tasks WHERE store_id = $1 AND delivery_id = $2 AND updated_at > $5
        )";
    let instants = [now, past.ended, past.changed].map(|instant| Instant::from(instant).into());
    let values = [store_id.0.into(), id.0.into()].into_iter().chain(instants);
    if rows::execute(transaction, update, values).await? > 0 {
        erase_tasks(transaction, store_id, id).await?;
    }
    Ok(())
}

async fn erase_tasks(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<(), Error> {
    let rows = task::Entity::find()
        .filter(task::Column::StoreId.eq(store_id.0))
        .filter(task::Column::DeliveryId.eq(id.0))
        .all(transaction)
        .await?;
    task_events::erase(transaction, store_id, rows.iter().map(|row| row.id)).await?;
    incidents::erase(transaction, store_id, rows.iter().map(|row| row.id)).await?;
    images::erase(transaction, store_id, rows.iter().map(|row| row.id)).await?;
    for row in rows {
        let mut task = Task::try_from(row)?;
        task.erase();
        let row = task::ActiveModel {
            store_id: Set(store_id.0),
            id: Set(task.id.0),
            address: Set(AddressJson(task.address)),
            comments: Set(task.details.comments),
            tags: Set(TagsJson(task.details.tags)),
            metadata: Set(MetadataJson(task.details.metadata)),
            failure_reason: Set(failure_reason(&task.state)),
            images: Set(None),
            ..Default::default()
        };
        rows::update(transaction, row).await?;
    }
    let change = task_changes::insertion([Watched::Delivery(store_id, id)]);
    change.exec_without_returning(transaction).await?;
    Ok(())
}

/// Erases the receivers' responses to a delivery's notifications: they may repeat its data.
pub async fn erase_response_bodies(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<(), Error> {
    // In pairs: with a list of ids alone, PostgreSQL may read all rows of a large store.
    let erase = "UPDATE attempts SET response_body = ''
        WHERE store_id = $1 AND response_body <> '' AND (store_id, notification_id) IN (
            SELECT store_id, id FROM notifications WHERE store_id = $1 AND delivery_id = $2
        )";
    rows::run(transaction, erase, [store_id.0.into(), id.0.into()]).await
}

/// Deletes results of geocoders, with addresses, that earlier releases stored: so many at most. Returns how many.
pub async fn delete_geocodes(transaction: &impl ConnectionTrait, limit: u64) -> Result<u64, Error> {
    let delete = "DELETE FROM geocodes WHERE key IN (SELECT key FROM geocodes LIMIT $1)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows::execute(transaction, delete, [limit.into()]).await
}

/// The columns of a task that a search reads.
#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "task::Entity")]
struct SearchedTask {
    store_id: Uuid,
    id: Uuid,
    delivery_id: Uuid,
    address: AddressJson,
}

/// Searches the next tasks of all stores, `limit` at most, for a telephone number (E.164). Returns
/// the deliveries found, each with the position of its task, and the position after which the
/// search continues; `None` if fewer tasks than the limit were left.
pub async fn search_telephone(
    connection: &impl ConnectionTrait,
    telephone: &str,
    after: Option<Position>,
    limit: u64,
) -> Result<(Vec<(Position, DeliveryId)>, Option<Position>), Error> {
    let key = [task::Column::StoreId, task::Column::Id];
    let after = after.map(|after| [after.store_id.0.into(), after.task_id.0.into()]);
    let query = rows::after(task::Entity::find(), key, after).limit(limit);
    let tasks: Vec<SearchedTask> = query.into_partial_model().all(connection).await?;
    let position = |task: &SearchedTask| Position {
        store_id: StoreId(task.store_id),
        task_id: TaskId(task.id),
    };
    let last = tasks.last().filter(|_| tasks.len() as u64 == limit);
    let last = last.map(position);
    let found = tasks
        .iter()
        .filter(|task| task.address.0.telephone.as_deref() == Some(telephone))
        .map(|task| (position(task), DeliveryId(task.delivery_id)))
        .collect();
    Ok((found, last))
}

/// Deliveries of all stores that are past their retention and not erased.
pub async fn find_past_retention(
    connection: &impl ConnectionTrait,
    past: PastRetention,
    limit: u64,
) -> Result<Vec<(StoreId, DeliveryId)>, Error> {
    let cutoff = Instant::from(past.ended);
    let of_delivery = |column, other| {
        let other = Expr::col((delivery::Entity, other));
        Expr::col((task::Entity, column)).eq(other)
    };
    let updated = Expr::col((task::Entity, task::Column::UpdatedAt));
    let changed = Query::select()
        .expr(Expr::val(1))
        .from(task::Entity)
        .and_where(of_delivery(
            task::Column::StoreId,
            delivery::Column::StoreId,
        ))
        .and_where(of_delivery(task::Column::DeliveryId, delivery::Column::Id))
        .and_where(updated.gt(Instant::from(past.changed)))
        .to_owned();
    let found: Vec<(Uuid, Uuid)> = delivery::Entity::find()
        .select_only()
        .columns([delivery::Column::StoreId, delivery::Column::Id])
        .filter(delivery::Column::ErasedAt.is_null())
        .filter(delivery::Column::DropoffBefore.lte(cutoff))
        .filter(delivery::Column::CreatedAt.lte(cutoff))
        .filter(Expr::exists(changed).not())
        .order_by_asc(delivery::Column::DropoffBefore)
        .limit(limit)
        .into_tuple()
        .all(connection)
        .await?;
    let found = found.into_iter();
    Ok(found
        .map(|(store_id, id)| (StoreId(store_id), DeliveryId(id)))
        .collect())
}
