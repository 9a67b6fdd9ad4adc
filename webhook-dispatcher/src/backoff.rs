//! How long to wait between attempts to reach a core.

use std::time::Duration;

use tower::util::rng::{HasherRng, Rng};

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double up to a limit, each shortened at random by up to half, so that
/// dispatchers which lost a core together do not return together.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
    rng: HasherRng,
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = FIRST
            .checked_mul(2_u32.saturating_pow(self.failures))
            .unwrap_or(LONGEST);
        self.failures = self.failures.saturating_add(1);
        doubled
            .min(LONGEST)
            .mul_f64(1.0 - self.rng.next_f64() / 2.0)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_anew() {
        let mut backoff = Backoff::default();

        for expected in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let expected = Duration::from_millis(expected);
            let wait = backoff.next();
            assert!(wait <= expected && wait >= expected / 2, "{wait:?}");
        }
        for _ in 0..100 {
            assert!(backoff.next() <= LONGEST);
        }

        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
