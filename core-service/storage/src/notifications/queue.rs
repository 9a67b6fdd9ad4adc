//! The queue of webhooks: the column `next_due_at` of a webhook is its position.
//!
//! While a webhook has pending notifications, its position is set. It is at most the later of two
//! instants: when the earliest of them is due, and the webhook's last claim. A transaction that
//! makes a notification pending also moves the position forward, to an earlier instant
//! ([`lock_and_move_forward`] or [`move_forward`]). Only [`reschedule`] moves it back, and not
//! while another transaction may be inserting a notification that it can't see.

use std::collections::{BTreeMap, HashSet};

use domain::{id::WebhookId, webhook::WebhookKey};
use sea_orm::DbBackend;

use super::is_pending;
use crate::prelude::*;
use crate::{
    entity::{
        Instant, notification,
        webhook::{Column, Entity},
    },
    webhooks::{self, any_of},
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
    let is_later = |due: Instant| due > Instant::from(now);

    let later = rows
        .iter()
        .filter(|(_, _, due)| due.is_none_or(is_later))
        .map(|(store_id, id, _)| (webhooks::key(*store_id, *id), now))
        .collect();
    move_forward(transaction, &later).await?;
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
    if due.len() > 1 {
        // In the order that all transactions follow: the update alone locks in any order.
        let condition = any_of(due.keys().copied());
        webhooks::lock(transaction, condition, LockType::NoKeyUpdate).await?;
    }
    let due = padded(due);
    // No condition on the position: the update must lock the row in any case.
    let update = format!(
        "WITH due (store_id, id, due_at) AS (VALUES {})
        UPDATE webhooks SET
            next_due_at = CASE WHEN next_due_at <= due_at THEN next_due_at ELSE due_at END
        FROM due
        WHERE webhooks.store_id = due.store_id AND webhooks.id = due.id AND disabled_at IS NULL
        RETURNING webhooks.id",
        rows::placeholders(&mut (1..), due.len(), 3)
    );
    let values = due.into_iter().flat_map(|(webhook, due)| {
        let (store_id, id) = (webhook.store_id.0, webhook.webhook_id.0);
        [store_id.into(), id.into(), Instant::from(*due).into()]
    });
    let rows = rows::query(transaction, &update, values).await?;
    rows.iter()
        .map(|row| Ok(WebhookId(row.try_get_by_index(0)?)))
        .collect()
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
        .col_expr(Column::NextDueAt, earliest_pending())
        .filter(any_of(locked))
        .exec(transaction)
        .await?;
    Ok(())
}

/// The earliest due instant of the pending notifications of the webhook in the outer statement.
pub(super) fn earliest_pending() -> SimpleExpr {
    let mut earliest = Query::select();
    earliest
        .expr(Expr::cust("MIN(due_at)"))
        .from(notification::Entity)
        .and_where(Expr::cust(OF_OUTER_WEBHOOK))
        .and_where(is_pending());
    subquery(earliest)
}

/// Whether a notification is of the webhook in the outer statement.
pub(super) const OF_OUTER_WEBHOOK: &str =
    "notifications.store_id = webhooks.store_id AND notifications.webhook_id = webhooks.id";

pub(super) fn subquery(select: SelectStatement) -> SimpleExpr {
    Expr::SubQuery(None, Box::new(select.into()))
}
