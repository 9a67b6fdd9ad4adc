//! Outcomes that no stream is there for. Any core can record them, since leases are the same to
//! all: whichever exchange has a stream takes them. Pure.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::ledger::Report;

/// What all exchanges share.
#[derive(Debug)]
pub(crate) struct Strays {
    /// How many may wait.
    limit: usize,
    /// The longest waiting first.
    waiting: VecDeque<Report>,
    /// How many exchanges have sends under way or outcomes that are not confirmed.
    holders: usize,
}

impl Strays {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            holders: 0,
        }
    }

    /// Leaves outcomes to whoever takes them. Gives how many there is no room for: the longest
    /// waiting go, whose leases have the least left.
    pub(crate) fn leave(&mut self, reports: Vec<Report>, now: Instant) -> usize {
        self.forget_stale(now);
        self.waiting.extend(reports);
        let excess = self.waiting.len().saturating_sub(self.limit);
        self.waiting.drain(..excess);
        excess
    }

    /// Takes so many at most, the longest waiting first.
    pub(crate) fn take(&mut self, most: usize, now: Instant) -> Vec<Report> {
        self.forget_stale(now);
        let count = most.min(self.waiting.len());
        self.waiting.drain(..count).collect()
    }

    /// Drops those whose lease is over: they count for nothing.
    pub(crate) fn forget_stale(&mut self, now: Instant) {
        self.waiting
            .retain(|report| report.until.is_none_or(|until| now < until));
    }

    /// Notes an exchange that begins or ends to hold something.
    pub(crate) fn count_holder(&mut self, holds: bool) {
        self.holders = if holds {
            self.holders + 1
        } else {
            self.holders.saturating_sub(1)
        };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether all that any exchange was given is confirmed, or counts for nothing any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.holders == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::Outcome;

    use super::*;

    fn report(number: usize, until: Option<Instant>) -> Report {
        Report {
            outcome: Outcome {
                name: format!("notifications/{number}"),
                ..Outcome::default()
            },
            until,
        }
    }

    fn reports(numbers: impl IntoIterator<Item = usize>) -> Vec<Report> {
        let numbers = numbers.into_iter();
        numbers.map(|number| report(number, None)).collect()
    }

    #[test]
    fn the_longest_waiting_are_taken_first_and_once() {
        let now = Instant::now();
        let mut strays = Strays::new(10);
        assert_eq!(strays.leave(reports([1, 2]), now), 0);
        assert_eq!(strays.leave(reports([3]), now), 0);

        assert_eq!(strays.take(2, now), reports([1, 2]));
        assert_eq!(strays.take(2, now), reports([3]));
        assert!(strays.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_longest_waiting_go() {
        let now = Instant::now();
        let mut strays = Strays::new(3);
        strays.leave(reports([1, 2]), now);

        assert_eq!(strays.leave(reports([3, 4, 5]), now), 2);

        assert_eq!(strays.take(10, now), reports([3, 4, 5]));
    }

    #[test]
    fn what_has_no_lease_any_more_is_neither_taken_nor_in_the_way() {
        let now = Instant::now();
        let later = now + Duration::from_mins(1);
        let (over, lasting) = (report(1, Some(later)), report(2, None));
        let mut strays = Strays::new(2);
        strays.leave(vec![over.clone(), lasting.clone()], now);

        assert_eq!(strays.leave(reports([3]), later), 0);
        assert_eq!(strays.take(10, later), [lasting, report(3, None)]);

        strays.leave(vec![over], now);
        strays.forget_stale(later);
        assert!(strays.is_settled());
    }

    #[test]
    fn all_is_settled_when_nobody_holds_anything_and_nothing_waits() {
        let now = Instant::now();
        let mut strays = Strays::new(2);
        assert!(strays.is_settled());

        strays.count_holder(true);
        strays.leave(reports([1]), now);
        strays.count_holder(false);
        assert!(!strays.is_settled());

        strays.count_holder(true);
        strays.take(1, now);
        assert!(!strays.is_settled());
        strays.count_holder(false);
        assert!(strays.is_settled());
    }
}
