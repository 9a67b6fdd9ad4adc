//! Events, the notifications owed for them, their leases, and the attempts made.
//!
//! A notification is `pending` until a dispatcher holds a lease on it (`leased`), and ends as
//! `delivered`, `given_up` (the schedule is exhausted) or `dropped` (its webhook is no more).
//! Claims and outcomes go by notification, whatever its store: the dispatcher serves them all.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait as _, LockBehavior, LockType, OnConflict, SimpleExpr},
};
use uuid::Uuid;

use super::{
    ConnectionTrait, Error, database_now,
    entity::{
        attempt, event,
        instant::Instant,
        notification::{self, Column, Entity},
    },
    webhooks::{self, Target},
};
use crate::domain::{
    event::EventName,
    id::{DeliveryId, EventId, NotificationId, StoreId, WebhookId},
    notification::{Next, Outcome, after},
};

const PENDING: &str = "pending";
const LEASED: &str = "leased";
const DELIVERED: &str = "delivered";
const GIVEN_UP: &str = "given_up";
const DROPPED: &str = "dropped";

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

/// Whether anything is due: a look that writes nothing.
pub(crate) async fn is_any_due(
    connection: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(due(now))
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// A notification under a lease, with where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) id: NotificationId,
    pub(crate) event: String,
    pub(crate) delivery_id: DeliveryId,
    /// How many attempts have ended.
    pub(crate) attempts: u32,
    pub(crate) target: Target,
}

/// What a claim found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) claimed: Vec<Claimed>,
    /// Whether anything was due, even if all of it was dropped.
    pub(crate) found_any: bool,
}

