//! The life of a token signing key: published, signing, retired, forgotten.
//!
//! All of it follows from when keys were made. A new key signs only after a while, so that every
//! core, and whoever keeps a copy of the public keys, knows it before its first token arrives.
//! An old key judges tokens until the last that it can have signed has expired.

use jiff::{SignedDuration, Timestamp};

/// How long a new key is public before it signs.
pub const PUBLISHED_FIRST: SignedDuration = SignedDuration::from_mins(1);

/// How old a core's knowledge of the keys may be when it signs: less than a new key takes to
/// begin.
pub const KNOWN_FOR: SignedDuration = SignedDuration::from_secs(30);

/// The longest life of a token that a core can be told to give, in seconds.
pub const LONGEST_TOKEN: u32 = 86_400;

/// Where a key is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Public, and not signing yet.
    Published,
    /// Signs new tokens.
    Signing,
    /// Judges what it has signed.
    Retired,
}

/// A key's life, as far as it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub created_at: Timestamp,
    pub signs_from: Timestamp,
    /// When its successor takes over.
    signs_until: Option<Timestamp>,
    /// Until when what it signed is accepted.
    pub accepted_until: Option<Timestamp>,
}

impl Life {
    /// The lives of keys made at these instants, newest first.
    pub fn of_all(created: &[Timestamp]) -> Vec<Self> {
        let oldest = created.len().saturating_sub(1);
        let signs_from = |index: usize| {
            // There was no other that could have signed before it.
            if index == oldest {
                created[index]
            } else {
                later(created[index], PUBLISHED_FIRST)
            }
        };
        (0..created.len())
            .map(|index| {
                let signs_until = index.checked_sub(1).map(signs_from);
                Self {
                    created_at: created[index],
                    signs_from: signs_from(index),
                    signs_until,
                    // A core that does not know yet signs a little longer.
                    accepted_until: signs_until.map(|until| {
                        let token = SignedDuration::from_secs(LONGEST_TOKEN.into());
                        later(later(until, KNOWN_FOR), token)
                    }),
                }
            })
            .collect()
    }

    /// Where it is at an instant; none when it is over.
    pub fn state(&self, now: Timestamp) -> Option<State> {
        if self.accepted_until.is_some_and(|until| until <= now) {
            None
        } else if self.signs_until.is_some_and(|until| until <= now) {
            Some(State::Retired)
        } else if self.signs_from <= now {
            Some(State::Signing)
        } else {
            Some(State::Published)
        }
    }
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[track_caller]
    fn check(created: &[i64], now: i64, expected: &[Option<State>]) {
        let created: Vec<_> = created.iter().copied().map(at).collect();
        let states: Vec<_> = Life::of_all(&created)
            .iter()
            .map(|life| life.state(at(now)))
            .collect();
        assert_eq!(states, expected);
    }

    use State::{Published, Retired, Signing};

    #[test]
    fn the_first_key_signs_at_once() {
        check(&[100], 100, &[Some(Signing)]);
        check(&[], 100, &[]);
    }

    #[test]
    fn a_new_key_is_public_for_a_minute_before_it_signs() {
        check(&[1000, 100], 1000, &[Some(Published), Some(Signing)]);
        check(&[1000, 100], 1059, &[Some(Published), Some(Signing)]);
        check(&[1000, 100], 1060, &[Some(Signing), Some(Retired)]);
    }

    #[test]
    fn an_old_key_judges_until_its_last_token_has_expired() {
        let last = 1060 + 30 + 86_400;
        check(&[1000, 100], last - 1, &[Some(Signing), Some(Retired)]);
        check(&[1000, 100], last, &[Some(Signing), None]);
    }

    #[test]
    fn of_two_rotations_in_a_row_the_second_wins() {
        let created = [1010, 1000, 100];
        check(
            &created,
            1020,
            &[Some(Published), Some(Published), Some(Signing)],
        );
        check(
            &created,
            1065,
            &[Some(Published), Some(Signing), Some(Retired)],
        );
        check(
            &created,
            1070,
            &[Some(Signing), Some(Retired), Some(Retired)],
        );
    }

    #[test]
    fn of_two_first_keys_one_signs() {
        // Two cores that started at the same moment made one each.
        check(&[100, 100], 100, &[Some(Published), Some(Signing)]);
    }
}
