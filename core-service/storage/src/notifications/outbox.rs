//! The outbox: inserts events and notifications in the transaction that causes them.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

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
    sea_query::{CaseStatement, Expr, InsertStatement, Query},
};
use uuid::Uuid;

use super::{LEASED, MAX_ROWS, PENDING, claims::ClaimedNotification, leases::Lease, queue};
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

/// An event of a delivery before its insert.
pub(crate) struct DeliveryEvent {
    store_id: StoreId,
    delivery_id: DeliveryId,
    id: EventId,
    name: EventName,
}

impl DeliveryEvent {
    pub(crate) fn new(store_id: StoreId, delivery_id: DeliveryId, name: EventName) -> Self {
        Self {
            store_id,
            delivery_id,
            id: EventId::new(),
            name,
        }
    }

    fn logged(&self) -> event_log::NewEvent<'_> {
        event_log::NewEvent {
            store_id: self.store_id,
            id: self.id,
            name: self.name.as_str(),
            object: Object::Delivery(self.delivery_id),
        }
    }
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
    let events = events.into_iter();
    let events = events.map(|name| DeliveryEvent::new(store_id, delivery_id, name));
    let events: Vec<_> = events.collect();
    let rows = events.iter().map(DeliveryEvent::logged);
    changes.insert(event_log::insertion(rows, now).into_query());

    let names: Vec<_> = events.iter().map(|event| event.name).collect();
    let subscribers = webhooks::subscribers([store_id], &names).into_query();
    let subscribers = changes.make_and_query(transaction, subscribers).await?;
    let subscribers = subscribers
        .iter()
        .map(|row| webhook::Model::from_query_result(row, ""));
    let subscribers = subscribers.collect::<Result<_, _>>()?;
    notifications_of(&events, subscribers, now)
}

/// Inserts events of deliveries. Returns notifications as [`record_events`] does.
pub(crate) async fn record_events_of_many(
    transaction: &impl ConnectionTrait,
    events: &[DeliveryEvent],
    now: Timestamp,
) -> Result<Vec<NewNotification>, Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    for events in events.chunks(MAX_ROWS) {
        event_log::insert(transaction, events.iter().map(DeliveryEvent::logged), now).await?;
    }
    let stores: BTreeSet<_> = events.iter().map(|event| event.store_id).collect();
    let mut names: Vec<_> = events.iter().map(|event| event.name).collect();
    names.dedup();
    let subscribers = webhooks::subscribers(stores, &names);
    notifications_of(events, subscribers.all(transaction).await?, now)
}

/// A notification for each event that an enabled webhook of its store subscribes to.
fn notifications_of(
    events: &[DeliveryEvent],
    subscribers: Vec<webhook::Model>,
    now: Timestamp,
) -> Result<Vec<NewNotification>, Error> {
    let traceparent = TraceSpan::current().and_then(|trace| trace.traceparent());
    let mut notifications = Vec::new();
    for webhook in subscribers {
        let receiver_health = ReceiverHealth::parse(webhook.receiver_health.as_deref());
        let due_at = webhook.next_due_at;
        let may_be_pre_leased = webhook.is_proven
            && receiver_health == ReceiverHealth::Healthy
            && due_at.is_none_or(|due| due > Instant::from(now));
        let name = webhook.event.clone();
        let target = Target::try_from(webhook)?;
        let is_subscribed = |event: &&DeliveryEvent| {
            event.store_id == target.key.store_id && event.name.as_str() == name
        };
        for event in events.iter().filter(is_subscribed) {
            notifications.push(NewNotification {
                event_id: event.id,
                may_be_pre_leased,
                is_pre_leased: false,
                leased: ClaimedNotification {
                    lease: Lease {
                        id: NotificationId::new(),
                        token: Uuid::now_v7(),
                    },
                    event: name.clone(),
                    delivery_id: event.delivery_id,
                    attempts: 0,
                    receiver_health,
                    traceparent: traceparent.clone(),
                    target: target.clone(),
                },
            });
        }
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
    // Unless the webhook was deleted or disabled in the meantime.
    let is_inserted = |new: &&NewNotification| {
        new.is_pre_leased || enabled.contains(&new.leased.target.key.webhook_id)
    };
    let inserted: Vec<_> = notifications.iter().filter(is_inserted).collect();
    for notifications in inserted.chunks(MAX_ROWS) {
        transaction
            .execute(&insertion(transaction, notifications, lease, now))
            .await?;
    }
    Ok(!enabled.is_empty())
}

fn insertion(
    transaction: &impl ConnectionTrait,
    notifications: &[&NewNotification],
    lease: Duration,
    now: Instant,
) -> InsertStatement {
    let mut insert = Query::insert();
    insert.into_table(Entity);
    for new in notifications {
        let (is_leased, notification) = (new.is_pre_leased, &new.leased);
        let WebhookKey {
            store_id,
            webhook_id,
        } = notification.target.key;
        let state = if is_leased { LEASED } else { PENDING };
        let lease_token = is_leased.then_some(notification.lease.token);
        // One statement text for any mix of leased and pending notifications.
        let lease_expires_at = CaseStatement::new()
            .case(
                Expr::value(is_leased),
                lease_clock::expiry(transaction, lease),
            )
            .finally(Expr::value(None::<i64>));
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
    insert
}
