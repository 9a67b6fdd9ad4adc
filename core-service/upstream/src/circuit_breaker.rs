//! A circuit breaker. Consecutive failures open it, or one failure with a `Retry-After`. While
//! open, it rejects calls without sending them; after a pause it is half-open and lets one call
//! probe the service.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::Error;

/// Consecutive failures that open the circuit.
const FAILURE_THRESHOLD: u32 = 5;
/// How long the circuit stays open unless the service sends a `Retry-After`.
const OPEN_FOR: Duration = Duration::from_secs(10);
/// Upper limit of a `Retry-After`: one wrong header must not disable a service for a day.
const MAX_OPEN_FOR: Duration = Duration::from_mins(10);
/// Retry hint for the calls rejected while a probe is in flight.
const PROBE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The states of a circuit breaker, as metrics name them.
pub(super) const STATES: [&str; 3] = ["closed", "open", "half_open"];

#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Mutex<State>);

/// Closed if `open_until` is `None`, open before that instant, half-open after it.
#[derive(Debug, Default)]
struct State {
    consecutive_failures: u32,
    /// Cleared only by a successful probe.
    open_until: Option<Instant>,
    probe_in_flight: bool,
}

/// A call in flight. Dropping it without an outcome leaves the circuit unchanged.
#[derive(Debug)]
pub(super) struct Call<'a> {
    breaker: &'a CircuitBreaker,
    /// The single call of a half-open circuit.
    is_probe: bool,
}

impl CircuitBreaker {
    /// Fails if a call at `now` would be rejected.
    pub(super) fn check(&self, now: Instant) -> Result<(), Error> {
        self.0.lock().check(now).map_err(Error::CircuitOpen)
    }

    /// Admits a call, or fails with the time until the next one may be admitted.
    pub(super) fn begin(&self, now: Instant) -> Result<Call<'_>, Error> {
        let mut state = self.0.lock();
        state.check(now).map_err(Error::CircuitOpen)?;
        let is_probe = state.open_until.is_some();
        state.probe_in_flight = is_probe;
        Ok(Call {
            breaker: self,
            is_probe,
        })
    }

    /// The name of the state, one of [`STATES`]. A closed circuit admits all calls, an open one
    /// none, a half-open one a single call.
    pub(super) fn current(&self, now: Instant) -> &'static str {
        match self.0.lock().open_until {
            None => "closed",
            Some(until) if now < until => "open",
            Some(_) => "half_open",
        }
    }
}

impl State {
    /// The error is the time to wait.
    fn check(&self, now: Instant) -> Result<(), Duration> {
        match self.open_until {
            Some(until) if now < until => Err(until - now),
            Some(_) if self.probe_in_flight => Err(PROBE_RETRY_AFTER),
            _ => Ok(()),
        }
    }
}

impl Call<'_> {
    pub(super) fn succeeded(self) {
        let mut state = self.breaker.0.lock();
        state.consecutive_failures = 0;
        // A call that began before the circuit opened says nothing about the service now.
        if self.is_probe {
            state.open_until = None;
        }
    }

    /// `retry_after` is the service's own `Retry-After`.
    pub(super) fn failed(self, now: Instant, retry_after: Option<Duration>) {
        let mut state = self.breaker.0.lock();
        state.consecutive_failures = state.consecutive_failures.saturating_add(1);
        if self.is_probe || state.consecutive_failures >= FAILURE_THRESHOLD || retry_after.is_some()
        {
            let pause = retry_after.unwrap_or(OPEN_FOR).min(MAX_OPEN_FOR);
            state.open_until = state.open_until.max(Some(now + pause));
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.0.lock().probe_in_flight = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &CircuitBreaker, now: Instant) {
        breaker.begin(now).unwrap().failed(now, None);
    }

    #[track_caller]
    fn assert_rejects(breaker: &CircuitBreaker, now: Instant, expected: Duration) {
        for error in [breaker.check(now).err(), breaker.begin(now).err()] {
            let Some(Error::CircuitOpen(wait)) = error else {
                panic!("the call is admitted");
            };
            assert_eq!(wait, expected);
        }
    }

    #[test]
    fn consecutive_failures_open_the_circuit_and_a_success_resets_the_count() {
        let (breaker, now) = (CircuitBreaker::default(), Instant::now());

        for _ in 0..FAILURE_THRESHOLD - 1 {
            fail(&breaker, now);
        }
        breaker.begin(now).unwrap().succeeded();
        for _ in 0..FAILURE_THRESHOLD {
            fail(&breaker, now);
        }

        assert_rejects(&breaker, now, OPEN_FOR);
    }

    #[test]
    fn a_half_open_circuit_admits_one_probe_that_opens_or_closes_it() {
        let (breaker, now) = (CircuitBreaker::default(), Instant::now());
        for _ in 0..FAILURE_THRESHOLD {
            fail(&breaker, now);
        }

        let later = now + OPEN_FOR;
        assert_eq!(breaker.current(now), "open");
        assert_eq!(breaker.current(later), "half_open");
        let probe = breaker.begin(later).unwrap();
        assert_rejects(&breaker, later, PROBE_RETRY_AFTER);
        probe.failed(later, None);
        assert_rejects(&breaker, later, OPEN_FOR);

        let later = later + OPEN_FOR;
        breaker.begin(later).unwrap().succeeded();
        assert_eq!(breaker.current(later), "closed");
        let calls = [breaker.begin(later), breaker.begin(later)];
        assert!(calls.iter().all(Result::is_ok));
    }

    #[test]
    fn after_a_dropped_probe_the_next_call_is_the_probe() {
        let (breaker, now) = (CircuitBreaker::default(), Instant::now());
        for _ in 0..FAILURE_THRESHOLD {
            fail(&breaker, now);
        }
        let later = now + OPEN_FOR;

        drop(breaker.begin(later).unwrap());

        assert!(breaker.begin(later).is_ok());
    }

    #[test]
    fn retry_after_sets_how_long_the_circuit_stays_open_up_to_a_limit() {
        let now = Instant::now();
        for (retry_after, expected) in [
            (Duration::from_mins(1), Duration::from_mins(1)),
            (Duration::MAX, MAX_OPEN_FOR),
        ] {
            let breaker = CircuitBreaker::default();
            let earlier = breaker.begin(now).unwrap();
            breaker.begin(now).unwrap().failed(now, Some(retry_after));

            // A call that began before the failure does not close the circuit.
            earlier.succeeded();

            assert_rejects(&breaker, now, expected);
        }
    }
}
