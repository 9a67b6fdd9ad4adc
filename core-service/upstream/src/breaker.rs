//! A circuit breaker: after failures in a row a service rests, then one call tries whether it is
//! back. What calls cost that can only fail is spared to both sides.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Error;

/// Failures in a row after which a service rests.
const THRESHOLD: u32 = 5;
/// How long it rests, if it does not say itself.
const REST: Duration = Duration::from_secs(10);
/// The longest rest a service may ask for: one wrong header must not switch it off for a day.
const LONGEST_REST: Duration = Duration::from_mins(10);
/// What others are told while one call tries whether the service is back.
const TRYING: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// In a row.
    failures: u32,
    /// While it rests and, after that, until a call has shown that it is back.
    rests_until: Option<Instant>,
    is_trying: bool,
}

/// A call under way. Dropped without a verdict, it says nothing about the service.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    breaker: &'a Breaker,
    /// Whether it tries if a service that rested is back.
    is_trial: bool,
}

impl Breaker {
    /// Whether a call would be let through now.
    pub(super) fn check(&self, now: Instant) -> Result<(), Error> {
        self.state().check(now).map_err(Error::Resting)
    }

    /// Lets a call through, or says how long the service rests.
    pub(super) fn begin(&self, now: Instant) -> Result<Attempt<'_>, Error> {
        let mut state = self.state();
        state.check(now).map_err(Error::Resting)?;
        let is_trial = state.rests_until.is_some();
        state.is_trying = is_trial;
        Ok(Attempt {
            breaker: self,
            is_trial,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Or how long to wait.
    fn check(&self, now: Instant) -> Result<(), Duration> {
        match self.rests_until {
            Some(until) if now < until => Err(until - now),
            Some(_) if self.is_trying => Err(TRYING),
            _ => Ok(()),
        }
    }
}

impl Attempt<'_> {
    pub(super) fn succeeded(self) {
        let mut state = self.breaker.state();
        state.failures = 0;
        // A call from before the rest says nothing about after it.
        if self.is_trial {
            state.rests_until = None;
        }
    }

    /// `asked` is the rest that the service itself asked for.
    pub(super) fn failed(self, now: Instant, asked: Option<Duration>) {
        let mut state = self.breaker.state();
        state.failures = state.failures.saturating_add(1);
        if self.is_trial || state.failures >= THRESHOLD || asked.is_some() {
            let rest = asked.unwrap_or(REST).min(LONGEST_REST);
            state.rests_until = state.rests_until.max(Some(now + rest));
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_trial {
            self.breaker.state().is_trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, now: Instant) {
        breaker.begin(now).unwrap().failed(now, None);
    }

    #[track_caller]
    fn assert_rests(breaker: &Breaker, now: Instant, expected: Duration) {
        for rest in [breaker.check(now).err(), breaker.begin(now).err()] {
            let Some(Error::Resting(rest)) = rest else {
                panic!("it does not rest");
            };
            assert_eq!(rest, expected);
        }
    }

    #[test]
    fn failures_in_a_row_make_it_rest_and_a_success_between_does_not() {
        let (breaker, now) = (Breaker::default(), Instant::now());

        for _ in 0..THRESHOLD - 1 {
            fail(&breaker, now);
        }
        breaker.begin(now).unwrap().succeeded();
        for _ in 0..THRESHOLD {
            fail(&breaker, now);
        }

        assert_rests(&breaker, now, REST);
    }

    #[test]
    fn after_the_rest_one_call_tries_and_decides() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..THRESHOLD {
            fail(&breaker, now);
        }

        let later = now + REST;
        let trial = breaker.begin(later).unwrap();
        assert_rests(&breaker, later, TRYING);
        trial.failed(later, None);
        assert_rests(&breaker, later, REST);

        let later = later + REST;
        breaker.begin(later).unwrap().succeeded();
        let calls = [breaker.begin(later), breaker.begin(later)];
        assert!(calls.iter().all(Result::is_ok));
    }

    #[test]
    fn a_trial_given_up_leaves_the_next_call_to_try() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..THRESHOLD {
            fail(&breaker, now);
        }
        let later = now + REST;

        drop(breaker.begin(later).unwrap());

        assert!(breaker.begin(later).is_ok());
    }

    #[test]
    fn a_service_rests_as_long_as_it_asks_within_reason() {
        let now = Instant::now();
        for (asked, expected) in [
            (Duration::from_mins(1), Duration::from_mins(1)),
            (Duration::MAX, LONGEST_REST),
        ] {
            let breaker = Breaker::default();
            let other = breaker.begin(now).unwrap();
            breaker.begin(now).unwrap().failed(now, Some(asked));

            // One that was under way all the while changes nothing.
            other.succeeded();

            assert_rests(&breaker, now, expected);
        }
    }
}
