//! The outbox: inserts events and notifications in the transaction that causes them.

use std::{collections::HashSet, time::Duration};

use domain::{
    event::{EventName, Object},
    id::{DeliveryId, EventId, NotificationId, StoreId},
    scheduling::ReceiverHealth,
    webhook::WebhookKey,
};
use jiff::Timestamp;
use process::traces::TraceSpan;
use sea_orm::{
    FromQueryResult as _, QueryTrait as _,
    sea_query::{CaseStatement, Expr, Query},
};
use uuid::Uuid;

use super::{LEASED, PENDING, claims::ClaimedNotification, leases::Lease, queue};
use crate::{
    ConnectionTrait, Error,
    changes::Changes,
    entity::{
        Instant,
        notification::{Column, Entity},
        webhook,
    },
    events as event_log, lease_clock,
    webhooks::{self, Target},
};

/// A notification before its insert.
#[derive(Clone, Debug)]
pub struct NewNotification {
    /// As it is sent if it is inserted pre-leased.
    pub leased: ClaimedNotification,
    pub event_id: EventId,
    /// Whether its webhook is proven, its receiver healthy, and no earlier notification due. Others
    /// are claimed: they wait for a host, for a share of the capacity, or for their turn.
    pub may_be_pre_leased: bool,
    /// Whether it is inserted pre-leased.
    pub is_pre_leased: bool,
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
    let rows = events.iter().map(|(id, name)| event_log::NewEvent {
        store_id,
        id: *id,
        name: name.as_str(),
        object: Object::Delivery(delivery_id),
    });
    changes.insert(event_log::insertion(rows, now).into_query());

    let names: Vec<_> = events.iter().map(|(_, name)| *name).collect();
    let subscribers = webhooks::subscribers([store_id], &names).into_query();
    let subscribers = changes.make_and_query(transaction, subscribers).await?;
    let traceparent = TraceSpan::current().and_then(|trace| trace.traceparent());
    let mut notifications = Vec::new();
    for row in subscribers {
        let webhook = webhook::Model::from_query_result(&row, "")?;
        let is_event = |(_, name): &&(EventId, EventName)| name.as_str() == webhook.event;
        let Some((event_id, _)) = events.iter().find(is_event) else {
            continue;
        };
        let receiver_health = ReceiverHealth::parse(webhook.receiver_health.as_deref());
        let due_at = webhook.next_due_at;
        let may_be_pre_leased = webhook.is_proven
            && receiver_health == ReceiverHealth::Healthy
            && due_at.is_none_or(|due| due > Instant::from(now));
        notifications.push(NewNotification {
            event_id: *event_id,
            may_be_pre_leased,
            is_pre_leased: false,
            leased: ClaimedNotification {
                lease: Lease {
                    id: NotificationId::new(),
                    token: Uuid::now_v7(),
                },
                event: webhook.event.clone(),
                delivery_id,
                attempts: 0,
                receiver_health,
                traceparent: traceparent.clone(),
                target: Target::try_from(webhook)?,
            },
        });
    }
    Ok(notifications)
}

/// Inserts notifications, pre-leased or pending. Skips a pending one whose webhook has been disabled
/// or deleted. Returns whether any was inserted as pending.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    notifications: &[NewNotification],
    lease: Duration,
    now: Timestamp,
) -> Result<bool, Error> {
    let pending: Vec<_> = notifications
        .iter()
        .filter(|new| !new.is_pre_leased)
        .map(|new| new.leased.target.key)
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
    for new in notifications {
        let (is_leased, notification) = (new.is_pre_leased, &new.leased);
        let WebhookKey {
            store_id,
            webhook_id,
        } = notification.target.key;
        // The webhook was deleted or disabled in the meantime.
        if !is_leased && !enabled.contains(&webhook_id) {
            continue;
        }
        let state = if is_leased { LEASED } else { PENDING };
        let lease_token = is_leased.then_some(notification.lease.token);
        // One statement text for any mix of leased and pending notifications.
        let lease_expires_at = CaseStatement::new()
            .case(
                Expr::value(is_leased),
                lease_clock::expiry(transaction, lease),
            )
            .finally(Expr::value(None::<i64>));
        is_empty = false;
        let row = [
            (Column::StoreId, Expr::value(store_id.0)),
            (Column::Id, Expr::value(notification.lease.id.0)),
            (Column::EventId, Expr::value(new.event_id.0)),
            (Column::WebhookId, Expr::value(webhook_id.0)),
            (Column::Event, Expr::value(notification.event.clone())),
            (Column::DeliveryId, Expr::value(notification.delivery_id.0)),
            (Column::State, Expr::value(state)),
            (Column::Attempts, Expr::value(0_i64)),
            (Column::DueAt, Expr::value(now)),
            (Column::LeaseToken, Expr::value(lease_token)),
            (Column::LeaseExpiresAt, lease_expires_at.into()),
            (Column::CreatedAt, Expr::value(now)),
            (
                Column::Traceparent,
                Expr::value(notification.traceparent.clone()),
            ),
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
