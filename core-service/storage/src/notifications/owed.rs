//! What comes to be owed, and what is owed no more.

use std::{collections::HashSet, time::Duration};

use domain::{
    event::{EventName, Object},
    fairness::Standing,
    id::{DeliveryId, EventId, NotificationId, StoreId, WebhookId},
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QuerySelect,
    sea_query::{CaseStatement, Expr, LockBehavior, LockType, Query},
};
use uuid::Uuid;

use super::{DROPPED, LEASED, PENDING, is_leased, is_pending, queue, standing::standing};

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification::{Column, Entity},
    },
    events as log, lease_clock,
    padding::padded,
    webhooks::{self, Target},
};

/// A notification that an event has brought about and that is not written yet.
#[derive(Clone, Debug)]
pub struct Owed {
    pub id: NotificationId,
    pub event_id: EventId,
    pub event: EventName,
    pub store_id: StoreId,
    pub delivery_id: DeliveryId,
    pub standing: Standing,
    /// Whether earlier ones of its webhook are due: then it waits behind them.
    pub has_backlog: bool,
    pub target: Target,
}

/// Writes events of a delivery, and gives a notification for each enabled webhook that asks for
/// one.
pub async fn record_events(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    delivery_id: DeliveryId,
    events: &[EventName],
    now: Timestamp,
) -> Result<Vec<Owed>, Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<_> = events.iter().map(|name| (EventId::new(), *name)).collect();
    let object = Object::Delivery(delivery_id);
    let happened = events
        .iter()
        .map(|(id, name)| (store_id, *id, name.as_str(), object));
    log::insert(transaction, happened, now).await?;

    let names: Vec<_> = events.iter().map(|(_, name)| *name).collect();
    let subscribers = webhooks::for_events(transaction, store_id, &names).await?;
    Ok(subscribers
        .into_iter()
        .filter_map(|subscriber| {
            let (event_id, event) = *events.iter().find(|(_, name)| *name == subscriber.event)?;
            Some(Owed {
                id: NotificationId::new(),
                event_id,
                event,
                store_id,
                delivery_id,
                standing: standing(subscriber.was_slow),
                has_backlog: subscriber
                    .next_due_at
                    .is_some_and(|due| due <= Instant::from(now)),
                target: subscriber.target,
            })
        })
        .collect())
}

/// Writes notifications, each pending, or under a lease from its birth. Whether any is pending.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    owed: &[(Owed, Option<Uuid>)],
    lease: Duration,
    now: Timestamp,
) -> Result<bool, Error> {
    let pending: Vec<_> = owed
        .iter()
        .filter(|(_, lease_token)| lease_token.is_none())
        .map(|(owed, _)| (owed.store_id, owed.target.webhook_id))
        .collect();
    let there = if pending.is_empty() {
        HashSet::new()
    } else {
        queue::hold_places(transaction, &pending, now).await?
    };
    let now = Instant::from(now);
    let mut insert = Query::insert();
    insert.into_table(Entity).columns([
        Column::StoreId,
        Column::Id,
        Column::EventId,
        Column::WebhookId,
        Column::Event,
        Column::DeliveryId,
        Column::State,
        Column::Attempts,
        Column::DueAt,
        Column::LeaseToken,
        Column::LeasedUntil,
        Column::CreatedAt,
    ]);
    let mut is_empty = true;
    for (owed, lease_token) in owed {
        let webhook_id = owed.target.webhook_id;
        let state = match lease_token {
            Some(_) => LEASED,
            // Deleted or disabled meanwhile.
            None if !there.contains(&webhook_id) => continue,
            None => PENDING,
        };
        // One text, however they are mixed.
        let leased_until = CaseStatement::new()
            .case(
                Expr::value(lease_token.is_some()),
                lease_clock::end_of(transaction, lease),
            )
            .finally(Expr::value(None::<i64>));
        is_empty = false;
        insert.values_panic([
            Expr::value(owed.store_id.0),
            Expr::value(owed.id.0),
            Expr::value(owed.event_id.0),
            Expr::value(webhook_id.0),
            Expr::value(owed.event.as_str()),
            Expr::value(owed.delivery_id.0),
            Expr::value(state),
            Expr::value(0_i64),
            Expr::value(now),
            Expr::value(*lease_token),
            leased_until.into(),
            Expr::value(now),
        ]);
    }
    if !is_empty {
        transaction.execute(&insert).await?;
    }
    Ok(!there.is_empty())
}

/// Drops what is owed to a webhook that ends, and what is on its way to it: that is delivered if
/// it is told all the same, and not told again if not. The webhook is locked, or deleted. Of what
/// is pending so many at most, if it is disabled: nobody claims the rest, and
/// [`leftover`](super::leftover) drops it later.
///
/// What is on its way may just be reported or given back by another transaction, which has locked
/// it and wants its webhook next: it finds that ended, and drops it itself.
pub async fn drop_owed(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    webhook_id: WebhookId,
    most: Option<u64>,
    now: Timestamp,
) -> Result<(), Error> {
    // One after the other: each has an index of its own.
    let owner = (store_id, webhook_id);
    drop_pending(transaction, owner, most, now).await?;
    let leased = lock_free(transaction, of(owner).add(is_leased())).await?;
    if leased.is_empty() {
        return Ok(());
    }
    let leased = Condition::all().add(Column::Id.is_in(padded(leased)));
    drop_all(transaction, leased, now).await?;
    Ok(())
}

/// Drops what is pending of a webhook that is locked or deleted: all of it, or so many, the
/// longest due first. How many that were.
pub(super) async fn drop_pending(
    transaction: &impl ConnectionTrait,
    owner: queue::Owner,
    most: Option<u64>,
    now: Timestamp,
) -> Result<u64, Error> {
    let pending = of(owner).add(is_pending());
    let Some(most) = most else {
        return drop_all(transaction, pending, now).await;
    };
    let mut longest_due = Query::select();
    longest_due
        .column(Column::Id)
        .from(Entity)
        .cond_where(pending)
        .order_by(Column::DueAt, Order::Asc)
        .limit(most);
    // By their keys alone, not once more by the index of what is pending, which is long. They
    // stay pending: whoever would change that needs the webhook.
    let (store_id, _) = owner;
    let some = Condition::all()
        .add(Column::StoreId.eq(store_id.0))
        .add(Column::Id.in_subquery(longest_due));
    drop_all(transaction, some, now).await
}

/// Locks those of some notifications that nobody else has locked.
pub(super) async fn lock_free(
    transaction: &impl ConnectionTrait,
    which: Condition,
) -> Result<Vec<Uuid>, Error> {
    let free = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(which)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_tuple()
        .all(transaction)
        .await?;
    Ok(free)
}

fn of((store_id, webhook_id): queue::Owner) -> Condition {
    Condition::all()
        .add(Column::StoreId.eq(store_id.0))
        .add(Column::WebhookId.eq(webhook_id.0))
}

/// How many that were. By its lease, which it keeps, the outcome of what is on its way still
/// finds it.
pub(super) async fn drop_all(
    transaction: &impl ConnectionTrait,
    which: Condition,
    now: Timestamp,
) -> Result<u64, Error> {
    let dropped = Entity::update_many()
        .col_expr(Column::State, Expr::value(DROPPED))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(which)
        .exec(transaction)
        .await?;
    Ok(dropped.rows_affected)
}
