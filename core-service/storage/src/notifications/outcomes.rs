//! Applies the outcomes of attempts. The number of statements does not depend on the batch's size.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::{
    event::{Object, WEBHOOK_DISABLED},
    id::EventId,
    notification::Outcome,
    webhook::{DisabledReason, WebhookKey},
};
use jiff::SignedDuration;
use sea_orm::sea_query::ExprTrait as _;

use super::{
    CANCELLED, DELIVERED, LEASED,
    attempts::{AttemptReport, RecordedAttempt},
    backlog_cleanup,
    cancellation::cancel_notifications,
    is_in,
    leases::under_leases,
    outcome_plan::{self, OutcomePlan, Undelivered},
    receiver_health,
};
use crate::prelude::*;
use crate::{
    entity::{
        Instant,
        notification::{Column, Entity, Model},
    },
    events,
    webhooks::{self, HostOutcomes},
};

/// The changes that a batch of reports caused.
#[derive(Clone, Debug, Default)]
pub struct AppliedOutcomes {
    pub attempts: Vec<RecordedAttempt>,
    /// Webhooks disabled because their receivers responded with 410 Gone.
    pub gone: Vec<WebhookKey>,
    /// Webhooks disabled because they failed for too long.
    pub failing: Vec<WebhookKey>,
    /// To be recorded once these outcomes are committed.
    pub hosts: HostOutcomes,
}

/// Applies reports to their notifications and webhooks. A report under a lease that is no longer
/// held changes nothing.
pub async fn apply_outcomes(
    transaction: &impl ConnectionTrait,
    reports: &[AttemptReport],
    disable_after: SignedDuration,
    now: Timestamp,
) -> Result<AppliedOutcomes, Error> {
    // One lease has one outcome: later reports of it are stale.
    let mut leases = HashSet::new();
    let is_first = |report: &&AttemptReport| leases.insert(report.lease);
    let reports: Vec<_> = reports.iter().filter(is_first).collect();
    let mut rows = mark_delivered_or_lock(transaction, &reports, LEASED, now).await?;
    // Some may have been cancelled during the attempt. They are read without a lock, because the
    // lock order puts their webhooks first.
    let remaining = unmatched(&reports, &rows);
    let cancelled = select(transaction, &remaining, CANCELLED, None).await?;
    let disabled: BTreeSet<_> = cancelled
        .iter()
        .map(|row| webhooks::key(row.store_id, row.webhook_id))
        .collect();
    rows.extend(by_id(cancelled));

    // The plan tells which webhooks to lock. With cancelled notifications, it is made again below, once
    // their webhooks are locked and their delivered ones are updated.
    let mut plan = OutcomePlan::new(&reports, &rows, now);
    let since = now.saturating_sub(disable_after).unwrap_or(Timestamp::MIN);
    let locked =
        receiver_health::lock(transaction, &plan.summaries, &disabled, &plan.gone, since).await?;
    if !disabled.is_empty() {
        rows.retain(|_, row| row.state != CANCELLED);
        rows.extend(mark_delivered_or_lock(transaction, &remaining, CANCELLED, now).await?);
        plan = OutcomePlan::new(&reports, &rows, now);
    }
    for report in unmatched(&reports, &rows) {
        tracing::info!(notification.id = %report.lease.id, "an outcome was reported under a stale lease");
    }

    let saved =
        receiver_health::save(transaction, &plan.summaries, &locked, disable_after, now).await?;
    plan.cancel_retries_except(&saved.enabled);
    save_undelivered(transaction, &plan.undelivered, now).await?;
    let mut applied = AppliedOutcomes {
        attempts: plan.attempts,
        hosts: saved.hosts,
        ..AppliedOutcomes::default()
    };
    if locked.may_be_disabled {
        let failing = &saved.failing - &plan.gone;
        applied.gone = disable(transaction, plan.gone, DisabledReason::Gone, now).await?;
        applied.failing = disable(transaction, failing, DisabledReason::Failing, now).await?;
    }
    Ok(applied)
}

