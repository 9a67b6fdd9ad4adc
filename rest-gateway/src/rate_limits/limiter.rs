//! A budget of requests for each key, in bounded memory.

use std::{hash::Hash, sync::Arc, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};

use super::{config::RateLimit, seconds_up, standings::Standing};

/// How many budgets are kept. Those that are used most stay, so that nobody can have another's
/// forgotten by making many.
const KEPT: u64 = 100_000;

/// What is left of a budget, now that a request was taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) standing: Standing,
    /// How long to wait, if nothing was left.
    pub(super) wait: Option<Duration>,
}

type Bucket<C> = RateLimiter<NotKeyed, InMemoryState, C, StateInformationMiddleware>;

/// Counts; or does not, where there is no limit.
pub(super) struct Limiter<K, C: Clock = governor::clock::DefaultClock>(Option<Counting<K, C>>);

struct Counting<K, C: Clock> {
    policy: &'static str,
    quota: Quota,
    window: Duration,
    clock: C,
    buckets: moka::sync::Cache<K, Arc<Bucket<C>>>,
}

impl<K, C> Limiter<K, C>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    C: Clock + Clone + Send + Sync + 'static,
    C::Instant: Send + Sync,
{
    pub(super) fn new(policy: &'static str, limit: RateLimit, clock: C) -> Self {
        let RateLimit::Every { requests, window } = limit else {
            return Self(None);
        };
        let quota = Quota::with_period(window / requests.get());
        Self(quota.map(|quota| {
            Counting {
                policy,
                quota: quota.allow_burst(requests),
                window,
                clock,
                // A budget nobody has touched for a window is whole again, as a new one is.
                buckets: moka::sync::Cache::builder()
                    .max_capacity(KEPT)
                    .time_to_idle(window)
                    .build(),
            }
        }))
    }

    /// Takes a request from a key's budget; none where nothing is counted.
    pub(super) fn check(&self, key: K) -> Option<Budget> {
        let counting = self.0.as_ref()?;
        let bucket = counting
            .buckets
            .get_with(key, || Arc::new(counting.new_bucket()));
        Some(counting.take(&bucket))
    }
}

impl<K, C: Clock + Clone> Counting<K, C> {
    fn new_bucket(&self) -> Bucket<C> {
        RateLimiter::direct_with_clock(self.quota, self.clock.clone()).with_middleware()
    }

    fn take(&self, bucket: &Bucket<C>) -> Budget {
        let (remaining, wait) = match bucket.check() {
            Ok(state) => (state.remaining_burst_capacity(), None),
            Err(refused) => (0, Some(refused.wait_time_from(self.clock.now()))),
        };
        let quota = self.quota.burst_size().get();
        let used = quota.saturating_sub(remaining);
        let until_whole = self.quota.replenish_interval().saturating_mul(used);
        Budget {
            standing: Standing {
                policy: self.policy,
                quota,
                window: self.window.as_secs(),
                remaining,
                reset: seconds_up(wait.unwrap_or(until_whole)),
            },
            wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter(limit: &str, clock: &FakeRelativeClock) -> Limiter<&'static str, FakeRelativeClock> {
        Limiter::new("test", limit.parse().unwrap(), clock.clone())
    }

    fn standing(remaining: u32, reset: u64) -> Standing {
        Standing {
            policy: "test",
            quota: 3,
            window: 60,
            remaining,
            reset,
        }
    }

    #[test]
    fn a_budget_is_used_up_and_comes_back_evenly() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter("3/1m", &clock);
        let left = |remaining, reset| {
            Some(Budget {
                standing: standing(remaining, reset),
                wait: None,
            })
        };
        let nothing = |wait: u64| {
            Some(Budget {
                standing: standing(0, wait),
                wait: Some(Duration::from_secs(wait)),
            })
        };

        assert_eq!(limiter.check("a"), left(2, 20));
        assert_eq!(limiter.check("a"), left(1, 40));
        assert_eq!(limiter.check("a"), left(0, 60));
        assert_eq!(limiter.check("a"), nothing(20));
        assert_eq!(limiter.check("b"), left(2, 20));
        clock.advance(Duration::from_secs(15));
        assert_eq!(limiter.check("a"), nothing(5));
        clock.advance(Duration::from_secs(5));
        assert_eq!(limiter.check("a"), left(0, 60));
        assert_eq!(limiter.check("a"), nothing(20));
        clock.advance(Duration::from_hours(1));
        assert_eq!(limiter.check("a"), left(2, 20));
    }

    #[test]
    fn nothing_is_counted_where_there_is_no_limit() {
        let limiter = limiter("off", &FakeRelativeClock::default());

        assert_eq!(limiter.check("a"), None);
    }
}
