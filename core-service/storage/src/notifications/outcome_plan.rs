//! Plans the changes that a batch of reported outcomes causes, before any of them is written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::{
    notification::{Outcome, RetryDecision, decide_retry},
    scheduling::ReceiverHealth,
    webhook::WebhookKey,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    CANCELLED, DELIVERED, EXHAUSTED, PENDING,
    attempts::{AttemptReport, RecordedAttempt},
    receiver_health::{AttemptSummaries, AttemptSummary},
};
use crate::{entity::notification::Model, webhooks};

/// The attempts to record, their effect on the webhooks, and the new states of the notifications
/// that were not delivered. The delivered ones are already updated.
#[derive(Clone, Debug, Default)]
pub(super) struct OutcomePlan {
    pub(super) attempts: Vec<RecordedAttempt>,
    pub(super) summaries: AttemptSummaries,
    pub(super) undelivered: BTreeMap<Uuid, Undelivered>,
    /// Webhooks whose receivers answered 410 Gone.
    pub(super) gone: BTreeSet<WebhookKey>,
}

/// The new state of a notification that was not delivered.
#[derive(Clone, Debug)]
pub(super) struct Undelivered {
    pub(super) webhook: WebhookKey,
    pub(super) state: &'static str,
    /// When it is due again; `None` if it is finished.
    pub(super) due_at: Option<Timestamp>,
}

/// The row of a reported notification, unless the report is under another lease than the row. A
/// delivered one has no lease any more: of several successes under different leases (rare), the
/// first counts.
pub(super) fn row_of<'a>(
    report: &AttemptReport,
    rows: &'a HashMap<Uuid, Model>,
) -> Option<&'a Model> {
    rows.get(&report.lease.id.0)
        .filter(|row| match row.lease_token {
            Some(lease_token) => lease_token == report.lease.token,
            None => report.outcome == Outcome::Delivered,
        })
}

impl OutcomePlan {
    /// Plans one outcome for each notification. `rows` are the reported notifications that are
    /// still leased, delivered by these outcomes, or cancelled during the attempt.
    pub(super) fn new(
        reports: &[&AttemptReport],
        rows: &HashMap<Uuid, Model>,
        now: Timestamp,
    ) -> Self {
        let mut plan = Self::default();
        let mut planned = HashSet::new();
        for report in reports {
            if let Some(row) = row_of(report, rows).filter(|row| planned.insert(row.id)) {
                plan.add(report, row, now);
            }
        }
        plan
    }

    /// Cancels the retries of all webhooks except the enabled ones.
    pub(super) fn cancel_retries_except(&mut self, enabled: &BTreeSet<WebhookKey>) {
        for undelivered in self.undelivered.values_mut() {
            if undelivered.due_at.is_some() && !enabled.contains(&undelivered.webhook) {
                undelivered.state = CANCELLED;
                undelivered.due_at = None;
            }
        }
    }

    fn add(&mut self, report: &AttemptReport, row: &Model, now: Timestamp) {
        let webhook = webhooks::key(row.store_id, row.webhook_id);
        // The row of a delivered notification already counts this attempt.
        let delivered = report.outcome == Outcome::Delivered;
        let number = row.attempts + i64::from(!delivered);
        let attempts_since_resend =
            u32::try_from(number - row.attempts_at_resend).unwrap_or(u32::MAX);
        let (state, due_at) =
            match decide_retry(&report.outcome, attempts_since_resend, report.jitter, now) {
                RetryDecision::Delivered => (DELIVERED, None),
                // A cancelled notification becomes delivered or exhausted like any other, but is not retried:
                // it stays cancelled, its attempt is counted and its lease ends.
                RetryDecision::RetryAt(_) if row.state == CANCELLED => (CANCELLED, None),
                RetryDecision::RetryAt(due_at) => (PENDING, Some(due_at)),
                RetryDecision::Exhausted => (EXHAUSTED, None),
                RetryDecision::Gone => {
                    self.gone.insert(webhook);
                    (EXHAUSTED, None)
                }
            };
        if !delivered {
            let undelivered = Undelivered {
                webhook,
                state,
                due_at,
            };
            self.undelivered.insert(row.id, undelivered);
        }
        self.summarize(webhook, report, due_at);
        self.attempts.push(RecordedAttempt {
            store_id: webhook.store_id,
            number,
            recorded_at: now,
            report: report.clone(),
        });
    }

    fn summarize(
        &mut self,
        webhook: WebhookKey,
        report: &AttemptReport,
        retry_at: Option<Timestamp>,
    ) {
        let is_success = report.outcome == Outcome::Delivered;
        let before = self.summaries.get(&webhook);
        let retries = before.and_then(|before| before.earliest_retry);
        let summary = AttemptSummary {
            has_succeeded: is_success || before.is_some_and(|before| before.has_succeeded),
            has_failed: !is_success || before.is_some_and(|before| before.has_failed),
            last_succeeded: is_success,
            health: ReceiverHealth::after(&report.outcome, report.duration),
            earliest_retry: retries.into_iter().chain(retry_at).min(),
        };
        self.summaries.insert(webhook, summary);
    }
}
