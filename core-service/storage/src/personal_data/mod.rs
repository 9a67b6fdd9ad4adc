//! Erases the personal data of deliveries, and finds deliveries to erase.

#[cfg(test)]
mod tests;

use domain::{
    address::LatLng,
    id::{DeliveryId, StoreId, TaskId},
    task::Task,
};
use sea_orm::DerivePartialModel;

use crate::entity::{
    delivery,
    instant::Instant,
    json::{AddressJson, MetadataJson, TagsJson},
    task,
};
use crate::prelude::*;

/// The position of a task in a search, which reads tasks by store and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub store_id: StoreId,
    pub task_id: TaskId,
}

/// Erases the personal data in a delivery's tasks. Returns the points of their addresses.
pub async fn erase(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Vec<LatLng>, Error> {
    // First, to lock the delivery: a concurrent cancellation or completion, whose response has its
    // addresses, commits before this continues, or reads the erased tasks.
    let update = "UPDATE deliveries SET erased_at = $3 WHERE store_id = $1 AND id = $2";
    let values = [store_id.0.into(), id.0.into(), Instant::from(now).into()];
    rows::execute(transaction, update, values).await?;
    let rows = task::Entity::find()
        .filter(task::Column::StoreId.eq(store_id.0))
        .filter(task::Column::DeliveryId.eq(id.0))
        .all(transaction)
        .await?;
    let mut points = Vec::new();
    for row in rows {
        let mut task = Task::try_from(row)?;
        points.push(task.address.lat_lng);
        task.erase();
        let row = task::ActiveModel {
            store_id: Set(store_id.0),
            id: Set(task.id.0),
            address: Set(AddressJson(task.address)),
            comments: Set(task.details.comments),
            tags: Set(TagsJson(task.details.tags)),
            metadata: Set(MetadataJson(task.details.metadata)),
            ..Default::default()
        };
        rows::update(transaction, row).await?;
    }
    Ok(points)
}

/// Erases the receivers' responses to a delivery's notifications: they may repeat its data.
pub async fn erase_response_bodies(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    id: DeliveryId,
) -> Result<(), Error> {
    let erase = "UPDATE attempts SET response_body = ''
        WHERE store_id = $1 AND notification_id IN (
            SELECT id FROM notifications WHERE store_id = $1 AND delivery_id = $2
        )";
    rows::run(transaction, erase, [store_id.0.into(), id.0.into()]).await
}

/// Deletes the cached geocodes of these points.
pub async fn delete_geocodes(
    transaction: &impl ConnectionTrait,
    points: &[LatLng],
) -> Result<(), Error> {
    let delete = "DELETE FROM geocodes WHERE CAST(place ->> 'latitude' AS DOUBLE PRECISION) = $1
        AND CAST(place ->> 'longitude' AS DOUBLE PRECISION) = $2";
    for point in points {
        let values = [point.latitude().into(), point.longitude().into()];
        rows::execute(transaction, delete, values).await?;
    }
    Ok(())
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

/// Deliveries of all stores that are not erased, and that were created, and whose dropoff ended, at
/// or before an instant.
pub async fn find_past_retention(
    connection: &impl ConnectionTrait,
    cutoff: Timestamp,
    limit: u64,
) -> Result<Vec<(StoreId, DeliveryId)>, Error> {
    let cutoff = Instant::from(cutoff);
    let found: Vec<(Uuid, Uuid)> = delivery::Entity::find()
        .select_only()
        .columns([delivery::Column::StoreId, delivery::Column::Id])
        .filter(delivery::Column::ErasedAt.is_null())
        .filter(delivery::Column::DropoffBefore.lte(cutoff))
        .filter(delivery::Column::CreatedAt.lte(cutoff))
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
