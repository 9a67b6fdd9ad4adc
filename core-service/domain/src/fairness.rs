//! Fairness: how the places of a dispatcher are shared, so that a receiver that answers late or
//! never holds up nobody but itself.

use std::time::Duration;

use super::notification::{Failure, Outcome};

/// How a webhook's receiver has answered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// No attempt has ended yet.
    New,
    /// The last attempt ended soon, well or badly.
    Answering,
    /// The last attempt took long, however it ended.
    Slow,
}

impl Standing {
    /// As an attempt leaves it that took so long.
    ///
    /// What counts is for how long a place was taken: an answer just before the deadline, or a
    /// status whose body never comes, holds up others as much as no answer at all.
    pub fn after(outcome: &Outcome, took: Duration) -> Self {
        // A dispatcher's own deadline may be a shorter one.
        let ended_late = outcome.failure() == Some(Failure::Timeout);
        if ended_late || took >= LONG {
            Self::Slow
        } else {
            Self::Answering
        }
    }
}

/// From when on an attempt took long: a third of its deadline. A receiver may wake up, or do its
/// work before it answers, and is not slow yet; and eight such that have all places between them
/// give one back to others every 20 ms.
const LONG: Duration = Duration::from_secs(5);

/// For how long a dispatcher has a notification to itself: longer than the longest attempt, its
/// queueing and its report together.
pub const LEASE: Duration = Duration::from_mins(1);

/// How long after it was taken a notification may still be on its way to a receiver that answers;
/// more than an attempt takes. What was taken longer ago died with its dispatcher, and has no
/// place until its lease is over.
pub const ON_ITS_WAY: Duration = Duration::from_secs(20);

const _: () =
    assert!(LONG.as_secs() < ON_ITS_WAY.as_secs() && ON_ITS_WAY.as_secs() < LEASE.as_secs());

/// The most notifications of one answering webhook that are on their way at once: over all
/// dispatchers, as claims count them; on a stream, as births do.
const MOST_IN_FLIGHT: u32 = 32;

/// The places of one dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct Places(pub u32);

impl Places {
    /// How many notifications of one webhook may be on their way at once. A receiver of which
    /// nothing good is known has one place; another an eighth of all, within a limit, so that
    /// those that stop answering at the same moment don't take them all.
    pub fn of_one(self, standing: Standing) -> u32 {
        match standing {
            Standing::Answering => (self.0 / 8).clamp(1, MOST_IN_FLIGHT),
            Standing::New | Standing::Slow => 1,
        }
    }

    /// How many notifications of all webhooks of a standing may be on their way at once. A
    /// quarter is left to those that answer, whatever the others do, and new ones need not wait
    /// for dead ones.
    pub fn of_all(self, standing: Standing) -> u32 {
        match standing {
            Standing::Answering => self.0,
            Standing::New => (self.0 / 2).max(1),
            Standing::Slow => (self.0 / 4).max(1),
        }
    }
}

/// Free places for a claim.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The dispatcher's places, free or not.
    pub places: Places,
    /// How many are free in all.
    pub free: u32,
    /// How many of them new webhooks may have.
    pub free_for_new: u32,
    /// How many of them slow webhooks may have.
    pub free_for_slow: u32,
}

impl Room {
    /// How many places each of some webhooks gets, in their order; each is given by its standing
    /// and how many of its notifications are on their way already. None gets a second share
    /// before all had one.
    pub fn share(self, webhooks: &[(Standing, u32)]) -> Vec<u32> {
        let count = u32::try_from(webhooks.len()).unwrap_or(u32::MAX).max(1);
        let (mut new, mut slow) = (self.free_for_new, self.free_for_slow);
        let wanted: Vec<u32> = webhooks
            .iter()
            .map(|&(standing, in_flight)| {
                let own = self.places.of_one(standing).saturating_sub(in_flight);
                let of_all = match standing {
                    Standing::Answering => return own,
                    Standing::New => &mut new,
                    Standing::Slow => &mut slow,
                };
                let granted = own.min(*of_all);
                *of_all -= granted;
                granted
            })
            .collect();

        let mut free = self.free;
        let mut shares = vec![0; wanted.len()];
        for most in [(self.free / count).max(1), u32::MAX] {
            for (share, wanted) in shares.iter_mut().zip(&wanted) {
                let more = (wanted - *share).min(most).min(free);
                *share += more;
                free -= more;
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::{Standing::*, *};

    #[test]
    fn who_took_long_is_slow_whatever_came_of_it() {
        let failed = |failure, status| Outcome::Failed {
            failure,
            status,
            retry_after: None,
        };
        let refused = failed(Failure::Status, Some(500));
        let reset = failed(Failure::Protocol, None);
        for outcome in [Outcome::Delivered, refused, reset] {
            for (millis, expected) in [(0, Answering), (4_999, Answering), (5_000, Slow)] {
                let standing = Standing::after(&outcome, Duration::from_millis(millis));
                assert_eq!(standing, expected, "{outcome:?} after {millis} ms");
            }
        }
        let late = failed(Failure::Timeout, None);
        assert_eq!(Standing::after(&late, Duration::from_secs(1)), Slow);
    }

    fn room(free: u32) -> Room {
        Room {
            places: Places(256),
            free,
            free_for_new: 3,
            free_for_slow: 2,
        }
    }

    #[test]
    fn a_receiver_that_answers_has_many_places_and_another_has_one() {
        for (places, answering) in [(1, 1), (8, 1), (64, 8), (256, 32), (100_000, 32)] {
            assert_eq!(Places(places).of_one(Answering), answering);
            assert_eq!(Places(places).of_one(New), 1);
            assert_eq!(Places(places).of_one(Slow), 1);
        }
    }

    #[test]
    fn those_that_do_not_answer_never_have_all_places_together() {
        for places in 4..1000 {
            let doubtful = Places(places).of_all(New) + Places(places).of_all(Slow);
            assert!(doubtful * 4 <= places * 3, "{places}");
            assert!(Places(places).of_all(Slow) * 4 <= places, "{places}");
        }
    }

    #[test]
    fn free_places_are_shared_within_each_limit() {
        let share = |free, webhooks: &[_]| room(free).share(webhooks);

        assert_eq!(share(0, &[(Answering, 0)]), [0]);
        assert_eq!(share(100, &[(Answering, 30)]), [2]);
        assert_eq!(share(100, &[(Answering, 40)]), [0]);
        assert_eq!(share(10, &[(Answering, 0), (Answering, 0)]), [5, 5]);
        assert_eq!(share(10, &[(Answering, 30), (Answering, 0)]), [2, 8]);
        assert_eq!(share(2, &[(Answering, 0); 3]), [1, 1, 0]);
        assert_eq!(share(100, &[(New, 0); 5]), [1, 1, 1, 0, 0]);
        assert_eq!(share(100, &[(New, 1), (Slow, 1)]), [0, 0]);
        assert_eq!(
            share(100, &[(Slow, 0), (Slow, 0), (Slow, 0), (Answering, 0)]),
            [1, 1, 0, 32],
        );
        assert!(share(100, &[]).is_empty());
    }
}
