//! Counts requests per key, such as a peer or credentials, against a quota, in bounded memory.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash},
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, Reference},
    middleware::{StateInformationMiddleware, StateSnapshot},
    nanos::Nanos,
    state::{StateStore, keyed::ShrinkableKeyedStateStore},
};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::RateLimit;

#[cfg(test)]
type Clock = governor::clock::FakeRelativeClock;
#[cfg(not(test))]
type Clock = governor::clock::MonotonicClock;

/// Limit of the keys with a quota of their own. A sweep drops a key whose quota is full again.
const MAX_KEYS: usize = 100_000;

/// The quotas that all further keys share, by their hash, until a sweep: a flood of keys restores no
/// quota, and exhausts those of keys that are as new as its own only.
const SHARED_QUOTAS: u64 = 1024;

const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A quota after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the limit.
    pub policy: &'static str,
    pub quota: u32,
    /// The length of the window, in seconds.
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
    limiter: RateLimiter<K, KeyStates<K>, Clock, StateInformationMiddleware>,
    swept_at: Mutex<<Clock as governor::clock::Clock>::Instant>,
}

/// When each quota will be full.
struct KeyStates<K>(Mutex<States<K>>);

struct States<K> {
    own: HashMap<K, Nanos>,
    shared: HashMap<u64, Nanos>,
}

impl<K: Clone + Eq + Hash> StateStore for KeyStates<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let States { own, shared } = &mut *self.0.lock();
        if let Some(state) = own.get_mut(key) {
            let (decision, new) = decide(Some(*state))?;
            *state = new;
            Ok(decision)
        } else if own.len() < MAX_KEYS {
            let (decision, new) = decide(None)?;
            own.insert(key.clone(), new);
            Ok(decision)
        } else {
            let shared_key = own.hasher().hash_one(key) % SHARED_QUOTAS;
            let (decision, new) = decide(shared.get(&shared_key).copied())?;
            shared.insert(shared_key, new);
            Ok(decision)
        }
    }
}

impl<K: Clone + Eq + Hash> ShrinkableKeyedStateStore<K> for KeyStates<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        let States { own, shared } = &mut *self.0.lock();
        own.retain(|_, state| *state > drop_below);
        own.shrink_to_fit();
        shared.retain(|_, state| *state > drop_below);
    }

    fn len(&self) -> usize {
        self.0.lock().own.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    pub fn new(policy: &'static str, limit: RateLimit) -> Self {
        let RateLimit::PerWindow { requests, window } = limit else {
            return Self(None);
        };
        // One request of the quota is replenished in each period.
        let period = Quota::with_period(window / requests.get());
        let clock = Clock::default();
        Self(period.map(|period| {
            let quota = period.allow_burst(requests);
            let states = KeyStates(Mutex::new(States {
                own: HashMap::new(),
                shared: HashMap::new(),
            }));
            Counter {
                policy,
                quota,
                window,
                swept_at: Mutex::new(clock.now()),
                limiter: RateLimiter::new(quota, states, clock),
            }
        }))
    }

    /// Counts a request; none if the limiter is disabled.
    pub fn check(&self, key: &K) -> Option<Status> {
        let counter = self.0.as_ref()?;
        let quota = counter.quota.burst_size().get();
        let now = counter.sweep();
        let checked = counter.limiter.check_key(key);
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

impl<K: Clone + Eq + Hash> Counter<K> {
    /// Drops the keys whose quota is full again, if a sweep is due. Returns the current time.
    fn sweep(&self) -> <Clock as governor::clock::Clock>::Instant {
        let mut swept_at = self.swept_at.lock();
        let now = self.limiter.clock().now();
        if Duration::from(Reference::duration_since(&now, *swept_at)) >= SWEEP_INTERVAL {
            *swept_at = now;
            self.limiter.retain_recent();
        }
        now
    }
}

/// Whole seconds, rounded up, at least 1: a client that waits for them does not retry too early.
pub fn seconds_rounded_up(duration: Duration) -> u64 {
    let partial_second = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(partial_second).max(1)
}

/// The key of a peer's address; of IPv6 only the /64 network, the usual assignment to one client.
pub fn peer_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The limiter's key of an API key with a secret. Guessed secrets do not use up the client's quota:
/// every pair has its own.
pub fn credentials_key(api_key: &str, api_secret: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(Sha256::digest(api_key))
        .chain_update(api_secret)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(limit: &str) -> Limiter<u32> {
        Limiter::new("test", limit.parse().unwrap())
    }

    fn advance(limiter: &Limiter<u32>, seconds: u64) {
        let counter = limiter.0.as_ref().unwrap();
        counter
            .limiter
            .clock()
            .advance(Duration::from_secs(seconds));
    }

    fn key_count(limiter: &Limiter<u32>) -> usize {
        limiter.0.as_ref().unwrap().limiter.len()
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
    fn a_flood_of_keys_restores_no_quota_and_has_only_the_shared_ones() {
        let limiter = limiter("10/1h");
        let allowed = |keys: std::ops::Range<u32>| {
            keys.filter(|key| limiter.check(key).unwrap().is_allowed)
                .count()
        };
        assert_eq!(allowed(0..100_000), 100_000);

        let shared = 10 * usize::try_from(SHARED_QUOTAS).unwrap();
        assert_eq!(allowed(100_000..300_000), shared);
        advance(&limiter, 1);
        assert_eq!(allowed(100_000..300_000), 0);

        assert_eq!(limiter.check(&0).unwrap().remaining, 8);
        assert_eq!(key_count(&limiter), 100_000);
    }

    #[test]
    fn a_key_has_its_own_quota_again_once_those_of_a_flood_are_full() {
        let limiter = limiter("10/1h");
        for key in 0..200_000 {
            limiter.check(&key);
        }
        advance(&limiter, 3600);

        assert_eq!(limiter.check(&200_000).unwrap().remaining, 9);

        assert_eq!(key_count(&limiter), 1);
    }

    #[test]
    fn no_request_is_counted_if_the_limit_is_off() {
        assert_eq!(limiter("off").check(&1), None);
    }

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, key) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(peer_key(address).to_string(), key);
        }
    }

    #[test]
    fn every_pair_of_key_and_secret_has_a_key_of_its_own() {
        let key = credentials_key("key", "secret");
        assert_eq!(key, credentials_key("key", "secret"));
        for (api_key, secret) in [("key", "other"), ("other", "secret"), ("keys", "ecret")] {
            assert_ne!(key, credentials_key(api_key, secret));
        }
    }
}
