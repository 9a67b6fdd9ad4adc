//! What a batch of reports comes to, before anything of it is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{
    fairness::Standing,
    id::{StoreId, WebhookId},
    notification::{Next, Outcome, after},
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    DROPPED,
    outcomes::{Attempt, Report},
    queue::Owner,
    standing::Endings,
};

use crate::entity::notification::Model;

/// What becomes of notifications, but for those that are delivered: they are so already.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    pub(super) attempts: Vec<Attempt>,
    pub(super) endings: Endings,
    /// Whose they are, and when they are due again.
    pub(super) retried: BTreeMap<Uuid, (Owner, Timestamp)>,
    pub(super) given_up: Vec<Uuid>,
    pub(super) dropped: Vec<Uuid>,
    /// Webhooks whose receivers say that they are gone.
    pub(super) gone: BTreeSet<Owner>,
}

impl Verdicts {
    /// Of reports that each speak of another notification, by the rows of those whose leases
    /// were not over.
    pub(super) fn of(reports: &[&Report], rows: &HashMap<Uuid, Model>, now: Timestamp) -> Self {
        let mut verdicts = Self::default();
        for report in reports {
            if let Some(row) = rows.get(&report.id.0) {
                verdicts.add(report, row, now);
            }
        }
        verdicts
    }

    /// What was to be tried again of any but these is dropped.
    pub(super) fn keep_owed(&mut self, enabled: &BTreeSet<Owner>) {
        let dropped = self
            .retried
            .extract_if(.., |_, (owner, _)| !enabled.contains(owner));
        self.dropped.extend(dropped.map(|(id, _)| id));
    }

    fn add(&mut self, report: &Report, row: &Model, now: Timestamp) {
        let owner = (StoreId(row.store_id), WebhookId(row.webhook_id));
        // A delivered one has been counted already.
        let delivered = report.outcome == Outcome::Delivered;
        let number = row.attempts + i64::from(!delivered);
        let counted = u32::try_from(number - row.restarted_after).unwrap_or(u32::MAX);
        match after(&report.outcome, counted, report.jitter, now) {
            Next::Delivered => {}
            Next::RetryAt(_) if row.state == DROPPED => self.dropped.push(row.id),
            Next::RetryAt(due_at) => {
                self.retried.insert(row.id, (owner, due_at));
                let due = self.endings.due.entry(owner).or_insert(due_at);
                *due = due_at.min(*due);
            }
            Next::GivenUp => self.given_up.push(row.id),
            Next::Gone => {
                self.given_up.push(row.id);
                self.gone.insert(owner);
            }
        }
        self.note(owner, report);
        self.attempts.push(Attempt {
            store_id: owner.0,
            number,
            recorded_at: now,
            report: report.clone(),
        });
    }

    fn note(&mut self, owner: Owner, report: &Report) {
        let endings = &mut self.endings;
        match Standing::after(&report.outcome, report.duration) {
            Standing::Slow => endings.slow.insert(owner),
            Standing::New | Standing::Answering => endings.slow.remove(&owner),
        };
        match report.outcome {
            Outcome::Delivered => {
                endings.succeeded.insert(owner);
                endings.last_succeeded.insert(owner);
            }
            Outcome::Failed { .. } => {
                endings.last_succeeded.remove(&owner);
                endings.failed.insert(owner);
            }
        }
    }
}
