//! A cache which saves price calculations and creations most of their queries.

use std::{
    hash::Hash,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long a price calculation may miss a definition applied at another core.
const TIME_TO_LIVE: Duration = Duration::from_secs(1);

const CAPACITY: u64 = 1_000;

/// How fresh a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Read from the database.
    Current,
    /// At most [`TIME_TO_LIVE`] old, and not older than the last definition applied at this core.
    Recent,
    /// Of any age, but not older than the last definition applied at this core. What is planned
    /// with it is written only if it is still current.
    Any,
}

/// Counts the attempts to apply a definition at this core; each invalidates all cached values.
#[derive(Default)]
pub(crate) struct ApplyCounter(AtomicU64);

impl ApplyCounter {
    /// To be called after each attempt, even a failed one, and before its response.
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Values of the database by key.
pub(crate) struct FreshnessCache<K, V>(moka::sync::Cache<K, CachedValue<V>>);

#[derive(Clone)]
struct CachedValue<V> {
    value: V,
    /// When the read began.
    at: Instant,
    /// The value of the [`ApplyCounter`] when the read began.
    applied: u64,
}

impl<K, V> FreshnessCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self(moka::sync::Cache::new(CAPACITY))
    }

    /// The cached value, of any age. A compiled definition is valid as long as its source is
    /// unchanged.
    pub(crate) fn last(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|cached| cached.value)
    }

    /// The cached value if it is fresh enough, else the result of `read`.
    pub(crate) async fn get<E>(
        &self,
        key: K,
        (freshness, applied): (Freshness, &ApplyCounter),
        read: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let (at, applied) = (Instant::now(), applied.count());
        let max_age = match freshness {
            Freshness::Current => Duration::ZERO,
            Freshness::Recent => TIME_TO_LIVE,
            Freshness::Any => Duration::MAX,
        };
        if freshness != Freshness::Current
            && let Some(cached) = self.0.get(&key)
            && cached.applied == applied
            && at.saturating_duration_since(cached.at) < max_age
        {
            return Ok(cached.value);
        }
        let value = read.await?;
        let cached = CachedValue {
            value: value.clone(),
            at,
            applied,
        };
        self.0.insert(key, cached);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(
        cache: &FreshnessCache<u8, u8>,
        applied: &ApplyCounter,
        freshness: Freshness,
        value: u8,
    ) -> u8 {
        let read = async { Ok::<_, ()>(value) };
        cache.get(1, (freshness, applied), read).await.unwrap()
    }

    #[tokio::test]
    async fn only_a_recent_value_comes_from_the_cache() {
        let (cache, applied) = (FreshnessCache::new(), ApplyCounter::default());

        assert_eq!(get(&cache, &applied, Freshness::Recent, 1).await, 1);
        assert_eq!(get(&cache, &applied, Freshness::Recent, 2).await, 1);
        assert_eq!(get(&cache, &applied, Freshness::Current, 3).await, 3);
        assert_eq!(get(&cache, &applied, Freshness::Recent, 4).await, 3);
    }

    #[tokio::test]
    async fn a_definition_applied_at_this_core_invalidates_the_cache() {
        let (cache, applied) = (FreshnessCache::new(), ApplyCounter::default());
        assert_eq!(get(&cache, &applied, Freshness::Recent, 1).await, 1);

        applied.increment();
        assert_eq!(get(&cache, &applied, Freshness::Recent, 2).await, 2);

        // A read that starts before the commit may return the old value.
        let read = async {
            applied.increment();
            Ok::<_, ()>(2)
        };
        let slow = cache.get(1, (Freshness::Current, &applied), read);
        assert_eq!(slow.await, Ok(2));
        assert_eq!(get(&cache, &applied, Freshness::Recent, 3).await, 3);
    }

    #[tokio::test]
    async fn a_failure_is_not_cached() {
        let (cache, applied) = (FreshnessCache::<u8, u8>::new(), ApplyCounter::default());

        let failed = cache.get(1, (Freshness::Recent, &applied), async {
            Err("unavailable")
        });
        assert_eq!(failed.await, Err("unavailable"));
        assert_eq!(get(&cache, &applied, Freshness::Recent, 1).await, 1);
    }
}
