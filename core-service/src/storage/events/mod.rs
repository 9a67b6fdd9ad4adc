//! Events: written with what caused them, numbered once they are committed, read by number.

mod retention;
mod sequencer;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

pub(crate) use self::{
    retention::{is_any_older, trim},
    sequencer::{Round, give_up, is_any_unnumbered, number},
};
use super::{
    ConnectionTrait, Error,
    entity::{
        event::{ActiveModel, Column, Entity, Model},
        event_counter, event_sequencer,
    },
};
use crate::domain::{
    event::{Event, Object},
    event_log::Extent,
    id::{DeliveryId, EventId, StoreId, WebhookId},
};

const DELIVERIES: &str = "deliveries";
const WEBHOOKS: &str = "webhooks";

/// Writes that something happened; its number comes later.
pub(crate) async fn insert(
    transaction: &impl ConnectionTrait,
    happened: impl IntoIterator<Item = (StoreId, EventId, &str, Object)>,
    now: Timestamp,
) -> Result<(), Error> {
    let rows: Vec<_> = happened
        .into_iter()
        .map(|(store_id, id, name, object)| {
            let (collection, object_id) = match object {
                Object::Delivery(id) => (DELIVERIES, id.0),
                Object::Webhook(id) => (WEBHOOKS, id.0),
            };
            ActiveModel {
                store_id: Set(store_id.0),
                id: Set(id.0),
                name: Set(name.to_owned()),
                object_collection: Set(collection.to_owned()),
                object_id: Set(object_id),
                created_at: Set(now.into()),
                number: Set(None),
                position: Set(None),
            }
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    Entity::insert_many(rows)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// A store's numbered event.
pub(crate) async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: EventId,
) -> Result<Option<Event>, Error> {
    let row = Entity::find_by_id((store_id.0, id.0))
        .filter(Column::Number.is_not_null())
        .one(connection)
        .await?;
    row.map(Event::try_from).transpose()
}

/// A store's events after a number, in order.
pub(crate) async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    after: i64,
    most: u64,
) -> Result<Vec<Event>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::Number.gt(after))
        .order_by_asc(Column::Number)
        .limit(most)
        .all(connection)
        .await?;
    rows.into_iter().map(Event::try_from).collect()
}

/// How far a store's events are numbered and kept.
pub(crate) async fn extent(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Extent, Error> {
    let row = event_counter::Entity::find_by_id(store_id.0)
        .one(connection)
        .await?;
    Ok(row.map_or(Extent::default(), |row| Extent {
        trimmed_to: row.trimmed_to,
        last: row.last_number,
    }))
}

/// The events of all stores after a position, in order: for the platform's own programs.
pub(crate) async fn list_of_all_stores(
    connection: &impl ConnectionTrait,
    after: i64,
    most: u64,
) -> Result<Vec<Event>, Error> {
    let rows = Entity::find()
        .filter(Column::Position.gt(after))
        .order_by_asc(Column::Position)
        .limit(most)
        .all(connection)
        .await?;
    rows.into_iter().map(Event::try_from).collect()
}

/// How far the events of all stores are numbered and kept.
pub(crate) async fn extent_of_all_stores(
    connection: &impl ConnectionTrait,
) -> Result<Extent, Error> {
    let row = event_sequencer::Entity::find_by_id(event_sequencer::ONLY)
        .one(connection)
        .await?;
    Ok(row.map_or(Extent::default(), |row| Extent {
        trimmed_to: row.trimmed_to,
        last: row.last_position,
    }))
}

impl TryFrom<Model> for Event {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let unnumbered = || Error::inconsistent("events", "one without a number");
        Ok(Self {
            id: EventId(row.id),
            store_id: StoreId(row.store_id),
            object: match row.object_collection.as_str() {
                DELIVERIES => Object::Delivery(DeliveryId(row.object_id)),
                WEBHOOKS => Object::Webhook(WebhookId(row.object_id)),
                other => return Err(Error::inconsistent("events", format!("object {other:?}"))),
            },
            name: row.name,
            created_at: row.created_at.try_into()?,
            number: row.number.ok_or_else(unnumbered)?,
            position: row.position.ok_or_else(unnumbered)?,
        })
    }
}
