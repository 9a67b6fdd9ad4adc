//! The dispatcher's side of one stream: credit, notifications in flight, and outcomes that core
//! has not acknowledged. Pure.

use std::collections::{HashMap, VecDeque};

use proto::{Ack, Notification, Outcome, StreamRequest};
use tokio::time::Instant;

/// The maximum number of outcomes in one message, which stays far below gRPC's default of 4 MiB.
const MAX_OUTCOMES: usize = 128;

/// The maximum number of unacknowledged outcomes, as a multiple of the limit of notifications in
/// flight. Beyond it no credit is granted, so that a core that acknowledges nothing does not
/// exhaust memory.
pub(crate) const UNACKNOWLEDGED_FACTOR: usize = 4;

/// Name and lease token: one notification under one lease.
type LeaseKey = (String, String);

/// The outcome of an attempt, and how long core accepts it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeasedOutcome {
    pub outcome: Outcome,
    /// Core ignores the outcome after this instant. `None` if it is unknown.
    pub lease_expires_at: Option<Instant>,
}

/// Flow control and unacknowledged outcomes of the stream with one core.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// The maximum number of notifications in flight.
    limit: usize,
    /// Granted on the current stream and not used yet.
    credit: usize,
    /// Notifications accepted and not completed yet.
    in_flight: usize,
    /// Outcomes not yet reported on the current stream.
    unreported: VecDeque<LeaseKey>,
    /// Outcomes not yet acknowledged, reported or not.
    unacknowledged: HashMap<LeaseKey, LeasedOutcome>,
}

/// Core sent more notifications than it had credit for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("core sent {sent} notifications with a credit of {credit}")]
pub(crate) struct CreditExceeded {
    sent: usize,
    credit: usize,
}

impl StreamState {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            credit: 0,
            in_flight: 0,
            unreported: VecDeque::new(),
            unacknowledged: HashMap::new(),
        }
    }

    /// Changes the limit of notifications in flight. Does not revoke granted credit.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Starts a new stream without credit.
    pub(crate) fn begin_stream(&mut self) {
        self.credit = 0;
    }

    /// Removes all unacknowledged outcomes, to be reported on another stream. Any core can record
    /// them by their lease token.
    pub(crate) fn take_unacknowledged(&mut self) -> Vec<LeasedOutcome> {
        self.unreported.clear();
        self.unacknowledged
            .drain()
            .map(|(_, outcome)| outcome)
            .collect()
    }

    /// Counts received notifications as in flight.
    pub(crate) fn accept(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        self.decline(notifications)?;
        self.in_flight += notifications.len();
        Ok(())
    }

    /// Uses credit for received notifications that are not sent.
    pub(crate) fn decline(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        let sent = notifications.len();
        self.credit = self.credit.checked_sub(sent).ok_or(CreditExceeded {
            sent,
            credit: self.credit,
        })?;
        Ok(())
    }

    /// Completes a send. If it panicked, there is no outcome, and the lease expires.
    pub(crate) fn complete(&mut self, outcome: Option<LeasedOutcome>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.enqueue(outcome);
    }

    /// Enqueues outcomes to be reported, of this session's or another's sends.
    pub(crate) fn enqueue(&mut self, outcomes: impl IntoIterator<Item = LeasedOutcome>) {
        for leased in outcomes {
            let outcome = &leased.outcome;
            let key = (outcome.name.clone(), outcome.lease_token.clone());
            self.unreported.push_back(key.clone());
            self.unacknowledged.insert(key, leased);
        }
    }

    /// How many more outcomes of other sessions can be enqueued.
    pub(crate) fn spare_capacity(&self) -> usize {
        let used = self.in_flight + self.credit + self.unacknowledged.len();
        (UNACKNOWLEDGED_FACTOR * self.limit).saturating_sub(used)
    }

    pub(crate) fn acknowledge(&mut self, ack: Ack) {
        self.unacknowledged.remove(&(ack.name, ack.lease_token));
    }

    /// Whether the next request would contain outcomes or credit.
    pub(crate) fn has_request(&self, accepting: bool) -> bool {
        !self.unreported.is_empty() || (accepting && self.grantable_credit() > 0)
    }

    /// The next request: unreported outcomes, and new credit while accepting notifications.
    pub(crate) fn next_request(&mut self, accepting: bool) -> StreamRequest {
        let count = self.unreported.len().min(MAX_OUTCOMES);
        let outcomes = self
            .unreported
            .drain(..count)
            .filter_map(|key| self.unacknowledged.get(&key))
            .map(|leased| leased.outcome.clone())
            .collect();

        let granted = if accepting {
            self.grantable_credit()
        } else {
            0
        };
        self.credit += granted;
        StreamRequest {
            credit: u32::try_from(granted).unwrap_or(u32::MAX),
            outcomes,
            ..StreamRequest::default()
        }
    }

    /// Whether nothing is in flight or unreported.
    pub(crate) fn all_reported(&self) -> bool {
        self.in_flight == 0 && self.unreported.is_empty()
    }

    /// Whether nothing is in flight or unacknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        self.in_flight == 0 && self.unacknowledged.is_empty()
    }

    fn grantable_credit(&self) -> usize {
        let used = self.in_flight + self.credit;
        self.limit.saturating_sub(used).min(self.spare_capacity())
    }
}

#[cfg(test)]
mod tests;
