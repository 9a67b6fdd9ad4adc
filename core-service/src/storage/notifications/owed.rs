//! What comes to be owed, and what is owed no more.

use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait, Condition, EntityTrait, QueryFilter, sea_query::Expr,
};
use uuid::Uuid;

use super::{DROPPED, PENDING};
use crate::{
    domain::{
        event::EventName,
        id::{DeliveryId, EventId, NotificationId, StoreId, WebhookId},
    },
    storage::{
        ConnectionTrait, Error,
        entity::{
            event,
            instant::Instant,
            notification::{self, Column, Entity},
        },
        webhooks,
    },
};

/// Writes events of a delivery, and a notification for each enabled webhook that asks for one.
/// Whether any is owed.
pub(crate) async fn record_events(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    delivery_id: DeliveryId,
    events: &[EventName],
    now: Timestamp,
) -> Result<bool, Error> {
    if events.is_empty() {
        return Ok(false);
    }
    let events: Vec<_> = events.iter().map(|name| (EventId::new(), *name)).collect();
    let rows = events.iter().map(|(id, name)| event::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(id.0),
        name: Set(name.as_str().to_owned()),
        delivery_id: Set(delivery_id.0),
        created_at: Set(now.into()),
        number: Set(None),
    });
    event::Entity::insert_many(rows)
        .exec_without_returning(transaction)
        .await?;

    let names: Vec<_> = events.iter().map(|(_, name)| *name).collect();
    let webhooks = webhooks::for_events(transaction, store_id, &names).await?;
    let rows: Vec<_> = webhooks
        .iter()
        .filter_map(|webhook| {
            let (event_id, _) = events.iter().find(|(_, name)| *name == webhook.event)?;
            Some(notification::ActiveModel {
                store_id: Set(store_id.0),
                id: Set(NotificationId::new().0),
                event_id: Set(event_id.0),
                webhook_id: Set(webhook.id.0),
                event: Set(webhook.event.as_str().to_owned()),
                delivery_id: Set(delivery_id.0),
                state: Set(PENDING.to_owned()),
                attempts: Set(0),
                due_at: Set(now.into()),
                lease_token: Set(None),
                leased_until: Set(None),
                created_at: Set(now.into()),
                finished_at: Set(None),
            })
        })
        .collect();
    if rows.is_empty() {
        return Ok(false);
    }
    Entity::insert_many(rows)
        .exec_without_returning(transaction)
        .await?;
    Ok(true)
}

/// Drops what is owed to a webhook that ends.
pub(crate) async fn drop_owed(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    webhook_id: WebhookId,
    now: Timestamp,
) -> Result<(), Error> {
    let owed = Condition::all()
        .add(Column::StoreId.eq(store_id.0))
        .add(Column::WebhookId.eq(webhook_id.0))
        .add(Column::State.eq(PENDING));
    drop_all(transaction, owed, now).await
}

pub(super) async fn drop_all(
    transaction: &impl ConnectionTrait,
    which: Condition,
    now: Timestamp,
) -> Result<(), Error> {
    Entity::update_many()
        .col_expr(Column::State, Expr::value(DROPPED))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(which)
        .exec(transaction)
        .await?;
    Ok(())
}
