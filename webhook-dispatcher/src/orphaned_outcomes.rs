//! Outcomes of sessions without a stream. All cores share the leases, so any session with a stream
//! can report them. Pure.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::stream_state::LeasedOutcome;

/// The queue of orphaned outcomes, shared by all sessions.
#[derive(Debug)]
pub(crate) struct OrphanedOutcomes {
    /// The maximum length of the queue.
    limit: usize,
    /// The oldest first.
    queue: VecDeque<LeasedOutcome>,
    /// The number of sessions with sends in flight or unacknowledged outcomes.
    active_sessions: usize,
}

impl OrphanedOutcomes {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            queue: VecDeque::new(),
            active_sessions: 0,
        }
    }

    /// Enqueues outcomes and returns how many were dropped beyond the limit: the oldest, whose
    /// leases expire first.
    pub(crate) fn push(&mut self, outcomes: Vec<LeasedOutcome>, now: Instant) -> usize {
        self.remove_expired(now);
        self.queue.extend(outcomes);
        let excess = self.queue.len().saturating_sub(self.limit);
        self.queue.drain(..excess);
        excess
    }

    /// Dequeues at most `max` outcomes, the oldest first.
    pub(crate) fn take(&mut self, max: usize, now: Instant) -> Vec<LeasedOutcome> {
        self.remove_expired(now);
        let count = max.min(self.queue.len());
        self.queue.drain(..count).collect()
    }

    /// Removes outcomes whose lease has expired: core would ignore them.
    pub(crate) fn remove_expired(&mut self, now: Instant) {
        self.queue
            .retain(|outcome| outcome.lease_expires_at.is_none_or(|expiry| now < expiry));
    }

    /// Counts one more active session, or one less.
    pub(crate) fn adjust_active_sessions(&mut self, active: bool) {
        self.active_sessions = if active {
            self.active_sessions + 1
        } else {
            self.active_sessions.saturating_sub(1)
        };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether every session is drained and the queue is empty.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.active_sessions == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::Outcome;

    use super::*;

    fn outcome(number: usize, lease_expires_at: Option<Instant>) -> LeasedOutcome {
        LeasedOutcome {
            outcome: Outcome {
                name: format!("notifications/{number}"),
                ..Outcome::default()
            },
            lease_expires_at,
        }
    }

    fn outcomes(numbers: impl IntoIterator<Item = usize>) -> Vec<LeasedOutcome> {
        let numbers = numbers.into_iter();
        numbers.map(|number| outcome(number, None)).collect()
    }

    #[test]
    fn the_oldest_outcomes_are_taken_first_and_once() {
        let now = Instant::now();
        let mut orphaned = OrphanedOutcomes::new(10);
        assert_eq!(orphaned.push(outcomes([1, 2]), now), 0);
        assert_eq!(orphaned.push(outcomes([3]), now), 0);

        assert_eq!(orphaned.take(2, now), outcomes([1, 2]));
        assert_eq!(orphaned.take(2, now), outcomes([3]));
        assert!(orphaned.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_oldest_outcomes_are_dropped() {
        let now = Instant::now();
        let mut orphaned = OrphanedOutcomes::new(3);
        orphaned.push(outcomes([1, 2]), now);

        assert_eq!(orphaned.push(outcomes([3, 4, 5]), now), 2);

        assert_eq!(orphaned.take(10, now), outcomes([3, 4, 5]));
    }

    #[test]
    fn an_outcome_with_an_expired_lease_is_not_taken_and_uses_no_capacity() {
        let now = Instant::now();
        let later = now + Duration::from_mins(1);
        let (expiring, unlimited) = (outcome(1, Some(later)), outcome(2, None));
        let mut orphaned = OrphanedOutcomes::new(2);
        orphaned.push(vec![expiring.clone(), unlimited.clone()], now);

        assert_eq!(orphaned.push(outcomes([3]), later), 0);
        assert_eq!(orphaned.take(10, later), [unlimited, outcome(3, None)]);

        orphaned.push(vec![expiring], now);
        orphaned.remove_expired(later);
        assert!(orphaned.is_drained());
    }

    #[test]
    fn the_queue_is_drained_without_active_sessions_and_outcomes() {
        let now = Instant::now();
        let mut orphaned = OrphanedOutcomes::new(2);
        assert!(orphaned.is_drained());

        orphaned.adjust_active_sessions(true);
        orphaned.push(outcomes([1]), now);
        orphaned.adjust_active_sessions(false);
        assert!(!orphaned.is_drained());

        orphaned.adjust_active_sessions(true);
        orphaned.take(1, now);
        assert!(!orphaned.is_drained());
        orphaned.adjust_active_sessions(false);
        assert!(orphaned.is_drained());
    }
}
