//! The outbox: inserts events and notifications in the transaction that causes them.

use std::{collections::HashSet, time::Duration};

use domain::{
    event::{EventName, Object},
    id::{DeliveryId, EventId, NotificationId, StoreId},
    scheduling::ReceiverHealth,
};
use jiff::Timestamp;
use process::traces::TraceSpan;
use sea_orm::{
    FromQueryResult as _, QueryTrait as _,
    sea_query::{CaseStatement, Expr, Query},
};
use uuid::Uuid;

use super::{LEASED, PENDING, queue};
use crate::{
    ConnectionTrait, Error,
    changes::Changes,
    entity::{
        instant::Instant,
        notification::{Column, Entity},
        webhook,
    },
    events as event_log, lease_clock,
    webhooks::{self, Target},
};

/// A notification before its insert.
#[derive(Clone, Debug)]
pub struct NewNotification {
    pub id: NotificationId,
    pub event_id: EventId,
    pub event: EventName,
    pub store_id: StoreId,
    pub delivery_id: DeliveryId,
    /// Whether its webhook is proven, its receiver healthy, and no earlier notification due. Others
    /// are claimed: they wait for a host, for a share of the capacity, or for their turn.
    pub may_be_pre_leased: bool,
    /// Set if it is inserted pre-leased.
    pub lease_token: Option<Uuid>,
    /// Names the span of the call that caused the event.
    pub traceparent: Option<String>,
    pub target: Target,
}

/// A change of a delivery, and its events.
pub struct DeliveryChange {
    pub store_id: StoreId,
    pub delivery_id: DeliveryId,
    pub changes: Changes,
    pub events: Vec<EventName>,
}

/// Changes a delivery, and inserts its events. Returns a notification for each enabled webhook that
/// subscribes to one of them, for [`insert`].
pub async fn record_events(
    transaction: &impl ConnectionTrait,
    change: DeliveryChange,
    now: Timestamp,
) -> Result<Vec<NewNotification>, Error> {
    let DeliveryChange {
        store_id,
        delivery_id,
        mut changes,
        events,
    } = change;
    if events.is_empty() {
        changes.make(transaction).await?;
        return Ok(Vec::new());
    }
    let events = events.into_iter().map(|name| (EventId::new(), name));
    let events: Vec<_> = events.collect();
    let object = Object::Delivery(delivery_id);
    let rows = events
        .iter()
        .map(|(id, name)| (store_id, *id, name.as_str(), object));
    changes.insert(event_log::insertion(rows, now).into_query());

    let names: Vec<_> = events.iter().map(|(_, name)| *name).collect();
    let subscribers = webhooks::subscribers(store_id, &names).into_query();
    let subscribers = changes.make_and_query(transaction, subscribers).await?;
    let traceparent = TraceSpan::current().and_then(|trace| trace.traceparent());
    let notification = |webhook: webhook::Model| {
        let is_event = |(_, name): &&(EventId, EventName)| name.as_str() == webhook.event;
        let (event_id, event) = *events.iter().find(is_event)?;
        let health = ReceiverHealth::parse(webhook.receiver_health.as_deref());
        let may_be_pre_leased = webhook.is_proven
            && health == ReceiverHealth::Healthy
            && webhook
                .next_due_at
                .is_none_or(|due| due > Instant::from(now));
        Some(Target::try_from(webhook).map(|target| NewNotification {
            id: NotificationId::new(),
            event_id,
            event,
            store_id,
            delivery_id,
            may_be_pre_leased,
            lease_token: None,
            traceparent: traceparent.clone(),
            target,
        }))
    };
    let mut notifications = Vec::new();
    for row in subscribers {
        notifications.extend(notification(webhook::Model::from_query_result(&row, "")?));
    }
    notifications.into_iter().collect()
}

/// Inserts notifications: pre-leased if they come with a lease token, else pending. Skips a pending
/// one whose webhook has been disabled or deleted. Returns whether any was inserted as pending.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    notifications: &[NewNotification],
    lease: Duration,
    now: Timestamp,
) -> Result<bool, Error> {
    let pending: Vec<_> = notifications
        .iter()
        .filter(|notification| notification.lease_token.is_none())
        .map(|notification| notification.target.key())
        .collect();
    let enabled = if pending.is_empty() {
        HashSet::new()
    } else {
        queue::lock_and_move_forward(transaction, &pending, now).await?
    };
    let now = Instant::from(now);
    let mut insert = Query::insert();
    insert.into_table(Entity);
    let mut is_empty = true;
    for notification in notifications {
        let lease_token = notification.lease_token;
        let webhook_id = notification.target.webhook_id;
        let state = match lease_token {
            Some(_) => LEASED,
            // The webhook was deleted or disabled in the meantime.
            None if !enabled.contains(&webhook_id) => continue,
            None => PENDING,
        };
        // One statement text for any mix of leased and pending notifications.
        let lease_expires_at = CaseStatement::new()
            .case(
                Expr::value(lease_token.is_some()),
                lease_clock::expiry(transaction, lease),
            )
            .finally(Expr::value(None::<i64>));
        is_empty = false;
        let traceparent = notification.traceparent.clone();
        let row = [
            (Column::StoreId, Expr::value(notification.store_id.0)),
            (Column::Id, Expr::value(notification.id.0)),
            (Column::EventId, Expr::value(notification.event_id.0)),
            (Column::WebhookId, Expr::value(webhook_id.0)),
            (Column::Event, Expr::value(notification.event.as_str())),
            (Column::DeliveryId, Expr::value(notification.delivery_id.0)),
            (Column::State, Expr::value(state)),
            (Column::Attempts, Expr::value(0_i64)),
            (Column::DueAt, Expr::value(now)),
            (Column::LeaseToken, Expr::value(lease_token)),
            (Column::LeaseExpiresAt, lease_expires_at.into()),
            (Column::CreatedAt, Expr::value(now)),
            (Column::Traceparent, Expr::value(traceparent)),
        ];
        insert
            .columns(row.iter().map(|(column, _)| *column))
            .values_panic(row.map(|(_, value)| value));
    }
    if !is_empty {
        transaction.execute(&insert).await?;
    }
    Ok(!enabled.is_empty())
}
