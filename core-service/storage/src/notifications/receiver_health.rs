//! Receiver health, stored with the webhook: claims and the automatic disabling depend on it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    id::{StoreId, WebhookId},
    proven_webhooks,
    scheduling::ReceiverHealth,
};
use sea_orm::sea_query::ExprTrait as _;

use super::queue::moved_forward;
use crate::prelude::*;
use crate::{
    entity::{
        instant::Instant,
        webhook::{Column, Entity, Model},
    },
    webhooks::{self, HostOutcomes, WebhookKey, any_of},
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
    /// The health of each webhook after its last attempt.
    pub(super) health: BTreeMap<WebhookKey, ReceiverHealth>,
    /// The instant when the earliest retry of each webhook is due.
    pub(super) earliest_retry: BTreeMap<WebhookKey, Timestamp>,
}

/// The webhooks with a failed attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedHealth {
    /// The enabled ones without a success in this batch, each with the instant of the first failure
    /// since its last success.
    pub(super) failing_since: Vec<(WebhookKey, Instant)>,
    /// Those that exist and are enabled.
    pub(super) enabled: BTreeSet<WebhookKey>,
    /// Outcomes at hosts of unproven webhooks.
    pub(super) hosts: HostOutcomes,
}

/// The locked webhooks.
#[derive(Clone, Debug, Default)]
pub(super) struct LockedWebhooks {
    webhooks: BTreeMap<WebhookKey, Model>,
    /// Whether the lock is strong enough to disable them.
    pub(super) may_be_disabled: bool,
}

/// Locks the webhooks that [`save`] will update, and `others`. A success that changes neither the
/// health nor `failing_since` of a proven webhook updates nothing: its webhook is not locked.
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
    for (health, keys) in by_health(summary, summary.succeeded.iter()) {
        let changed = Condition::all().add(any_of(keys)).add(changes_with(health));
        condition = condition.add(changed);
    }
    // The strong lock waits for transactions that enqueue: their notifications must be visible
    // when the webhook is disabled, to be cancelled.
    let strength = if may_be_disabled {
        LockType::Update
    } else {
        LockType::NoKeyUpdate
    };
    let locked = webhooks::in_lock_order(condition).lock(strength);
    let locked = locked.all(transaction).await?.into_iter();
    Ok(LockedWebhooks {
        webhooks: locked
            .map(|row| ((StoreId(row.store_id), WebhookId(row.id)), row))
            .collect(),
        may_be_disabled,
    })
}

/// Saves the health of locked webhooks and whether they are proven, and moves those with retries
/// forward in the queue. Returns those with a failure.
pub(super) async fn save(
    transaction: &impl ConnectionTrait,
    summary: &AttemptSummary,
    locked: &LockedWebhooks,
    now: Timestamp,
) -> Result<SavedHealth, Error> {
    let is_locked = |webhook: &&WebhookKey| locked.webhooks.contains_key(*webhook);
    let succeeded = || summary.succeeded.iter().filter(is_locked);
    save_successes(transaction, summary, succeeded()).await?;
    let mut saved = SavedHealth::default();
    let newly_proven = succeeded()
        .map(|webhook| &locked.webhooks[webhook])
        .filter(|row| !row.is_proven);
    saved.hosts.accepted = newly_proven
        .map(|row| (StoreId(row.store_id), row.host.clone()))
        .collect();
    let failed: Vec<_> = summary.failed.iter().filter(is_locked).collect();
    if failed.is_empty() {
        return Ok(saved);
    }
    let health = by_health(summary, failed.iter().copied())
        .into_iter()
        .fold(CaseStatement::new(), |health, (name, keys)| {
            let ids = padded(keys.iter().map(|(_, id)| id.0));
            health.case(Column::Id.is_in(ids), Expr::value(name.as_str()))
        })
        .finally(Expr::col(Column::ReceiverHealth));
    let lost_since = Instant::from(proven_webhooks::proof_lost_since(now));
    let keeps_proof = Condition::all().add(Column::IsProven.eq(true)).add(
        Condition::any()
            .add(Column::FailingSince.is_null())
            .add(Column::FailingSince.gt(lost_since)),
    );
    let rows = Entity::update_many()
        .col_expr(Column::ReceiverHealth, health.into())
        .col_expr(Column::IsProven, keeps_proof.into())
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
    save_successes(transaction, summary, mixed).await?;
    for row in rows {
        let webhook = (StoreId(row.store_id), WebhookId(row.id));
        if !row.is_proven {
            saved.hosts.failed.insert((webhook.0, row.host));
        }
        if row.disabled_at.is_some() {
            continue;
        }
        saved.enabled.insert(webhook);
        if let Some(since) = row.failing_since
            && !summary.succeeded.contains(&webhook)
        {
            saved.failing_since.push((webhook, since));
        }
    }
    Ok(saved)
}

/// Saves the health of webhooks after a success, which makes them proven.
async fn save_successes<'a>(
    transaction: &impl ConnectionTrait,
    summary: &AttemptSummary,
    webhooks: impl Iterator<Item = &'a WebhookKey>,
) -> Result<(), Error> {
    for (health, keys) in by_health(summary, webhooks) {
        Entity::update_many()
            .col_expr(Column::ReceiverHealth, Expr::value(health.as_str()))
            .col_expr(Column::FailingSince, Expr::value(None::<i64>))
            .col_expr(Column::IsProven, Expr::value(true))
            .filter(any_of(keys))
            .filter(changes_with(health))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

/// Groups webhooks by the health after their last attempt.
fn by_health<'a>(
    summary: &AttemptSummary,
    webhooks: impl Iterator<Item = &'a WebhookKey>,
) -> Vec<(ReceiverHealth, Vec<WebhookKey>)> {
    let mut groups: Vec<_> = ReceiverHealth::ALL
        .map(|health| (health, Vec::new()))
        .into();
    for webhook in webhooks {
        if let Some(health) = summary.health.get(webhook) {
            groups[*health as usize].1.push(*webhook);
        }
    }
    groups.retain(|(_, webhooks)| !webhooks.is_empty());
    groups
}

/// Whether a success that leaves a webhook with this health changes its row.
fn changes_with(health: ReceiverHealth) -> Condition {
    Condition::any()
        .add(Column::ReceiverHealth.is_null())
        .add(Column::ReceiverHealth.ne(health.as_str()))
        .add(Column::FailingSince.is_not_null())
        .add(Column::IsProven.eq(false))
}
