//! Counts requests per key against a quota, in bounded memory.

use std::{hash::Hash, sync::Arc, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};

use crate::RateLimit;

/// Keys in memory. The most frequently used stay, so a client cannot evict the others by using
/// many keys.
const MAX_KEYS: u64 = 100_000;

/// A quota and its remaining requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the limit.
    pub policy: &'static str,
    pub quota: u32,
    /// In seconds.
    pub window: u64,
    pub remaining: u32,
    /// Seconds until a request is allowed again, if none remains; otherwise until the quota is
    /// full.
    pub reset: u64,
}

/// The result of counting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub status: Status,
    /// How long to wait if the quota is exhausted; none if the request is allowed.
    pub retry_after: Option<Duration>,
}

type Bucket<C> = RateLimiter<NotKeyed, InMemoryState, C, StateInformationMiddleware>;

/// Limits requests per key; disabled if the limit is off.
pub struct Limiter<K, C: Clock = DefaultClock>(Option<Buckets<K, C>>);

struct Buckets<K, C: Clock> {
    policy: &'static str,
    quota: Quota,
    window: Duration,
    clock: C,
    by_key: moka::sync::Cache<K, Arc<Bucket<C>>>,
}

impl<K> Limiter<K>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
{
    pub fn new(policy: &'static str, limit: RateLimit) -> Self {
        Self::with_clock(policy, limit, DefaultClock::default())
    }
}

impl<K, C> Limiter<K, C>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    C: Clock + Clone + Send + Sync + 'static,
    C::Instant: Send + Sync,
{
    fn with_clock(policy: &'static str, limit: RateLimit, clock: C) -> Self {
        let RateLimit::PerWindow { requests, window } = limit else {
            return Self(None);
        };
        let quota = Quota::with_period(window / requests.get());
        Self(quota.map(|quota| {
            Buckets {
                policy,
                quota: quota.allow_burst(requests),
                window,
                clock,
                // A bucket that is unused for a window is full again, like a new one.
                by_key: moka::sync::Cache::builder()
                    .max_capacity(MAX_KEYS)
                    .time_to_idle(window)
                    .build(),
            }
        }))
    }

    /// Counts a request; none if the limiter is disabled.
    pub fn check(&self, key: K) -> Option<Decision> {
        let buckets = self.0.as_ref()?;
        let Buckets { quota, clock, .. } = buckets;
        let bucket = buckets.by_key.get_with(key, || {
            let bucket = RateLimiter::direct_with_clock(*quota, clock.clone());
            Arc::new(bucket.with_middleware())
        });
        let (remaining, retry_after) = match bucket.check() {
            Ok(state) => (state.remaining_burst_capacity(), None),
            Err(not_until) => (0, Some(not_until.wait_time_from(clock.now()))),
        };
        let burst = quota.burst_size().get();
        let used = burst.saturating_sub(remaining);
        let until_full = quota.replenish_interval().saturating_mul(used);
        Some(Decision {
            status: Status {
                policy: buckets.policy,
                quota: burst,
                window: buckets.window.as_secs(),
                remaining,
                reset: seconds_rounded_up(retry_after.unwrap_or(until_full)),
            },
            retry_after,
        })
    }
}

/// Whole seconds, rounded up, at least 1: a client that waits for them does not retry too early.
pub fn seconds_rounded_up(duration: Duration) -> u64 {
    let partial_second = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(partial_second).max(1)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter(limit: &str, clock: &FakeRelativeClock) -> Limiter<&'static str, FakeRelativeClock> {
        Limiter::with_clock("test", limit.parse().unwrap(), clock.clone())
    }

    fn status(remaining: u32, reset: u64) -> Status {
        Status {
            policy: "test",
            quota: 3,
            window: 60,
            remaining,
            reset,
        }
    }

    #[test]
    fn a_quota_is_used_up_and_replenished_evenly() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter("3/1m", &clock);
        let allowed = |remaining, reset| {
            Some(Decision {
                status: status(remaining, reset),
                retry_after: None,
            })
        };
        let exhausted = |wait: u64| {
            Some(Decision {
                status: status(0, wait),
                retry_after: Some(Duration::from_secs(wait)),
            })
        };

        assert_eq!(limiter.check("a"), allowed(2, 20));
        assert_eq!(limiter.check("a"), allowed(1, 40));
        assert_eq!(limiter.check("a"), allowed(0, 60));
        assert_eq!(limiter.check("a"), exhausted(20));
        assert_eq!(limiter.check("b"), allowed(2, 20));
        clock.advance(Duration::from_secs(15));
        assert_eq!(limiter.check("a"), exhausted(5));
        clock.advance(Duration::from_secs(5));
        assert_eq!(limiter.check("a"), allowed(0, 60));
        assert_eq!(limiter.check("a"), exhausted(20));
        clock.advance(Duration::from_hours(1));
        assert_eq!(limiter.check("a"), allowed(2, 20));
    }

    #[test]
    fn no_request_is_counted_if_the_limit_is_off() {
        let limiter = limiter("off", &FakeRelativeClock::default());

        assert_eq!(limiter.check("a"), None);
    }
}
