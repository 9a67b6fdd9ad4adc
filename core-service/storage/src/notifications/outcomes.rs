//! Applies the outcomes of attempts. The number of statements does not depend on the batch's size.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::{
    event::{Object, WEBHOOK_DISABLED},
    id::{EventId, StoreId, WebhookId},
    notification::{Outcome, is_failing_for_too_long},
    webhook::DisabledReason,
};
use jiff::SignedDuration;
use sea_orm::{UpdateMany, sea_query::ExprTrait as _};

use super::{
    attempts::{AttemptReport, RecordedAttempt},
    backlog_cleanup,
    cancellation::cancel_notifications,
    leases::under_leases,
    outcome_plan::OutcomePlan,
    receiver_health::{self, SavedHealth},
    state::{CANCELLED, DELIVERED, EXHAUSTED, PENDING, is_cancelled, is_leased},
};
use crate::prelude::*;
use crate::{
    entity::{
        instant::Instant,
        notification::{Column, Entity, Model},
    },
    events,
    webhooks::{self, HostOutcomes, WebhookKey},
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
    let reports = one_per_notification(transaction, reports).await?;
    let mut rows = mark_delivered_or_lock(transaction, &reports, is_leased, now).await?;
    // Some may have been cancelled during the attempt. They are read without a lock, because the
    // lock order puts their webhooks first.
    let remaining = unmatched(&reports, &rows);
    let cancelled = find(transaction, &remaining, is_cancelled()).await?;
    let disabled: BTreeSet<_> = cancelled.iter().map(webhook_of).collect();
    rows.extend(by_id(cancelled));

    // The plan tells which webhooks to lock. With cancelled notifications, it is made again below, once
    // their webhooks are locked and their delivered ones are updated.
    let mut plan = OutcomePlan::new(&reports, &rows, now);
    let since = now.saturating_sub(disable_after).unwrap_or(Timestamp::MIN);
    let to_disable = (&plan.gone, since);
    let locked = receiver_health::lock(transaction, &plan.summary, &disabled, to_disable).await?;
    if !disabled.is_empty() {
        rows.retain(|_, row| row.state != CANCELLED);
        rows.extend(mark_delivered_or_lock(transaction, &remaining, is_cancelled, now).await?);
        plan = OutcomePlan::new(&reports, &rows, now);
    }
    for report in unmatched(&reports, &rows) {
        log_stale_lease(report);
    }

    let mut saved = receiver_health::save(transaction, &plan.summary, &locked, now).await?;
    plan.cancel_retries_except(&saved.enabled);
    schedule_retries(transaction, &plan.retried).await?;
    finish(transaction, plan.exhausted, EXHAUSTED, now).await?;
    finish(transaction, plan.cancelled, CANCELLED, now).await?;
    let mut applied = AppliedOutcomes {
        attempts: plan.attempts,
        hosts: std::mem::take(&mut saved.hosts),
        ..AppliedOutcomes::default()
    };
    if locked.may_be_disabled {
        let failing = failing_for_too_long(saved, &plan.gone, disable_after, now);
        applied.gone = disable(transaction, plan.gone, DisabledReason::Gone, now).await?;
        applied.failing = disable(transaction, failing, DisabledReason::Failing, now).await?;
    }
    Ok(applied)
}

/// Reduces reports to one per notification. One lease has one outcome: later reports of it are
/// stale. If a notification is reported under several leases (rare), only the lease in its row
/// is current.
async fn one_per_notification<'a>(
    connection: &impl ConnectionTrait,
    reports: &'a [AttemptReport],
) -> Result<Vec<&'a AttemptReport>, Error> {
    let mut leases = HashSet::new();
    let mut reports: Vec<_> = reports
        .iter()
        .filter(|report| leases.insert((report.id, report.lease_token)))
        .collect();
    let mut ids = HashSet::new();
    let repeated: HashSet<_> = reports
        .iter()
        .map(|report| report.id)
        .filter(|id| !ids.insert(*id))
        .collect();
    if repeated.is_empty() {
        return Ok(reports);
    }
    let mut repeated_reports = reports.clone();
    repeated_reports.retain(|report| repeated.contains(&report.id));
    let is_leased_or_cancelled = Condition::any().add(is_leased()).add(is_cancelled());
    let rows = find(connection, &repeated_reports, is_leased_or_cancelled).await?;
    let current: HashSet<_> = rows.iter().map(|row| (row.id, row.lease_token)).collect();
    reports.retain(|report| {
        let is_stale = repeated.contains(&report.id)
            && !current.contains(&(report.id.0, Some(report.lease_token)));
        if is_stale {
            log_stale_lease(report);
        }
        !is_stale
    });
    Ok(reports)
}

