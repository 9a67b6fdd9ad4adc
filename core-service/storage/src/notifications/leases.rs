//! Leases: renewed when a process restarts; released by a dispatcher or when they expire.

use std::time::Duration;

use domain::id::{NotificationId, WebhookId};
use sea_orm::sea_query::{Alias, ExprTrait as _};

use super::{
    LEASED, PENDING,
    cancellation::{cancel, lock_skip_locked},
    is_in, is_leased, queue,
};
use crate::prelude::*;
use crate::{
    entity::notification::{Column, Entity},
    lease_clock,
    webhooks::{self, receiver_hosts},
};

/// A notification and the token of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub id: NotificationId,
    pub token: Uuid,
}

/// Makes notifications pending again that still have these leases. Returns how many.
pub async fn release(
    transaction: &impl ConnectionTrait,
    leases: &[Lease],
    now: Timestamp,
) -> Result<u64, Error> {
    if leases.is_empty() {
        return Ok(0);
    }
    let condition = under_leases(leases.iter().copied()).add(is_in(LEASED));
    make_pending(transaction, condition, now).await
}

/// Makes all leased notifications pending again. Returns how many.
pub async fn release_all(transaction: &impl ConnectionTrait, now: Timestamp) -> Result<u64, Error> {
    make_pending(transaction, Condition::all().add(is_leased()), now).await
}

/// Sets the expiry of all leases to `lease` from now: the previous process had another lease clock,
/// so the stored expiries have no meaning here. Returns how many.
pub async fn renew_all(transaction: &impl ConnectionTrait, lease: Duration) -> Result<u64, Error> {
    let renewed = Entity::update_many()
        .col_expr(
            Column::LeaseExpiresAt,
            lease_clock::expiry(transaction, lease),
        )
        .filter(is_leased())
        .exec(transaction)
        .await?;
    Ok(renewed.rows_affected)
}

/// Makes notifications pending again whose leases have expired by the lease clock. Returns how
/// many.
pub async fn release_expired(
    transaction: &impl ConnectionTrait,
    now: Timestamp,
) -> Result<u64, Error> {
    make_pending(transaction, is_expired(transaction), now).await
}

/// Makes matching notifications pending and due now: moves their webhooks forward in the queue, frees
/// their hosts, and cancels those of webhooks that are not enabled.
async fn make_pending(
    transaction: &impl ConnectionTrait,
    condition: Condition,
    now: Timestamp,
) -> Result<u64, Error> {
    // Another transaction that has locked a row reports, releases or cancels it.
    let ids = lock_skip_locked(transaction, condition).await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeaseExpiresAt, Expr::value(None::<i64>))
        .filter(Column::Id.is_in(padded(ids)))
        .exec_with_returning(transaction)
        .await?;
    let due = rows
        .iter()
        .map(|row| (webhooks::key(row.store_id, row.webhook_id), now))
        .collect();
    let enabled = queue::move_forward(transaction, &due).await?;
    receiver_hosts::free(transaction, rows.iter().map(|row| row.webhook_id)).await?;
    let not_enabled: Vec<_> = rows
        .iter()
        .filter(|row| !enabled.contains(&WebhookId(row.webhook_id)))
        .map(|row| row.id)
        .collect();
    if !not_enabled.is_empty() {
        let condition = Condition::all().add(Column::Id.is_in(padded(not_enabled)));
        cancel(transaction, condition, now).await?;
    }
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}

/// Whether any lease has expired. Writes nothing.
pub async fn is_any_expired(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    rows::exist(connection, Entity::find().filter(is_expired(connection))).await
}

/// Matches notifications whose last lease is one of `leases`, which must not be empty.
pub(super) fn under_leases(leases: impl IntoIterator<Item = Lease>) -> Condition {
    let leases = padded(leases.into_iter().map(|lease| (lease.id.0, lease.token)));
    // A join, not a disjunction, which would be evaluated in full for each row. The ids are
    // repeated: without them, a planner that expects few leased rows compares each of them with
    // every lease.
    let ids = leases.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let mut values = Query::select();
    values
        .expr(Expr::cust("*"))
        .from_values(leases, Alias::new("leases"));
    let lease = Expr::tuple([Expr::col(Column::Id), Expr::col(Column::LeaseToken)]);
    Condition::all()
        .add(Column::Id.is_in(ids))
        .add(lease.in_subquery(values))
}

fn is_expired(connection: &impl ConnectionTrait) -> Condition {
    Condition::all()
        .add(is_leased())
        .add(Expr::col(Column::LeaseExpiresAt).lt(lease_clock::now(connection)))
}
