//! Leases: what is due is taken under one, and given back when it ends without an outcome.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait as _, LockBehavior, LockType, SimpleExpr},
};
use uuid::Uuid;

use super::{LEASED, PENDING, owed};
use crate::{
    domain::id::{DeliveryId, NotificationId, StoreId, WebhookId},
    storage::{
        ConnectionTrait, Error, database_now,
        entity::{
            instant::Instant,
            notification::{Column, Entity},
        },
        webhooks::{self, Target},
    },
};

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
    owed::drop_all(
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

/// Makes pending again whatever is leased.
pub(crate) async fn release_all(transaction: &impl ConnectionTrait) -> Result<u64, Error> {
    make_pending(transaction, Condition::all().add(Column::State.eq(LEASED))).await
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
