//! Exponential backoff with jitter between attempts to open a stream.

use std::time::Duration;

use tower::util::rng::{HasherRng, Rng};

const INITIAL: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(5);

/// Waits that double up to a limit. Each is shortened at random by up to half, so that dispatchers
/// do not reconnect to a restarted core at the same time.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
    rng: HasherRng,
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = INITIAL
            .checked_mul(2_u32.saturating_pow(self.failures))
            .unwrap_or(MAX);
        self.failures = self.failures.saturating_add(1);
        doubled.min(MAX).mul_f64(1.0 - self.rng.next_f64() / 2.0)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_can_be_reset() {
        let mut backoff = Backoff::default();

        for expected in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let expected = Duration::from_millis(expected);
            let wait = backoff.next();
            assert!(wait <= expected && wait >= expected / 2, "{wait:?}");
        }
        for _ in 0..100 {
            assert!(backoff.next() <= MAX);
        }

        backoff.reset();
        assert!(backoff.next() <= INITIAL);
    }
}