fn log_stale_lease(report: &AttemptReport) {
    tracing::info!(notification.id = %report.id, "an outcome was reported under a stale lease");
}

/// Marks the reported notifications in a state as delivered if their attempt succeeded, and locks
/// the others.
async fn mark_delivered_or_lock(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: fn() -> SimpleExpr,
    now: Timestamp,
) -> Result<HashMap<Uuid, Model>, Error> {
    let (delivered, failed): (Vec<_>, Vec<_>) = reports
        .iter()
        .copied()
        .partition(|report| report.outcome == Outcome::Delivered);
    let delivered = mark_delivered(transaction, &delivered, state(), now).await?;
    let failed = lock(transaction, &failed, state()).await?;
    Ok(by_id(delivered).chain(by_id(failed)).collect())
}

fn unmatched<'a>(
    reports: &[&'a AttemptReport],
    rows: &HashMap<Uuid, Model>,
) -> Vec<&'a AttemptReport> {
    let is_unmatched = |report: &&AttemptReport| !rows.contains_key(&report.id.0);
    reports.iter().copied().filter(is_unmatched).collect()
}

fn webhook_of(row: &Model) -> WebhookKey {
    (StoreId(row.store_id), WebhookId(row.webhook_id))
}

fn by_id(rows: Vec<Model>) -> impl Iterator<Item = (Uuid, Model)> {
    rows.into_iter().map(|row| (row.id, row))
}

/// An update to a state that counts an attempt and ends its lease.
fn after_attempt(state: &str) -> UpdateMany<Entity> {
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state))
        .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
        .col_expr(Column::LeaseToken, Expr::value(None::<Uuid>))
        .col_expr(Column::LeaseExpiresAt, Expr::value(None::<i64>))
}

async fn mark_delivered(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: SimpleExpr,
    now: Timestamp,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = after_attempt(DELIVERED)
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .filter(leases_of(reports).add(state))
        .exec_with_returning(transaction)
        .await?;
    Ok(rows)
}

async fn lock(
    transaction: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    state: SimpleExpr,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(leases_of(reports).add(state))
        .order_by_asc(Column::Id)
        .lock_exclusive()
        .all(transaction)
        .await?;
    Ok(rows)
}

async fn find(
    connection: &impl ConnectionTrait,
    reports: &[&AttemptReport],
    states: impl Into<Condition>,
) -> Result<Vec<Model>, Error> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(leases_of(reports).add(states.into()))
        .all(connection)
        .await?;
    Ok(rows)
}

fn leases_of(reports: &[&AttemptReport]) -> Condition {
    under_leases(reports.iter().map(|report| (report.id, report.lease_token)))
}

async fn schedule_retries(
    transaction: &impl ConnectionTrait,
    retried: &BTreeMap<Uuid, (WebhookKey, Timestamp)>,
) -> Result<(), Error> {
    if retried.is_empty() {
        return Ok(());
    }
    let due_at = retried
        .iter()
        .fold(CaseStatement::new(), |due_at, (id, (_, instant))| {
            due_at.case(Column::Id.eq(*id), Expr::value(Instant::from(*instant)))
        })
        .finally(Expr::col(Column::DueAt));
    after_attempt(PENDING)
        .col_expr(Column::DueAt, due_at.into())
        .filter(Column::Id.is_in(padded(retried.keys().copied())))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Finishes notifications that were not delivered.
async fn finish(
    transaction: &impl ConnectionTrait,
    ids: Vec<Uuid>,
    state: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    after_attempt(state)
        .col_expr(Column::FinishedAt, Expr::value(Instant::from(now)))
        .filter(Column::Id.is_in(padded(ids)))
        .exec(transaction)
        .await?;
    Ok(())
}

fn failing_for_too_long(
    saved: SavedHealth,
    gone: &BTreeSet<WebhookKey>,
    disable_after: SignedDuration,
    now: Timestamp,
) -> BTreeSet<WebhookKey> {
    saved
        .failing_since
        .into_iter()
        .filter(|(webhook, since)| {
            let since = Timestamp::try_from(*since).unwrap_or(now);
            !gone.contains(webhook) && is_failing_for_too_long(since, disable_after, now)
        })
        .map(|(webhook, _)| webhook)
        .collect()
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
    let events = disabled.iter().map(|(store_id, id)| {
        let object = Object::Webhook(*id);
        (*store_id, EventId::new(), WEBHOOK_DISABLED, object)
    });
    events::insert(transaction, events, now).await?;
    let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
    let limit = backlog_cleanup::BATCH / std::cmp::max(count, 1);
    for (store_id, id) in &disabled {
        cancel_notifications(transaction, *store_id, *id, Some(limit), now).await?;
    }
    Ok(disabled)
}
