//! The lifecycle of a token signing key: published, signing, retired, expired.
//!
//! The lifecycle follows from the creation times of the keys alone. A new key is published for a
//! while before it signs, so that every core and every client with cached public keys has it before
//! its first token arrives. A retired key verifies tokens until the last token it can have signed
//! expires.

use jiff::{SignedDuration, Timestamp};

/// How long a new key is published before it signs.
const PREPUBLICATION_PERIOD: SignedDuration = SignedDuration::from_mins(1);

/// The maximum age of a core's cached keys when it signs: less than the prepublication period.
pub const KEY_CACHE_MAX_AGE: SignedDuration = SignedDuration::from_secs(30);

/// Upper limit of the configurable token lifetime, in seconds.
pub const MAX_TOKEN_LIFETIME_SECONDS: u32 = 86_400;
const MAX_TOKEN_LIFETIME: SignedDuration =
    SignedDuration::from_secs(MAX_TOKEN_LIFETIME_SECONDS as i64);

/// A key's state in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Public, but not signing yet.
    Published,
    /// Signs new tokens.
    Signing,
    /// Only verifies the tokens it has signed.
    Retired,
}

/// The times of a key's state changes; absent times depend on a key that is not created yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLifecycle {
    pub created_at: Timestamp,
    pub signs_from: Timestamp,
    /// When its successor starts to sign.
    signs_until: Option<Timestamp>,
    /// When its tokens are no longer accepted.
    pub accepted_until: Option<Timestamp>,
}

impl KeyLifecycle {
    /// The lifecycles of all keys, given their creation times, newest first.
    pub fn of_all(created: &[Timestamp]) -> Vec<Self> {
        let mut next_signs_from = None;
        let lifecycles = created.iter().enumerate().map(|(index, created_at)| {
            let is_oldest = index + 1 == created.len();
            // The first key signs at once: there is no other one to sign with.
            let signs_from = if is_oldest {
                *created_at
            } else {
                saturating_add(*created_at, PREPUBLICATION_PERIOD)
            };
            let signs_until = next_signs_from.replace(signs_from);
            Self {
                created_at: *created_at,
                signs_from,
                signs_until,
                // A core with cached keys may still sign with the old one.
                accepted_until: signs_until.map(|until| {
                    saturating_add(saturating_add(until, KEY_CACHE_MAX_AGE), MAX_TOKEN_LIFETIME)
                }),
            }
        });
        lifecycles.collect()
    }

    /// The state at an instant; `None` once the key has expired.
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

fn saturating_add(instant: Timestamp, by: SignedDuration) -> Timestamp {
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
        let states: Vec<_> = KeyLifecycle::of_all(&created)
            .iter()
            .map(|lifecycle| lifecycle.state(at(now)))
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
    fn a_new_key_is_published_for_a_minute_before_it_signs() {
        check(&[1000, 100], 1000, &[Some(Published), Some(Signing)]);
        check(&[1000, 100], 1059, &[Some(Published), Some(Signing)]);
        check(&[1000, 100], 1060, &[Some(Signing), Some(Retired)]);
    }

    #[test]
    fn a_retired_key_verifies_until_its_last_token_expires() {
        let last = 1060 + 30 + 86_400;
        check(&[1000, 100], last - 1, &[Some(Signing), Some(Retired)]);
        check(&[1000, 100], last, &[Some(Signing), None]);
    }

    #[test]
    fn after_two_rotations_the_second_key_signs() {
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
    fn one_of_two_first_keys_signs() {
        // Two cores that start at the same moment each create a key.
        check(&[100, 100], 100, &[Some(Published), Some(Signing)]);
    }
}