/// Marks the reported notifications in a state as delivered if their attempt succeeded, and locks
/// the others.
async fn mark_delivered_or_lock(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: &'static str,
    now: Timestamp,
) -> Result<HashMap<Uuid, Model>, Error> {
    let (delivered, failed): (Vec<_>, Vec<_>) = reports
        .iter()
        .copied()
        .partition(|report| report.outcome == Outcome::Delivered);
    let delivered = mark_delivered(transaction, &delivered, state, now).await?;
    let failed = select(transaction, &failed, state, Some(LockType::Update)).await?;
    Ok(by_id(delivered).chain(by_id(failed)).collect())
}

fn unmatched<'a>(
    reports: &[&'a AttemptReport],
    rows: &HashMap<Uuid, Model>,
) -> Vec<&'a AttemptReport> {
    let is_unmatched = |report: &&AttemptReport| outcome_plan::row_of(report, rows).is_none();
    reports.iter().copied().filter(is_unmatched).collect()
}

fn by_id(rows: Vec<Model>) -> impl Iterator<Item = (Uuid, Model)> {
    rows.into_iter().map(|row| (row.id, row))
}

async fn mark_delivered(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: &'static str,
    now: Timestamp,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::update_many()
        .col_expr(Column::State, Expr::value(DELIVERED))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeaseExpiresAt, Expr::value(None::<i64>))
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .filter(leases_of(reports).add(is_in(state)))
        .exec_with_returning(transaction)
        .await?;
    Ok(rows)
}

/// The reported notifications in a state, locked if a lock is given.
async fn select(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: &'static str,
    lock: Option<LockType>,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(leases_of(reports).add(is_in(state)))
        .order_by_asc(Column::Id)
        .apply_if(lock, Select::lock)
        .all(transaction)
        .await?;
    Ok(rows)
}

fn leases_of(reports: &[&AttemptReport]) -> Condition {
    under_leases(reports.iter().map(|report| report.lease))
}

/// Counts the attempts of notifications that were not delivered, and saves their new states.
async fn save_undelivered(
    transaction: &impl ConnectionTrait,
    undelivered: &BTreeMap<Uuid, Undelivered>,
    now: Timestamp,
) -> Result<(), Error> {
    if undelivered.is_empty() {
        return Ok(());
    }
    let undelivered = padded(undelivered);
    let update = format!(
        "WITH undelivered (store_id, id, new_state, retry_at) AS (VALUES {})
        UPDATE notifications SET
            state = new_state,
            attempts = attempts + 1,
            lease_token = NULL,
            lease_expires_at = NULL,
            due_at = COALESCE(retry_at, due_at),
            finished_at = CASE WHEN retry_at IS NULL THEN $1 END
        FROM undelivered
        WHERE notifications.store_id = undelivered.store_id AND notifications.id = undelivered.id",
        rows::placeholders(&mut (2..), undelivered.len(), 4)
    );
    let values = undelivered.into_iter().flat_map(|(id, undelivered)| {
        [
            undelivered.webhook.store_id.0.into(),
            (*id).into(),
            undelivered.state.into(),
            undelivered.due_at.map(Instant::from).into(),
        ]
    });
    let now = std::iter::once(Instant::from(now).into());
    rows::execute(transaction, &update, now.chain(values)).await?;
    Ok(())
}

/// Disables webhooks and returns those that were enabled. Cancels the first batch of their
/// backlogs only: this transaction also applies the outcomes of other webhooks, and must end
/// within its timeout.
async fn disable(
    transaction: &impl ConnectionTrait,
    webhooks: BTreeSet<WebhookKey>,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<Vec<WebhookKey>, Error> {
    if webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let disabled = webhooks::disable(transaction, webhooks, reason, now).await?;
    let events = disabled.iter().map(|webhook| events::NewEvent {
        store_id: webhook.store_id,
        id: EventId::new(),
        name: WEBHOOK_DISABLED,
        object: Object::Webhook(webhook.webhook_id),
    });
    events::insert(transaction, events, now).await?;
    let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
    let limit = backlog_cleanup::BATCH / std::cmp::max(count, 1);
    for webhook in &disabled {
        cancel_notifications(transaction, *webhook, Some(limit), now).await?;
    }
    Ok(disabled)
}
