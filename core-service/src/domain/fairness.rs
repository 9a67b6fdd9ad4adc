//! Fairness: how the places of a dispatcher are shared, so that a receiver that never answers
//! holds up nobody but itself.

/// How a webhook's receiver has answered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// No attempt has ended yet.
    New,
    /// The last attempt ended by itself, well or badly.
    Answering,
    /// The last attempt ended at the deadline.
    TimedOut,
}

/// The most notifications of one answering webhook that are on their way at once, over all
/// dispatchers.
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
            Standing::New | Standing::TimedOut => 1,
        }
    }

    /// How many notifications of all webhooks of a standing may be on their way at once. A
    /// quarter is left to those that answer, whatever the others do, and new ones need not wait
    /// for dead ones.
    pub fn of_all(self, standing: Standing) -> u32 {
        match standing {
            Standing::Answering => self.0,
            Standing::New => (self.0 / 2).max(1),
            Standing::TimedOut => (self.0 / 4).max(1),
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
    /// How many of them webhooks that timed out may have.
    pub free_for_timed_out: u32,
}

impl Room {
    /// How many places each of some webhooks gets, in their order; each is given by its standing
    /// and how many of its notifications are on their way already. None gets a second share
    /// before all had one.
    pub fn share(self, webhooks: &[(Standing, u32)]) -> Vec<u32> {
        let count = u32::try_from(webhooks.len()).unwrap_or(u32::MAX).max(1);
        let (mut new, mut timed_out) = (self.free_for_new, self.free_for_timed_out);
        let wanted: Vec<u32> = webhooks
            .iter()
            .map(|&(standing, in_flight)| {
                let own = self.places.of_one(standing).saturating_sub(in_flight);
                let of_all = match standing {
                    Standing::Answering => return own,
                    Standing::New => &mut new,
                    Standing::TimedOut => &mut timed_out,
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

    fn room(free: u32) -> Room {
        Room {
            places: Places(256),
            free,
            free_for_new: 3,
            free_for_timed_out: 2,
        }
    }

    #[test]
    fn a_receiver_that_answers_has_many_places_and_another_has_one() {
        for (places, answering) in [(1, 1), (8, 1), (64, 8), (256, 32), (100_000, 32)] {
            assert_eq!(Places(places).of_one(Answering), answering);
            assert_eq!(Places(places).of_one(New), 1);
            assert_eq!(Places(places).of_one(TimedOut), 1);
        }
    }

    #[test]
    fn those_that_do_not_answer_never_have_all_places_together() {
        for places in 4..1000 {
            let doubtful = Places(places).of_all(New) + Places(places).of_all(TimedOut);
            assert!(doubtful * 4 <= places * 3, "{places}");
            assert!(Places(places).of_all(TimedOut) * 4 <= places, "{places}");
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
        assert_eq!(share(100, &[(New, 1), (TimedOut, 1)]), [0, 0]);
        assert_eq!(
            share(
                100,
                &[(TimedOut, 0), (TimedOut, 0), (TimedOut, 0), (Answering, 0)]
            ),
            [1, 1, 0, 32],
        );
        assert!(share(100, &[]).is_empty());
    }
}
