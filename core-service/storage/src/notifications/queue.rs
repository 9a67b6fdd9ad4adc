//! The queue of webhooks: the column `next_due_at` of a webhook is its position.
//!
//! While a webhook has pending notifications, its position is set. It is at most the later of two
//! instants: when the earliest of them is due, and the webhook's last claim. A transaction that
//! makes a notification pending also moves the position forward, to an earlier instant
//! ([`lock_and_move_forward`] or [`move_forward`]). Only [`reschedule`] moves it back, and not
//! while another transaction may be inserting a notification that it can't see.

use std::collections::{BTreeMap, HashSet};

use domain::id::{StoreId, WebhookId};
use sea_orm::{DbBackend, sea_query::ExprTrait as _};

use super::state::is_pending;
use crate::prelude::*;
use crate::{
    entity::{
        instant::Instant,
        notification,
        webhook::{Column, Entity},
    },
    webhooks::{self, WebhookKey, any_of},
};

/// Moves webhooks forward for pending notifications that the caller will insert, due now. Returns
/// those that exist and are enabled, and remain so until the transaction ends. Transactions that
/// call this wait for each other only if a position changes.
pub(super) async fn lock_and_move_forward(
    transaction: &impl ConnectionTrait,
    webhooks: &[WebhookKey],
    now: Timestamp,
) -> Result<HashSet<WebhookId>, Error> {
    let condition = any_of(webhooks.iter().copied());
    let rows: Vec<(Uuid, Uuid, Option<Instant>)> = webhooks::in_lock_order(condition)
        .select_only()
        .columns([Column::StoreId, Column::Id, Column::NextDueAt])
        .filter(Column::DisabledAt.is_null())
        .lock(LockType::KeyShare)
        .into_tuple()
        .all(transaction)
        .await?;
    let now = Instant::from(now);
    let later: Vec<_> = rows
        .iter()
        .filter(|(_, _, due)| due.is_none_or(|due| due > now))
        .map(|(store_id, id, _)| (StoreId(*store_id), WebhookId(*id)))
        .collect();
    if !later.is_empty() {
        lock_several(transaction, &later).await?;
        Entity::update_many()
            .col_expr(Column::NextDueAt, Expr::value(now))
            .filter(any_of(later))
            .filter(is_unset_or_later(Expr::value(now)))
            .exec(transaction)
            .await?;
    }
    Ok(rows.into_iter().map(|(_, id, _)| WebhookId(id)).collect())
}

/// Moves webhooks forward to the instants when their notifications, pending again, are due. Returns
/// those that exist and are enabled, and remain so until the transaction ends.
pub(crate) async fn move_forward(
    transaction: &impl ConnectionTrait,
    due: &BTreeMap<WebhookKey, Timestamp>,
) -> Result<HashSet<WebhookId>, Error> {
    if due.is_empty() {
        return Ok(HashSet::new());
    }
    lock_several(transaction, &due.keys().copied().collect::<Vec<_>>()).await?;
    // No condition on the position: the update must lock the row in any case.
    let rows = Entity::update_many()
        .col_expr(Column::NextDueAt, moved_forward(due))
        .filter(any_of(due.keys().copied()))
        .filter(Column::DisabledAt.is_null())
        .exec_with_returning(transaction)
        .await?;
    Ok(rows.into_iter().map(|row| WebhookId(row.id)).collect())
}

/// Moves webhooks back after a claim: to the end of the queue if more of their notifications are
/// due (`more_due`), otherwise to the instant when the next one is due.
pub(super) async fn reschedule(
    transaction: &impl ConnectionTrait,
    more_due: &[WebhookKey],
    none_due: &[WebhookKey],
    now: Timestamp,
) -> Result<(), Error> {
    if !more_due.is_empty() {
        Entity::update_many()
            .col_expr(Column::NextDueAt, Expr::value(Instant::from(now)))
            .filter(any_of(more_due.iter().copied()))
            .exec(transaction)
            .await?;
    }
    if none_due.is_empty() {
        return Ok(());
    }
    let locked = if transaction.get_database_backend() == DbBackend::Sqlite {
        none_due.to_vec()
    } else {
        // Skips webhooks that a transaction in `lock_and_move_forward` has locked.
        let query = Entity::find()
            .filter(any_of(none_due.iter().copied()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        webhooks::keys(transaction, query).await?
    };
    if locked.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::NextDueAt, subquery(earliest_pending()))
        .filter(any_of(locked))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Locks webhooks, if several, in the order that all transactions follow. An update alone locks in
/// any order.
async fn lock_several(
    transaction: &impl ConnectionTrait,
    webhooks: &[WebhookKey],
) -> Result<(), Error> {
    if webhooks.len() > 1 {
        let condition = any_of(webhooks.iter().copied());
        webhooks::lock(transaction, condition, LockType::NoKeyUpdate).await?;
    }
    Ok(())
}

/// The position, or each webhook's instant if that is earlier.
pub(super) fn moved_forward(due: &BTreeMap<WebhookKey, Timestamp>) -> SimpleExpr {
    let instant = due
        .iter()
        .fold(CaseStatement::new(), |instant, ((_, id), due)| {
            instant.case(Column::Id.eq(id.0), Expr::value(Instant::from(*due)))
        })
        .finally(Expr::col(Column::NextDueAt));
    let instant: SimpleExpr = instant.into();
    let position = CaseStatement::new()
        .case(is_unset_or_later(instant.clone()), instant)
        .finally(Expr::col(Column::NextDueAt));
    position.into()
}

/// Whether a position is not set, or later than an instant.
fn is_unset_or_later(instant: SimpleExpr) -> Condition {
    Condition::any()
        .add(Column::NextDueAt.is_null())
        .add(Expr::col(Column::NextDueAt).gt(instant))
}

/// A select of the earliest due instant of the pending notifications of the webhook in the outer
/// statement.
pub(super) fn earliest_pending() -> SelectStatement {
    let mut earliest = notifications_of_outer_webhook();
    earliest
        .expr(Expr::col((notification::Entity, notification::Column::DueAt)).min())
        .cond_where(is_pending());
    earliest
}

/// A select on the notifications of the webhook in the outer statement.
pub(super) fn notifications_of_outer_webhook() -> SelectStatement {
    let matches = |notification, webhook| {
        Expr::col((notification::Entity, notification)).equals((Entity, webhook))
    };
    let mut select = Query::select();
    select
        .from(notification::Entity)
        .cond_where(matches(notification::Column::StoreId, Column::StoreId))
        .cond_where(matches(notification::Column::WebhookId, Column::Id));
    select
}

pub(super) fn subquery(select: SelectStatement) -> SimpleExpr {
    Expr::SubQuery(None, Box::new(select.into()))
}
