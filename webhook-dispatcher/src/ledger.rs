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
mod tests {
    use super::*;

    fn notifications(count: usize) -> Vec<Notification> {
        vec![Notification::default(); count]
    }

    fn outcome(number: usize) -> Outcome {
        Outcome {
            name: format!("notifications/{number}"),
            lease_token: format!("lease-{number}"),
            ..Outcome::default()
        }
    }

    fn recorded(number: usize) -> Recorded {
        Recorded {
            name: format!("notifications/{number}"),
            lease_token: format!("lease-{number}"),
        }
    }

    fn report(number: usize) -> Report {
        Report {
            outcome: outcome(number),
            until: None,
        }
    }

    /// A ledger on a stream, its whole limit granted.
    fn ledger(limit: usize) -> Ledger {
        let mut ledger = Ledger::new(limit);
        assert_eq!(ledger.next_request(true).credit as usize, limit);
        ledger
    }

    #[test]
    fn credit_comes_back_with_the_outcome() {
        let mut ledger = ledger(3);
        assert!(!ledger.has_request(true));

        ledger.take(&notifications(2)).unwrap();
        assert!(!ledger.has_request(true));
        ledger.finish(Some(report(1)));

        assert_eq!(
            ledger.next_request(true),
            StreamRequest {
                credit: 1,
                outcomes: vec![outcome(1)],
                ..StreamRequest::default()
            }
        );
        assert!(!ledger.has_request(true));
    }

    #[test]
    fn more_than_the_credit_is_refused_whole() {
        let mut ledger = ledger(3);
        ledger.take(&notifications(2)).unwrap();
        assert_eq!(
            ledger.take(&notifications(2)),
            Err(CreditExceeded { sent: 2, credit: 1 })
        );
        assert_eq!(ledger.take(&notifications(1)), Ok(()));
    }

    #[test]
    fn without_a_stream_the_unconfirmed_is_given_back_and_the_next_counts_what_is_in_flight() {
        let mut ledger = ledger(5);
        ledger.take(&notifications(4)).unwrap();
        for number in 1..=2 {
            ledger.finish(Some(report(number)));
        }
        ledger.next_request(true);
        ledger.record(recorded(1));
        ledger.finish(Some(report(3)));

        let mut unconfirmed = ledger.give_back();
        ledger.begin_stream();

        unconfirmed.sort_by(|one, other| one.outcome.name.cmp(&other.outcome.name));
        assert_eq!(unconfirmed, [report(2), report(3)]);
        assert_eq!(
            ledger.next_request(true),
            StreamRequest {
                credit: 4,
                ..StreamRequest::default()
            }
        );
        assert!(!ledger.is_settled(), "one is in flight");
        ledger.finish(None);
        assert!(ledger.is_settled());
    }

    #[test]
    fn what_others_sent_is_reported_and_confirmed_as_ones_own() {
        let mut ledger = ledger(2);
        assert_eq!(ledger.room(), 6, "what credit may bring has its place");

        ledger.adopt((0..6).map(report));

        assert_eq!(ledger.room(), 0);
        assert_eq!(ledger.next_request(true).outcomes.len(), 6);
        assert!(ledger.is_reported() && !ledger.is_settled());
        for number in 0..6 {
            ledger.record(recorded(number));
        }
        assert!(ledger.is_settled());
    }

    #[test]
    fn what_is_declined_uses_credit_and_is_not_in_flight() {
        let mut ledger = ledger(2);
        ledger.decline(&notifications(2)).unwrap();
        assert!(ledger.is_settled());
        assert_eq!(
            ledger.decline(&notifications(1)),
            Err(CreditExceeded { sent: 1, credit: 0 })
        );
    }

    #[test]
    fn nothing_is_granted_while_not_accepting() {
        let mut ledger = ledger(2);
        ledger.take(&notifications(1)).unwrap();
        assert!(!ledger.is_reported());
        ledger.finish(Some(report(1)));

        let request = ledger.next_request(false);

        assert_eq!((request.credit, request.outcomes.len()), (0, 1));
        assert!(!ledger.has_request(false));
        assert!(ledger.is_reported() && !ledger.is_settled());
        ledger.record(recorded(1));
        assert!(ledger.is_settled());
    }

    #[test]
    fn a_core_that_records_nothing_gets_no_endless_credit() {
        let mut ledger = ledger(2);
        let mut sent = 0;
        let mut granted = 2;
        while granted > 0 {
            ledger.take(&notifications(granted)).unwrap();
            for _ in 0..granted {
                sent += 1;
                ledger.finish(Some(report(sent)));
            }
            granted = ledger.next_request(true).credit as usize;
        }
        assert_eq!(sent, 8);

        ledger.record(recorded(1));
        assert_eq!(ledger.next_request(true).credit, 1);
    }

    #[test]
    fn a_message_holds_a_bounded_number_of_outcomes() {
        let mut ledger = ledger(300);
        ledger.take(&notifications(300)).unwrap();
        for number in 0..300 {
            ledger.finish(Some(report(number)));
        }
        let sizes: Vec<_> = (0..4)
            .map(|_| ledger.next_request(true).outcomes.len())
            .collect();
        assert_eq!(sizes, [128, 128, 44, 0]);
    }

    #[test]
    fn a_new_limit_holds_for_what_is_granted_next() {
        let mut ledger = ledger(2);
        ledger.set_limit(5);
        assert_eq!(ledger.next_request(true).credit, 3);

        ledger.set_limit(1);
        ledger.take(&notifications(5)).unwrap();
        for number in 0..4 {
            ledger.finish(Some(report(number)));
            ledger.record(recorded(number));
            assert_eq!(ledger.next_request(true).credit, 0);
        }
        ledger.finish(Some(report(4)));
        ledger.record(recorded(4));
        assert_eq!(ledger.next_request(true).credit, 1);
    }

    #[test]
    fn a_lost_send_gives_its_place_back() {
        let mut ledger = ledger(1);
        ledger.take(&notifications(1)).unwrap();
        ledger.finish(None);
        assert_eq!(ledger.next_request(true).credit, 1);
        assert!(ledger.is_reported());
    }
}
