//! Cancels the backlog of disabled webhooks. A backlog may be too long for one transaction,
//! because others wait for its locks: the transaction that disables a webhook cancels one batch,
//! and later ones cancel the rest batch by batch. Meanwhile no claim takes notifications of a
//! disabled webhook. Enabling it cancels the rest first.

use domain::webhook::{Webhook, WebhookKey};
use sea_orm::sea_query::ExprTrait as _;

use super::{
    cancellation::{cancel_notifications, cancel_pending},
    queue::earliest_pending,
};
use crate::prelude::*;
use crate::{
    Storage,
    entity::webhook::{Column, Entity},
    webhooks::{self, any_of},
};

/// The largest number of pending notifications that one transaction cancels of disabled webhooks.
pub(super) const BATCH: u64 = 4_096;

/// Cancels the first batch of the backlog of a webhook that was just disabled, or all that remains
/// of the backlog of one that was just enabled. The webhook is locked.
pub async fn cancel_backlog(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<(), Error> {
    let limit = webhook.disabled.map(|_| BATCH);
    cancel_notifications(transaction, webhook.key(), limit, now).await
}

/// Cancels a batch of the backlog of some disabled webhook. Returns whether there was a backlog.
pub async fn cancel_backlog_batch(storage: &Storage, now: Timestamp) -> Result<bool, Error> {
    let query = Entity::find()
        .filter(Column::DisabledAt.is_not_null())
        // One index lookup per disabled webhook, independent of the length of its backlog.
        .filter(earliest_pending().is_not_null())
        .limit(1);
    let found = webhooks::keys(storage.reader(), query).await?.pop();
    let Some(webhook) = found else {
        return Ok(false);
    };
    cancel_batch(storage, webhook, now).await?;
    Ok(true)
}

/// Cancels the whole backlog of a webhook, if it is disabled, in several transactions.
pub async fn cancel_whole_backlog(
    storage: &Storage,
    webhook: WebhookKey,
    now: Timestamp,
) -> Result<(), Error> {
    while cancel_batch(storage, webhook, now).await? == BATCH {}
    Ok(())
}

/// Cancels a batch of a webhook's backlog, if it is disabled. Returns how many notifications: fewer
/// than [`BATCH`] if none remain.
async fn cancel_batch(
    storage: &Storage,
    webhook: WebhookKey,
    now: Timestamp,
) -> Result<u64, Error> {
    let cancelled = storage.write(move |transaction| async move {
        // The lock prevents the webhook from being enabled in the meantime.
        let disabled = Condition::all()
            .add(any_of([webhook]))
            .add(Column::DisabledAt.is_not_null());
        let locked = webhooks::lock(&transaction, disabled, LockType::NoKeyUpdate).await?;
        if locked.is_empty() {
            return Ok(0);
        }
        cancel_pending(&transaction, webhook, Some(BATCH), now).await
    });
    cancelled.await
}
