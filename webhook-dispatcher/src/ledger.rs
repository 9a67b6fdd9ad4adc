//! What is held of one core, and what it is owed for it: credit, outcomes, confirmations. Pure.

use std::collections::{HashMap, VecDeque};

use proto::{Notification, Outcome, Recorded, StreamRequest};
use tokio::time::Instant;

/// The most outcomes in one message, so that it stays far below gRPC's usual 4 MiB.
const MAX_OUTCOMES: usize = 128;

/// How many outcomes may wait for their confirmation, as a multiple of the limit, before no more
/// credit is granted: a core that cannot record must not fill our memory.
pub(crate) const MAX_UNRECORDED: usize = 4;

/// Name and lease token: one notification under one lease.
type Lease = (String, String);

/// How a notification's attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub outcome: Outcome,
    /// The end of its lease: what is told later counts for nothing. None if it is not known.
    pub until: Option<Instant>,
}

/// The account with one core.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// How many notifications may be in flight.
    limit: usize,
    /// Granted on the present stream and not yet used.
    credit: usize,
    in_flight: usize,
    /// Outcomes not yet reported on the present stream.
    unreported: VecDeque<Lease>,
    /// Outcomes not yet confirmed, reported or not.
    unrecorded: HashMap<Lease, Report>,
}

/// A core sent more than it was asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("core sent {sent} notifications with a credit of {credit}")]
pub(crate) struct CreditExceeded {
    sent: usize,
    credit: usize,
}

impl Ledger {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            credit: 0,
            in_flight: 0,
            unreported: VecDeque::new(),
            unrecorded: HashMap::new(),
        }
    }

    /// How many may be in flight from now on. Credit that was granted stays granted.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// A new stream: credit begins at nothing.
    pub(crate) fn begin_stream(&mut self) {
        self.credit = 0;
    }

    /// There is no stream: gives back what is not confirmed, to be reported again elsewhere. The
    /// lease token tells every core whether it still matters.
    pub(crate) fn give_back(&mut self) -> Vec<Report> {
        self.unreported.clear();
        self.unrecorded.drain().map(|(_, report)| report).collect()
    }

    /// Takes notifications into flight.
    pub(crate) fn take(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        self.decline(notifications)?;
        self.in_flight += notifications.len();
        Ok(())
    }

    /// Notes notifications that came and will not be sent.
    pub(crate) fn decline(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        let sent = notifications.len();
        self.credit = self.credit.checked_sub(sent).ok_or(CreditExceeded {
            sent,
            credit: self.credit,
        })?;
        Ok(())
    }

    /// A send has ended; without an outcome if it was lost, and then its lease ends it.
    pub(crate) fn finish(&mut self, report: Option<Report>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.adopt(report);
    }

    /// Takes outcomes to be reported, whoever made the attempts.
    pub(crate) fn adopt(&mut self, reports: impl IntoIterator<Item = Report>) {
        for report in reports {
            let outcome = &report.outcome;
            let lease = (outcome.name.clone(), outcome.lease_token.clone());
            self.unreported.push_back(lease.clone());
            self.unrecorded.insert(lease, report);
        }
    }

    /// How many outcomes of others there is room for.
    pub(crate) fn room(&self) -> usize {
        let held = self.in_flight + self.credit + self.unrecorded.len();
        (MAX_UNRECORDED * self.limit).saturating_sub(held)
    }

    pub(crate) fn record(&mut self, recorded: Recorded) {
        self.unrecorded
            .remove(&(recorded.name, recorded.lease_token));
    }

    /// Whether there is anything to tell core.
    pub(crate) fn has_request(&self, accepting: bool) -> bool {
        !self.unreported.is_empty() || (accepting && self.grantable() > 0)
    }

    /// All that there is to tell core: what has gathered, and new credit while accepting.
    pub(crate) fn next_request(&mut self, accepting: bool) -> StreamRequest {
        let count = self.unreported.len().min(MAX_OUTCOMES);
        let outcomes = self
            .unreported
            .drain(..count)
            .filter_map(|lease| self.unrecorded.get(&lease))
            .map(|report| report.outcome.clone())
            .collect();

        let grant = if accepting { self.grantable() } else { 0 };
        self.credit += grant;
        StreamRequest {
            credit: u32::try_from(grant).unwrap_or(u32::MAX),
            outcomes,
            ..StreamRequest::default()
        }
    }

    /// Whether nothing is in flight or waits to be reported.
    pub(crate) fn is_reported(&self) -> bool {
        self.in_flight == 0 && self.unreported.is_empty()
    }

    /// Whether core has confirmed all it is owed.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_flight == 0 && self.unrecorded.is_empty()
    }

    fn grantable(&self) -> usize {
        let taken = self.in_flight + self.credit;
        self.limit.saturating_sub(taken).min(self.room())
    }
}

#[cfg(test)]
mod tests;
