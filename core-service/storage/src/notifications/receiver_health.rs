//! Receiver health, stored with the webhook: claims and the automatic disabling depend on it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    id::{StoreId, WebhookId},
    scheduling::ReceiverHealth,
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter,
    sea_query::{Expr, ExprTrait as _, LockType},
};

use super::queue::moved_forward;

use crate::{
    ConnectionTrait, Error,
    bucketed_params::bucketed,
    entity::{
        instant::Instant,
        webhook::{Column, Entity},
    },
    webhooks::{self, WebhookKey, any_of},
};

/// The outcomes of a batch of attempts per webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct AttemptSummary {
    /// Webhooks with a success.
    pub(super) succeeded: BTreeSet<WebhookKey>,
    /// Webhooks whose last attempt succeeded.
    pub(super) last_succeeded: BTreeSet<WebhookKey>,
    /// Webhooks with a failure.
    pub(super) failed: BTreeSet<WebhookKey>,
    /// Webhooks whose last attempt was slow.
    pub(super) slow: BTreeSet<WebhookKey>,
    /// The instant when the earliest retry of each webhook is due.
    pub(super) earliest_retry: BTreeMap<WebhookKey, Timestamp>,
}

/// The webhooks with a failed attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Failing {
    /// The enabled ones without a success in this batch, each with the instant of the first failure
    /// since its last success.
    pub(super) since: Vec<(WebhookKey, Instant)>,
    /// Those that exist and are enabled.
    pub(super) enabled: BTreeSet<WebhookKey>,
}

/// The locked webhooks.
#[derive(Clone, Debug, Default)]
pub(super) struct LockedWebhooks {
    keys: BTreeSet<WebhookKey>,
    /// Whether the lock is strong enough to disable them.
    pub(super) may_be_disabled: bool,
}

/// Locks the webhooks that [`save`] will update, and `others`. A success that changes neither
/// `was_slow` nor `failing_since` updates nothing: its webhook is not locked.
///
/// The lock is strong enough to disable webhooks if `gone` contains any (their receivers answered
/// 410), or if one with a failed attempt has had no success since `failing_since`.
pub(super) async fn lock(
    transaction: &impl ConnectionTrait,
    summary: &AttemptSummary,
    others: &BTreeSet<WebhookKey>,
    (gone, failing_since): (&BTreeSet<WebhookKey>, Timestamp),
) -> Result<LockedWebhooks, Error> {
    let unconditional: BTreeSet<_> = summary.failed.union(others).copied().collect();
    if unconditional.is_empty() && summary.succeeded.is_empty() {
        return Ok(LockedWebhooks::default());
    }
    let failed = summary.failed.iter().copied();
    let may_be_disabled = !gone.is_empty()
        || (!summary.failed.is_empty()
            && webhooks::is_any_failing_since(transaction, failed, failing_since).await?);
    let mut condition = any_of(unconditional);
    for (keys, was_slow) in by_slowness(summary, &summary.succeeded) {
        if !keys.is_empty() {
            let changed = Condition::all()
                .add(any_of(keys))
                .add(changes_with(was_slow));
            condition = condition.add(changed);
        }
    }
    // The strong lock waits for transactions that enqueue: their notifications must be visible
    // when the webhook is disabled, to be cancelled.
    let strength = if may_be_disabled {
        LockType::Update
    } else {
        LockType::NoKeyUpdate
    };
    Ok(LockedWebhooks {
        keys: webhooks::lock(transaction, condition, strength).await?,
        may_be_disabled,
    })
}

/// Saves the health of locked webhooks, and moves those with retries forward in the queue. Returns
/// those with a failure.
pub(super) async fn save(
    transaction: &impl ConnectionTrait,
    summary: &AttemptSummary,
    locked: &LockedWebhooks,
    now: Timestamp,
) -> Result<Failing, Error> {
    let succeeded = summary.succeeded.intersection(&locked.keys);
    save_successes(transaction, summary, &succeeded.copied().collect()).await?;
    let failed: Vec<_> = summary.failed.intersection(&locked.keys).collect();
    if failed.is_empty() {
        return Ok(Failing::default());
    }
    let slow = bucketed(summary.slow.iter().map(|(_, id)| id.0));
    let rows = Entity::update_many()
        .col_expr(Column::WasSlow, Column::Id.is_in(slow))
        .col_expr(
            Column::FailingSince,
            Expr::col(Column::FailingSince).if_null(Expr::value(Instant::from(now))),
        )
        .col_expr(
            Column::NextDueAt,
            if summary.earliest_retry.is_empty() {
                Expr::col(Column::NextDueAt)
            } else {
                moved_forward(&summary.earliest_retry)
            },
        )
        .filter(any_of(failed.into_iter().copied()))
        .exec_with_returning(transaction)
        .await?;
    let mixed = summary.failed.intersection(&summary.last_succeeded);
    save_successes(transaction, summary, &mixed.copied().collect()).await?;
    let mut failing = Failing::default();
    for row in rows {
        let webhook = (StoreId(row.store_id), WebhookId(row.id));
        if row.disabled_at.is_some() {
            continue;
        }
        failing.enabled.insert(webhook);
        if let Some(since) = row.failing_since
            && !summary.succeeded.contains(&webhook)
        {
            failing.since.push((webhook, since));
        }
    }
    Ok(failing)
}

async fn save_successes(
    transaction: &impl ConnectionTrait,
    summary: &AttemptSummary,
    webhooks: &BTreeSet<WebhookKey>,
) -> Result<(), Error> {
    for (keys, was_slow) in by_slowness(summary, webhooks) {
        if keys.is_empty() {
            continue;
        }
        Entity::update_many()
            .col_expr(Column::WasSlow, Expr::value(was_slow))
            .col_expr(Column::FailingSince, Expr::value(None::<i64>))
            .filter(any_of(keys))
            .filter(changes_with(was_slow))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

/// Partitions webhooks by whether their last attempt was slow.
fn by_slowness(
    summary: &AttemptSummary,
    webhooks: &BTreeSet<WebhookKey>,
) -> [(Vec<WebhookKey>, bool); 2] {
    let (slow, fast) = webhooks
        .iter()
        .copied()
        .partition(|webhook| summary.slow.contains(webhook));
    [(fast, false), (slow, true)]
}

/// Whether a success changes the row of a webhook.
fn changes_with(was_slow: bool) -> Condition {
    Condition::any()
        .add(Column::WasSlow.is_null())
        .add(Column::WasSlow.eq(!was_slow))
        .add(Column::FailingSince.is_not_null())
}

/// The health in a row's `was_slow`: whether the last attempt was slow, if one has ended.
pub(super) fn from_was_slow(was_slow: Option<bool>) -> ReceiverHealth {
    match was_slow {
        None => ReceiverHealth::Unknown,
        Some(false) => ReceiverHealth::Healthy,
        Some(true) => ReceiverHealth::Slow,
    }
}