/// Takes due notifications under a lease, the longest due first. On `PostgreSQL` concurrent
/// claims step past each other's rows; on `SQLite` they follow one another.
pub(crate) async fn claim(
    transaction: &impl ConnectionTrait,
    most: u64,
    lease: (Uuid, Duration),
    now: Timestamp,
) -> Result<Claim, Error> {
    let (lease_token, lease) = lease;
    // Not a subquery of the update: PostgreSQL may run that once a row, and so exceed the limit.
    let longest_due: Vec<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(due(now))
        .order_by_asc(Column::DueAt)
        .limit(most)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_tuple()
        .all(transaction)
        .await?;
    if longest_due.is_empty() {
        return Ok(Claim::default());
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(LEASED))
        .col_expr(Column::LeaseToken, Expr::value(lease_token))
        .col_expr(
            Column::LeasedUntil,
            database_time(
                transaction,
                i64::try_from(lease.as_micros()).unwrap_or(i64::MAX),
            ),
        )
        .filter(Column::Id.is_in(longest_due))
        .exec_with_returning(transaction)
        .await?;

    let webhooks = rows
        .iter()
        .map(|row| (StoreId(row.store_id), WebhookId(row.webhook_id)));
    let targets: HashMap<_, _> = webhooks::targets(transaction, webhooks)
        .await?
        .into_iter()
        .map(|target| (target.webhook_id.0, target))
        .collect();
    let mut claimed = Vec::with_capacity(rows.len());
    let mut dropped = Vec::new();
    for row in rows {
        match targets.get(&row.webhook_id) {
            Some(target) => claimed.push(Claimed {
                id: NotificationId(row.id),
                event: row.event,
                delivery_id: DeliveryId(row.delivery_id),
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                target: target.clone(),
            }),
            None => dropped.push(row.id),
        }
    }
    drop_all(
        transaction,
        Condition::all().add(Column::Id.is_in(dropped)),
        now,
    )
    .await?;
    Ok(Claim {
        claimed,
        found_any: true,
    })
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

async fn drop_all(
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

/// Makes pending again what is still held under given leases.
pub(crate) async fn release(
    transaction: &impl ConnectionTrait,
    held: &[(NotificationId, Uuid)],
) -> Result<(), Error> {
    for (id, lease_token) in held {
        let under_its_lease = Condition::all()
            .add(Column::Id.eq(id.0))
            .add(Column::State.eq(LEASED))
            .add(Column::LeaseToken.eq(*lease_token));
        make_pending(transaction, under_its_lease).await?;
    }
    Ok(())
}

/// Makes what was leased pending again once its lease is over, by the database's clock.
/// How many that were.
pub(crate) async fn release_expired(transaction: &impl ConnectionTrait) -> Result<u64, Error> {
    make_pending(transaction, expired(transaction)).await
}

async fn make_pending(transaction: &impl ConnectionTrait, which: Condition) -> Result<u64, Error> {
    let released = Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(which)
        .exec(transaction)
        .await?;
    Ok(released.rows_affected)
}

/// Whether a lease is over: a look that writes nothing.
pub(crate) async fn is_any_expired(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    let found: Option<Uuid> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(expired(connection))
        .into_tuple()
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// How an attempt under a lease ended.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) id: NotificationId,
    pub(crate) lease_token: Uuid,
    pub(crate) outcome: Outcome,
    /// The HTTP status, if there was an answer.
    pub(crate) status: Option<u16>,
    /// The failure's name; none if it was delivered.
    pub(crate) failure: Option<&'static str>,
    /// Microseconds.
    pub(crate) duration: i64,
    pub(crate) answer: String,
    /// A random number, for the delay of the next attempt.
    pub(crate) jitter: u64,
}

/// An attempt that counted.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) store_id: StoreId,
    pub(crate) number: i64,
    pub(crate) report: Report,
}

/// Writes what becomes of notifications after their attempts, and gives the attempts that
/// counted. A report under a lease that is over changes nothing.
pub(crate) async fn record(
    transaction: &impl ConnectionTrait,
    reports: &[Report],
    now: Timestamp,
) -> Result<Vec<Attempt>, Error> {
    let mut held: HashMap<_, _> = Entity::find()
        .filter(Column::Id.is_in(reports.iter().map(|report| report.id.0)))
        .filter(Column::State.eq(LEASED))
        .lock_exclusive()
        .all(transaction)
        .await?
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    let mut attempts = Vec::with_capacity(reports.len());
    let (mut delivered, mut given_up, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for report in reports {
        // One lease has one outcome: what comes after it is stale.
        let row = held
            .remove(&report.id.0)
            .filter(|row| row.lease_token == Some(report.lease_token));
        let Some(row) = row else {
            tracing::info!(notification.id = %report.id, "an outcome came after its lease");
            continue;
        };
        let number = row.attempts + 1;
        let counted = u32::try_from(number).unwrap_or(u32::MAX);
        match after(&report.outcome, counted, report.jitter, now) {
            Next::Delivered => delivered.push(row.id),
            Next::RetryAt(due_at) => retry(transaction, row.id, due_at).await?,
            Next::GivenUp => given_up.push(row.id),
            Next::Gone => {
                given_up.push(row.id);
                gone.push((StoreId(row.store_id), WebhookId(row.webhook_id)));
            }
        }
        attempts.push(Attempt {
            store_id: StoreId(row.store_id),
            number,
            report: report.clone(),
        });
    }
    finish(transaction, delivered, DELIVERED, now).await?;
    finish(transaction, given_up, GIVEN_UP, now).await?;
    if !gone.is_empty() {
        webhooks::disable(transaction, gone, now).await?;
    }
    Ok(attempts)
}

/// Keeps the attempts, for people to look at.
pub(crate) async fn insert_attempts(
    transaction: &impl ConnectionTrait,
    attempts: &[Attempt],
    now: Timestamp,
) -> Result<(), Error> {
    let rows = attempts.iter().map(|attempt| attempt::ActiveModel {
        store_id: Set(attempt.store_id.0),
        notification_id: Set(attempt.report.id.0),
        number: Set(attempt.number),
        failure: Set(attempt.report.failure.map(str::to_owned)),
        status: Set(attempt.report.status.map(i64::from)),
        duration: Set(attempt.report.duration),
        answer: Set(attempt.report.answer.clone()),
        recorded_at: Set(now.into()),
    });
    attempt::Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

async fn retry(
    transaction: &impl ConnectionTrait,
    id: Uuid,
    due_at: Timestamp,
) -> Result<(), Error> {
    Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::DueAt, Expr::value(Instant::from(due_at)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.eq(id))
        .exec(transaction)
        .await?;
    Ok(())
}

async fn finish(
    transaction: &impl ConnectionTrait,
    ids: Vec<Uuid>,
    state: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeasedUntil, Expr::value(None::<i64>))
        .filter(Column::Id.is_in(ids))
        .exec(transaction)
        .await?;
    Ok(())
}

fn due(now: Timestamp) -> Condition {
    Condition::all()
        .add(Column::State.eq(PENDING))
        .add(Column::DueAt.lte(Instant::from(now)))
}

fn expired(connection: &impl ConnectionTrait) -> Condition {
    Condition::all()
        .add(Column::State.eq(LEASED))
        .add(Expr::col(Column::LeasedUntil).lt(database_time(connection, 0)))
}

/// The database's time so many microseconds from now.
fn database_time(connection: &impl ConnectionTrait, microseconds: i64) -> SimpleExpr {
    Expr::cust(format!("{} + {microseconds}", database_now(connection)))
}

#[cfg(test)]
mod tests;
