//! Counts requests per key against a quota, in bounded memory.

use std::{
    hash::Hash,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

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

/// Limits requests per key; disabled if the limit is off.
pub struct Limiter<K>(Option<Buckets<K>>);

struct Buckets<K> {
    policy: &'static str,
    quota: NonZeroU32,
    window: Duration,
    /// One request of the quota is replenished in each interval.
    interval: Duration,
    /// When all of a key's quota is available again.
    full_at: moka::sync::Cache<K, Arc<Mutex<Instant>>>,
}

impl<K> Limiter<K>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
{
    pub fn new(policy: &'static str, limit: RateLimit) -> Self {
        let RateLimit::PerWindow { requests, window } = limit else {
            return Self(None);
        };
        let interval = window / requests.get();
        let buckets = || Buckets {
            policy,
            quota: requests,
            window,
            interval,
            // A key that is unused for a window has all of its quota again, like a new one.
            full_at: moka::sync::Cache::builder()
                .max_capacity(MAX_KEYS)
                .time_to_idle(window)
                .build(),
        };
        Self((!interval.is_zero()).then(buckets))
    }

    /// Counts a request; none if the limiter is disabled.
    pub fn check(&self, key: K) -> Option<Decision> {
        self.check_at(key, Instant::now())
    }

    /// Counts a request by the generic cell rate algorithm (GCRA).
    fn check_at(&self, key: K, now: Instant) -> Option<Decision> {
        let Buckets {
            policy,
            quota,
            window,
            interval,
            full_at,
        } = self.0.as_ref()?;
        let full_at = full_at.get_with(key, || Arc::new(Mutex::new(now)));
        let mut full_at = full_at.lock();
        let next_full_at = (*full_at).max(now) + *interval;
        let until_full = next_full_at.saturating_duration_since(now);
        let quota = quota.get();
        let (used, retry_after) = match until_full.saturating_sub(*interval * quota) {
            Duration::ZERO => {
                *full_at = next_full_at;
                let used = until_full.as_nanos().div_ceil(interval.as_nanos());
                (u32::try_from(used).unwrap_or(quota), None)
            }
            wait => (quota, Some(wait)),
        };
        Some(Decision {
            status: Status {
                policy,
                quota,
                window: window.as_secs(),
                remaining: quota.saturating_sub(used),
                reset: seconds_rounded_up(retry_after.unwrap_or(*interval * used)),
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
    use super::*;

    fn limiter(limit: &str) -> Limiter<&'static str> {
        Limiter::new("test", limit.parse().unwrap())
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
        let limiter = limiter("3/1m");
        let start = Instant::now();
        let check = |key, seconds| limiter.check_at(key, start + Duration::from_secs(seconds));
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

        assert_eq!(check("a", 0), allowed(2, 20));
        assert_eq!(check("a", 0), allowed(1, 40));
        assert_eq!(check("a", 0), allowed(0, 60));
        assert_eq!(check("a", 0), exhausted(20));
        assert_eq!(check("b", 0), allowed(2, 20));
        assert_eq!(check("a", 15), exhausted(5));
        assert_eq!(check("a", 20), allowed(0, 60));
        assert_eq!(check("a", 20), exhausted(20));
        assert_eq!(check("a", 3620), allowed(2, 20));
    }

    #[test]
    fn no_request_is_counted_if_the_limit_is_off() {
        let limiter = limiter("off");

        assert_eq!(limiter.check("a"), None);
    }
}
