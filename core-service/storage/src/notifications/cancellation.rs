//! Cancels the notifications of webhooks that are disabled or deleted.

use domain::webhook::WebhookKey;
use sea_orm::Order;

use super::{CANCELLED, is_leased, is_pending, of_webhook};
use crate::entity::{
    Instant,
    notification::{Column, Entity},
};
use crate::prelude::*;

/// Cancels the pending and leased notifications of a webhook that the caller has locked or
/// deleted. A leased one still becomes delivered if its attempt succeeds, and is not retried if it
/// fails. For a disabled webhook, `limit` is the maximum of pending ones to cancel: claims skip the
/// rest, and [`backlog_cleanup`](super::backlog_cleanup) cancels them later.
///
/// Another transaction may be reporting or releasing a leased notification: it has locked that
/// row and waits for the webhook. It then finds the webhook disabled, and cancels the row itself.
pub async fn cancel_notifications(
    transaction: &impl ConnectionTrait,
    webhook: WebhookKey,
    limit: Option<u64>,
    now: Timestamp,
) -> Result<(), Error> {
    // Two statements: pending and leased notifications have an index each.
    cancel_pending(transaction, webhook, limit, now).await?;
    let leased = lock_skip_locked(transaction, of_webhook(webhook).add(is_leased())).await?;
    if leased.is_empty() {
        return Ok(());
    }
    let leased = Condition::all().add(Column::Id.is_in(padded(leased)));
    cancel(transaction, leased, now).await?;
    Ok(())
}

/// Cancels the pending notifications of a webhook that is locked or deleted: all, or at most
/// `limit`, earliest due first. Returns how many.
pub(super) async fn cancel_pending(
    transaction: &impl ConnectionTrait,
    webhook: WebhookKey,
    limit: Option<u64>,
    now: Timestamp,
) -> Result<u64, Error> {
    let pending = of_webhook(webhook).add(is_pending());
    let Some(limit) = limit else {
        return cancel(transaction, pending, now).await;
    };
    let mut earliest_due = Query::select();
    earliest_due
        .column(Column::Id)
        .from(Entity)
        .cond_where(pending)
        .order_by(Column::DueAt, Order::Asc)
        .limit(limit);
    // Without a condition on the state, which would make a planner scan the long index of pending
    // notifications. The state cannot change in between: that requires a lock on the webhook.
    let batch = Condition::all()
        .add(Column::StoreId.eq(webhook.store_id.0))
        .add(Column::Id.in_subquery(earliest_due));
    cancel(transaction, batch, now).await
}

/// Cancels notifications and returns how many. Each keeps its lease token, so that the outcome of
/// an attempt in flight still matches it.
pub(super) async fn cancel(
    transaction: &impl ConnectionTrait,
    condition: Condition,
    now: Timestamp,
) -> Result<u64, Error> {
    let cancelled = Entity::update_many()
        .col_expr(Column::State, Expr::value(CANCELLED))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .col_expr(Column::LeaseExpiresAt, Expr::value(None::<i64>))
        .filter(condition)
        .exec(transaction)
        .await?;
    Ok(cancelled.rows_affected)
}

/// Locks the notifications that meet a condition and that no other transaction has locked.
pub(super) async fn lock_skip_locked(
    transaction: &impl ConnectionTrait,
    condition: Condition,
) -> Result<Vec<Uuid>, Error> {
    let locked = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(condition)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .into_tuple()
        .all(transaction)
        .await?;
    Ok(locked)
}
