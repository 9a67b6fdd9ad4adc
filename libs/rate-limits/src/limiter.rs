//! Counts requests per key against a quota, in bounded memory.

use std::{hash::Hash, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, Reference},
    middleware::{StateInformationMiddleware, StateSnapshot},
    state::keyed::HashMapStateStore,
};
use parking_lot::Mutex;

use crate::RateLimit;

#[cfg(test)]
type Clock = governor::clock::FakeRelativeClock;
#[cfg(not(test))]
type Clock = governor::clock::MonotonicClock;

/// Keys that a sweep leaves in memory. It drops a key whose quota is full again, and all if more than
/// these are left: then all quotas are full again. Between two sweeps every new key is kept: as many as
/// a process receives requests in a second.
const MAX_KEYS: usize = 100_000;

const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A quota after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the limit.
    pub policy: &'static str,
    pub quota: u32,
    /// In seconds.
    pub window: u64,
    pub remaining: u32,
    /// Seconds until a request is allowed again, if this one is not; otherwise until the quota is
    /// full.
    pub reset: u64,
    pub is_allowed: bool,
}

/// Limits requests per key; disabled if the limit is off.
pub struct Limiter<K: Clone + Eq + Hash>(Option<Counter<K>>);

struct Counter<K: Clone + Eq + Hash> {
    policy: &'static str,
    quota: Quota,
    window: Duration,
    keys: Mutex<Keys<K>>,
}

type KeyLimiter<K> = RateLimiter<K, HashMapStateStore<K>, Clock, StateInformationMiddleware>;

struct Keys<K: Clone + Eq + Hash> {
    limiter: KeyLimiter<K>,
    swept_at: <Clock as governor::clock::Clock>::Instant,
}

impl<K: Clone + Eq + Hash> Keys<K> {
    fn new(quota: Quota, clock: Clock) -> Self {
        Self {
            swept_at: clock.now(),
            limiter: RateLimiter::new(quota, HashMapStateStore::default(), clock),
        }
    }
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    pub fn new(policy: &'static str, limit: RateLimit) -> Self {
        let RateLimit::PerWindow { requests, window } = limit else {
            return Self(None);
        };
        // One request of the quota is replenished in each period.
        let quota = Quota::with_period(window / requests.get());
        Self(
            quota
                .map(|quota| quota.allow_burst(requests))
                .map(|quota| Counter {
                    policy,
                    quota,
                    window,
                    keys: Mutex::new(Keys::new(quota, Clock::default())),
                }),
        )
    }

    /// Counts a request; none if the limiter is disabled.
    pub fn check(&self, key: &K) -> Option<Status> {
        let counter = self.0.as_ref()?;
        let (mut keys, quota) = (counter.keys.lock(), counter.quota.burst_size().get());
        let now = keys.limiter.clock().now();
        if Duration::from(Reference::duration_since(&now, keys.swept_at)) >= SWEEP_INTERVAL {
            keys.swept_at = now;
            keys.limiter.retain_recent();
            if keys.limiter.len() > MAX_KEYS {
                *keys = Keys::new(counter.quota, keys.limiter.clock().clone());
            }
            keys.limiter.shrink_to_fit();
        }
        let checked = keys.limiter.check_key(key);
        let remaining = checked
            .as_ref()
            .map_or(0, StateSnapshot::remaining_burst_capacity);
        let reset = match &checked {
            Ok(_) => counter.quota.replenish_interval() * quota.saturating_sub(remaining),
            Err(exhausted) => exhausted.wait_time_from(now),
        };
        Some(Status {
            policy: counter.policy,
            quota,
            window: counter.window.as_secs(),
            remaining,
            reset: seconds_rounded_up(reset),
            is_allowed: checked.is_ok(),
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

    fn limiter(limit: &str) -> Limiter<u32> {
        Limiter::new("test", limit.parse().unwrap())
    }

    fn advance(limiter: &Limiter<u32>, seconds: u64) {
        let keys = limiter.0.as_ref().unwrap().keys.lock();
        keys.limiter.clock().advance(Duration::from_secs(seconds));
    }

    fn key_count(limiter: &Limiter<u32>) -> usize {
        limiter.0.as_ref().unwrap().keys.lock().limiter.len()
    }

    #[test]
    fn a_quota_is_used_up_and_replenished_evenly() {
        let limiter = limiter("3/1m");
        let check = |key, wait| {
            advance(&limiter, wait);
            limiter.check(&key)
        };
        let status = |is_allowed, remaining, reset| {
            Some(Status {
                policy: "test",
                quota: 3,
                window: 60,
                remaining,
                reset,
                is_allowed,
            })
        };

        assert_eq!(check(1, 0), status(true, 2, 20));
        assert_eq!(check(1, 0), status(true, 1, 40));
        assert_eq!(check(1, 0), status(true, 0, 60));
        assert_eq!(check(1, 0), status(false, 0, 20));
        assert_eq!(check(2, 0), status(true, 2, 20));
        assert_eq!(check(1, 15), status(false, 0, 5));
        assert_eq!(check(1, 5), status(true, 0, 60));
        assert_eq!(check(1, 0), status(false, 0, 20));
        assert_eq!(check(1, 3600), status(true, 2, 20));
    }

    #[test]
    fn a_key_is_in_memory_until_its_quota_is_full() {
        let limiter = limiter("60/1m");
        for key in 0..1000 {
            limiter.check(&key);
        }
        for _ in 0..10 {
            limiter.check(&1);
        }
        assert_eq!(key_count(&limiter), 1000);

        advance(&limiter, 3);
        limiter.check(&2);

        assert_eq!(key_count(&limiter), 2);
        assert_eq!(limiter.check(&1).unwrap().remaining, 51);
    }

    #[test]
    fn more_than_a_hundred_thousand_keys_are_dropped_within_a_second() {
        let limiter = limiter("10/1h");
        let keys = |count| (0..count).all(|key| limiter.check(&key).is_some());
        assert!(keys(100_000));
        advance(&limiter, 1);
        assert_eq!(limiter.check(&0).unwrap().remaining, 8);
        assert_eq!(key_count(&limiter), 100_000);

        assert!(keys(100_001));
        advance(&limiter, 1);

        assert_eq!(limiter.check(&0).unwrap().remaining, 9);
        assert_eq!(key_count(&limiter), 1);
    }

    #[test]
    fn no_request_is_counted_if_the_limit_is_off() {
        assert_eq!(limiter("off").check(&1), None);
    }
}
