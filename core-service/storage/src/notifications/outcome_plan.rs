//! Plans the changes that a batch of reported outcomes causes, before any of them is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{
    id::{StoreId, WebhookId},
    notification::{Outcome, RetryDecision, decide_retry},
    scheduling::ReceiverHealth,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    attempts::{AttemptReport, RecordedAttempt},
    receiver_health::AttemptSummary,
    state::CANCELLED,
};
use crate::{entity::notification::Model, webhooks::WebhookKey};

/// The attempts to record, their effect on the webhooks, and the new states of the notifications
/// that were not delivered. The delivered ones are already updated.
#[derive(Clone, Debug, Default)]
pub(super) struct OutcomePlan {
    pub(super) attempts: Vec<RecordedAttempt>,
    pub(super) summary: AttemptSummary,
    /// Each with its webhook and the instant when it is due again.
    pub(super) retried: BTreeMap<Uuid, (WebhookKey, Timestamp)>,
    pub(super) exhausted: Vec<Uuid>,
    pub(super) cancelled: Vec<Uuid>,
    /// Webhooks whose receivers answered 410 Gone.
    pub(super) gone: BTreeSet<WebhookKey>,
}

impl OutcomePlan {
    /// Plans for at most one outcome per notification. `rows` are the reported notifications that
    /// are still leased, delivered by these outcomes, or cancelled during the attempt.
    pub(super) fn new(
        reports: &[&AttemptReport],
        rows: &HashMap<Uuid, Model>,
        now: Timestamp,
    ) -> Self {
        let mut plan = Self::default();
        for report in reports {
            if let Some(row) = rows.get(&report.id.0) {
                plan.add(report, row, now);
            }
        }
        plan
    }

    /// Cancels the retries of all webhooks except the enabled ones.
    pub(super) fn cancel_retries_except(&mut self, enabled: &BTreeSet<WebhookKey>) {
        let cancelled = self
            .retried
            .extract_if(.., |_, (webhook, _)| !enabled.contains(webhook));
        self.cancelled.extend(cancelled.map(|(id, _)| id));
    }

    fn add(&mut self, report: &AttemptReport, row: &Model, now: Timestamp) {
        let webhook = (StoreId(row.store_id), WebhookId(row.webhook_id));
        // The row of a delivered notification already counts this attempt.
        let delivered = report.outcome == Outcome::Delivered;
        let number = row.attempts + i64::from(!delivered);
        let attempts_since_resend =
            u32::try_from(number - row.attempts_at_resend).unwrap_or(u32::MAX);
        match decide_retry(&report.outcome, attempts_since_resend, report.jitter, now) {
            RetryDecision::Delivered => {}
            // A cancelled notification becomes delivered or exhausted like any other, but is not retried:
            // it stays cancelled, its attempt is counted and its lease ends.
            RetryDecision::RetryAt(_) if row.state == CANCELLED => self.cancelled.push(row.id),
            RetryDecision::RetryAt(due_at) => {
                self.retried.insert(row.id, (webhook, due_at));
                let earliest = self.summary.earliest_retry.entry(webhook).or_insert(due_at);
                *earliest = due_at.min(*earliest);
            }
            RetryDecision::Exhausted => self.exhausted.push(row.id),
            RetryDecision::Gone => {
                self.exhausted.push(row.id);
                self.gone.insert(webhook);
            }
        }
        self.summarize(webhook, report);
        self.attempts.push(RecordedAttempt {
            store_id: webhook.0,
            number,
            recorded_at: now,
            report: report.clone(),
        });
    }

    fn summarize(&mut self, webhook: WebhookKey, report: &AttemptReport) {
        let summary = &mut self.summary;
        let health = ReceiverHealth::after(&report.outcome, report.duration);
        summary.health.insert(webhook, health);
        match report.outcome {
            Outcome::Delivered => {
                summary.succeeded.insert(webhook);
                summary.last_succeeded.insert(webhook);
            }
            Outcome::Failed { .. } => {
                summary.last_succeeded.remove(&webhook);
                summary.failed.insert(webhook);
            }
        }
    }
}
