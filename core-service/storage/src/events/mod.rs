//! The event log: events are inserted in the transaction that causes them, numbered after its
//! commit, and read in order of their numbers.

mod sequencer;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::RangeInclusive};

use domain::{
    event::{Event, LogBounds, Object},
    id::{DeliveryId, EventId, StoreId, WebhookId},
    webhook::Webhook,
};

pub use self::sequencer::{QueueHeads, Waiting, assign_numbers, waiting};
use sea_orm::{InsertMany, Value};

use super::entity::{
    Instant,
    event::{ActiveModel, Column, Entity, Model},
};
use crate::prelude::*;

pub(super) const DELIVERIES: &str = "deliveries";
const WEBHOOKS: &str = "webhooks";

/// An event to insert.
pub(super) struct NewEvent<'a> {
    pub(super) store_id: StoreId,
    pub(super) id: EventId,
    pub(super) name: &'a str,
    pub(super) object: Object,
}

/// Inserts events without numbers, which the sequencer assigns.
pub(super) async fn insert(
    transaction: &impl ConnectionTrait,
    events: impl IntoIterator<Item = NewEvent<'_>>,
    now: Timestamp,
) -> Result<(), Error> {
    // Executes no statement if there is no row.
    insertion(events, now)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// The statement of [`insert`].
pub(super) fn insertion<'a>(
    events: impl IntoIterator<Item = NewEvent<'a>>,
    now: Timestamp,
) -> InsertMany<ActiveModel> {
    let rows = events.into_iter().map(|event| {
        let (collection, object_id) = match event.object {
            Object::Delivery(id) => (DELIVERIES, id.0),
            Object::Webhook(id) => (WEBHOOKS, id.0),
        };
        ActiveModel {
            store_id: Set(event.store_id.0),
            id: Set(event.id.0),
            name: Set(event.name.to_owned()),
            object_collection: Set(collection.to_owned()),
            object_id: Set(object_id),
            created_at: Set(now.into()),
            number: Set(None),
            position: Set(None),
        }
    });
    Entity::insert_many(rows)
}

/// A store's numbered event.
pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: EventId,
) -> Result<Option<Event>, Error> {
    let query = Entity::find_by_id((store_id.0, id.0)).filter(Column::Number.is_not_null());
    rows::first(connection, query).await
}

/// A store's events after a number, in order.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    after: i64,
    limit: u64,
) -> Result<Vec<Event>, Error> {
    let query = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::Number.gt(after))
        .order_by_asc(Column::Number);
    rows::all(connection, query.limit(limit)).await
}

/// The committed events without a number of a webhook's store and name, created in a period, except
/// those whose ids a query returns; the oldest first.
pub(super) async fn unnumbered(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    period: &RangeInclusive<Timestamp>,
    except: SelectStatement,
    limit: u64,
) -> Result<Vec<(EventId, Object, Timestamp)>, Error> {
    let rows = Entity::find()
        .filter(Column::Number.is_null())
        .filter(Column::StoreId.eq(webhook.store_id.0))
        .filter(Column::Name.eq(webhook.event.as_str()))
        .filter(Column::CreatedAt.gte(Instant::from(*period.start())))
        .filter(Column::CreatedAt.lte(Instant::from(*period.end())))
        .filter(Column::Id.not_in_subquery(except))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|row| {
            let object = object(&row)?;
            Ok((EventId(row.id), object, row.created_at.try_into()?))
        })
        .collect()
}

/// The bounds of a store's log.
pub async fn bounds(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<LogBounds, Error> {
    let select = "SELECT retained_after, last_number FROM event_counters WHERE store_id = $1";
    read_bounds(connection, select, &[store_id.0.into()]).await
}

/// The events of all stores after a position, in order: for the platform's own programs.
pub async fn list_of_all_stores(
    connection: &impl ConnectionTrait,
    after: i64,
    limit: u64,
) -> Result<Vec<Event>, Error> {
    let query = Entity::find()
        .filter(Column::Position.gt(after))
        .order_by_asc(Column::Position);
    rows::all(connection, query.limit(limit)).await
}

/// The bounds of the log over all stores.
pub async fn bounds_of_all_stores(connection: &impl ConnectionTrait) -> Result<LogBounds, Error> {
    let select = "SELECT retained_after, last_position FROM event_sequencers";
    read_bounds(connection, select, &[]).await
}

pub(super) async fn read_bounds(
    connection: &impl ConnectionTrait,
    select: &str,
    parameters: &[Value],
) -> Result<LogBounds, Error> {
    let rows = rows::query(connection, select, parameters.to_vec()).await?;
    let Some(row) = rows.first() else {
        return Ok(LogBounds::default());
    };
    Ok(LogBounds {
        retained_after: row.try_get_by_index(0)?,
        last: row.try_get_by_index(1)?,
    })
}

fn object(row: &Model) -> Result<Object, Error> {
    match row.object_collection.as_str() {
        DELIVERIES => Ok(Object::Delivery(DeliveryId(row.object_id))),
        WEBHOOKS => Ok(Object::Webhook(WebhookId(row.object_id))),
        other => Err(Error::inconsistent("events", format!("object {other:?}"))),
    }
}

impl TryFrom<Model> for Event {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let unnumbered = || Error::inconsistent("events", "an event without a number");
        Ok(Self {
            id: EventId(row.id),
            store_id: StoreId(row.store_id),
            object: object(&row)?,
            name: row.name,
            created_at: row.created_at.try_into()?,
            number: row.number.ok_or_else(unnumbered)?,
            position: row.position.ok_or_else(unnumbered)?,
        })
    }
}

/// Removes the oldest events that were created before an instant, so that the remaining log has no gaps. Returns how many.
pub async fn remove_oldest(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<usize, Error> {
    let before = Instant::from(before);
    let oldest: Vec<(i64, Instant)> = Entity::find()
        .select_only()
        .column(Column::Position)
        .column(Column::CreatedAt)
        .filter(Column::Position.is_not_null())
        .order_by_asc(Column::Position)
        .limit(limit)
        .into_tuple()
        .all(transaction)
        .await?;
    let is_older = |(_, created_at): &(_, Instant)| *created_at < before;
    let Some((last, _)) = oldest.into_iter().take_while(is_older).last() else {
        return Ok(0);
    };
    // First: the sequencer, too, locks this row before those of the stores.
    let update = "UPDATE event_sequencers SET retained_after = $1 WHERE retained_after < $1";
    rows::execute(transaction, update, [last.into()]).await?;
    let removed = Entity::delete_many()
        .filter(Column::Position.lte(last))
        .exec_with_returning(transaction)
        .await?;

    let mut retained_after = BTreeMap::new();
    for row in &removed {
        let number = row.number.unwrap_or_default();
        let newest = retained_after.entry(row.store_id).or_insert(number);
        *newest = std::cmp::max(number, *newest);
    }
    for (store_id, number) in retained_after {
        let update = "UPDATE event_counters SET retained_after = $2
            WHERE store_id = $1 AND retained_after < $2";
        rows::execute(transaction, update, [store_id.into(), number.into()]).await?;
    }
    Ok(removed.len())
}
