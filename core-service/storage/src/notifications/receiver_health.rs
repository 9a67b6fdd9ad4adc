//! Receiver health, stored with the webhook: claims and the automatic disabling depend on it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    notification::is_failing_for_too_long,
    scheduling::{self, ReceiverHealth},
    webhook::WebhookKey,
};
use jiff::SignedDuration;

use crate::prelude::*;
use crate::{
    entity::{Instant, webhook::Column},
    webhooks::{self, HostOutcomes, any_of},
};

/// The outcomes of a webhook's attempts in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptSummary {
    pub(super) has_succeeded: bool,
    pub(super) has_failed: bool,
    /// Whether the last attempt succeeded.
    pub(super) last_succeeded: bool,
    /// After the last attempt.
    pub(super) health: ReceiverHealth,
    /// When the earliest retry is due.
    pub(super) earliest_retry: Option<Timestamp>,
}

pub(super) type AttemptSummaries = BTreeMap<WebhookKey, AttemptSummary>;

/// What [`save`] has found.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedHealth {
    /// The enabled webhooks that have only failed for too long.
    pub(super) failing: BTreeSet<WebhookKey>,
    /// The saved webhooks that are enabled.
    pub(super) enabled: BTreeSet<WebhookKey>,
    /// Outcomes at hosts of unproven webhooks.
    pub(super) hosts: HostOutcomes,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LockedWebhooks {
    /// Each with whether it was proven.
    webhooks: BTreeMap<WebhookKey, bool>,
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
    summaries: &AttemptSummaries,
    others: &BTreeSet<WebhookKey>,
    gone: &BTreeSet<WebhookKey>,
    failing_since: Timestamp,
) -> Result<LockedWebhooks, Error> {
    if summaries.is_empty() && others.is_empty() {
        return Ok(LockedWebhooks::default());
    }
    let keys = |is_meant: &dyn Fn(&AttemptSummary) -> bool| -> Vec<WebhookKey> {
        let meant = summaries.iter().filter(|(_, summary)| is_meant(summary));
        meant.map(|(webhook, _)| *webhook).collect()
    };
    let failed = keys(&|summary| summary.has_failed);
    let may_be_disabled = !gone.is_empty()
        || (!failed.is_empty()
            && webhooks::is_any_failing_since(transaction, &failed, failing_since).await?);
    let mut condition = any_of(failed.iter().chain(others).copied());
    for health in [ReceiverHealth::Healthy, ReceiverHealth::Slow] {
        let succeeded = keys(&|summary| summary.has_succeeded && summary.health == health);
        if !succeeded.is_empty() {
            let changes = Condition::any()
                .add(Column::ReceiverHealth.is_null())
                .add(Column::ReceiverHealth.ne(health.as_str()))
                .add(Column::FailingSince.is_not_null())
                .add(Column::IsProven.eq(false));
            condition = condition.add(Condition::all().add(any_of(succeeded)).add(changes));
        }
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
            .map(|row| (webhooks::key(row.store_id, row.id), row.is_proven))
            .collect(),
        may_be_disabled,
    })
}

/// Saves the health of locked webhooks and whether they are proven, and moves those with retries
/// forward in the queue. A success makes a webhook proven. One that only fails remains proven for a
/// while.
pub(super) async fn save(
    transaction: &impl ConnectionTrait,
    summaries: &AttemptSummaries,
    locked: &LockedWebhooks,
    disable_after: SignedDuration,
    now: Timestamp,
) -> Result<SavedHealth, Error> {
    let mut saved = SavedHealth::default();
    let is_locked = |(webhook, _): &(&WebhookKey, _)| locked.webhooks.contains_key(*webhook);
    let outcomes = padded(summaries.iter().filter(is_locked));
    if outcomes.is_empty() {
        return Ok(saved);
    }
    let update = format!(
        "WITH outcome (store_id, id, health, has_succeeded, last_succeeded, retry_at) AS (
            VALUES {}
        )
        UPDATE webhooks SET
            receiver_health = health,
            is_proven = has_succeeded
                OR (is_proven AND (failing_since IS NULL OR failing_since > $1)),
            failing_since = CASE WHEN last_succeeded THEN NULL
                WHEN has_succeeded THEN $2 ELSE COALESCE(failing_since, $2) END,
            next_due_at = CASE WHEN next_due_at <= retry_at OR retry_at IS NULL THEN next_due_at
                ELSE retry_at END
        FROM outcome
        WHERE webhooks.store_id = outcome.store_id AND webhooks.id = outcome.id
        RETURNING webhooks.store_id, webhooks.id, host, is_proven, disabled_at, failing_since",
        rows::placeholders(&mut (3..), outcomes.len(), 6)
    );
    let proof_lost_since = scheduling::proof_lost_since(now);
    let instants = [proof_lost_since, now].map(|instant| Instant::from(instant).into());
    let values = outcomes.iter().flat_map(|(webhook, summary)| {
        [
            webhook.store_id.0.into(),
            webhook.webhook_id.0.into(),
            summary.health.as_str().into(),
            summary.has_succeeded.into(),
            summary.last_succeeded.into(),
            summary.earliest_retry.map(Instant::from).into(),
        ]
    });
    let values = instants.into_iter().chain(values);
    for row in rows::query(transaction, &update, values).await? {
        let webhook = webhooks::key(row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let host = (webhook.store_id, row.try_get_by_index(2)?);
        let is_proven: bool = row.try_get_by_index(3)?;
        if !is_proven {
            saved.hosts.failed.insert(host);
        } else if !locked.webhooks[&webhook] {
            saved.hosts.accepted.insert(host);
        }
        let disabled_at: Option<Instant> = row.try_get_by_index(4)?;
        if disabled_at.is_some() {
            continue;
        }
        saved.enabled.insert(webhook);
        let failing_since: Option<Instant> = row.try_get_by_index(5)?;
        if let Some(since) = failing_since
            && !summaries[&webhook].has_succeeded
            && Timestamp::try_from(since)
                .is_ok_and(|since| is_failing_for_too_long(since, disable_after, now))
        {
            saved.failing.insert(webhook);
        }
    }
    Ok(saved)
}
