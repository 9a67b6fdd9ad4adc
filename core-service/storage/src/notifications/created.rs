//! Notifications of new deliveries: inserted once their events have positions, in transactions of their own. What
//! delays these delays neither the numbering of events nor the watchers of tasks.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    event::{Event, EventName, Object},
    id::NotificationId,
};
use sea_orm::sea_query::Query;

use super::{MAX_ROWS, PENDING, queue};
use crate::prelude::*;
use crate::{
    entity::{
        Instant,
        notification::{Column, Entity},
    },
    events, webhooks,
};

/// What a transaction has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notified {
    /// Whether more events may follow.
    pub has_more: bool,
    pub is_any_pending: bool,
}

/// Inserts the pending notifications of the next events, at most `limit` and no more than a statement inserts. `None` if
/// another core is at it.
pub async fn notify_of_created(
    transaction: &impl ConnectionTrait,
    limit: u64,
    now: Timestamp,
) -> Result<Option<Notified>, Error> {
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => "FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let select = format!("SELECT position FROM notified_positions {lock}");
    let found: Option<i64> = rows::find_value(transaction, &select, []).await?;
    let Some(position) = found else {
        return Ok(None);
    };
    let events = events::list_of_all_stores(transaction, position, limit).await?;
    let created: Vec<_> = events.iter().filter(|event| is_creation(event)).collect();
    let stores: BTreeSet<_> = created.iter().map(|event| event.store_id).collect();
    let mut webhooks = BTreeMap::<_, Vec<_>>::new();
    let subscribers = webhooks::subscribers(stores, &[EventName::DeliveryCreated]);
    let keys = if created.is_empty() {
        Vec::new()
    } else {
        webhooks::keys(transaction, subscribers).await?
    };
    if !keys.is_empty() {
        // Once: the order of locks is that of all transactions.
        let enabled = queue::lock_and_move_forward(transaction, &keys, now).await?;
        let keys = keys.into_iter();
        for key in keys.filter(|key| enabled.contains(&key.webhook_id)) {
            webhooks
                .entry(key.store_id)
                .or_default()
                .push(key.webhook_id);
        }
    }

    let mut notifications = Vec::new();
    let mut last = position;
    for event in &events {
        if notifications.len() >= MAX_ROWS {
            break;
        }
        if is_creation(event) {
            let subscribed = webhooks.get(&event.store_id).into_iter().flatten();
            notifications.extend(subscribed.map(|webhook_id| (event, *webhook_id)));
        }
        last = event.position;
    }
    for notifications in notifications.chunks(MAX_ROWS) {
        let mut insert = Query::insert();
        insert.into_table(Entity);
        for (event, webhook_id) in notifications {
            let Object::Delivery(delivery_id) = event.object else {
                continue;
            };
            let row = [
                (Column::StoreId, Expr::value(event.store_id.0)),
                (Column::Id, Expr::value(NotificationId::new().0)),
                (Column::EventId, Expr::value(event.id.0)),
                (Column::WebhookId, Expr::value(webhook_id.0)),
                (Column::Event, Expr::value(event.name.clone())),
                (Column::DeliveryId, Expr::value(delivery_id.0)),
                (Column::State, Expr::value(PENDING)),
                (Column::Attempts, Expr::value(0_i64)),
                (Column::DueAt, Expr::value(Instant::from(now))),
                (Column::CreatedAt, Expr::value(Instant::from(now))),
            ];
            insert
                .columns(row.iter().map(|(column, _)| *column))
                .values_panic(row.map(|(_, value)| value));
        }
        transaction.execute(&insert).await?;
    }
    let update = "UPDATE notified_positions SET position = $1";
    rows::run(transaction, update, [last.into()]).await?;
    Ok(Some(Notified {
        has_more: events.len() as u64 == limit
            || events.last().is_some_and(|event| event.position > last),
        is_any_pending: !notifications.is_empty(),
    }))
}

fn is_creation(event: &Event) -> bool {
    event.name == EventName::DeliveryCreated.as_str()
}
