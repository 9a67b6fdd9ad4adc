//! Caches the results of external geocoders, which are slow and rate limited.

use std::time::{Duration, Instant};

use futures_util::{FutureExt, future::BoxFuture};
use moka::{Expiry, sync::Cache};
use sha2::{Digest, Sha256};

use super::{Error, GeocodeResult, Geocoder, Query, tokenizer};

/// A cache of results that is kept across restarts and shared by processes.
pub trait PersistentCache: Send + Sync {
    /// The result for a key, and for how long it may still be used, unless expired.
    fn get(&self, key: CacheKey) -> BoxFuture<'_, Option<(GeocodeResult, Duration)>>;
    /// Stores a result for its time to live. Errors are logged, not returned.
    fn put(
        &self,
        key: CacheKey,
        result: GeocodeResult,
        time_to_live: Duration,
    ) -> BoxFuture<'_, ()>;
}

/// A hash of everything a result depends on: addresses are personal data, so no key contains them.
pub type CacheKey = [u8; 32];

/// A geocoder with a cache in memory and a persistent one.
pub struct CachedGeocoder<G> {
    geocoder: G,
    /// Identifies the geocoder and its settings.
    cache_scope: String,
    /// With the time to live when it was inserted.
    memory: Cache<CacheKey, (GeocodeResult, Duration)>,
    persistent: Box<dyn PersistentCache>,
}

/// Time to live of a found address.
const FOUND_TTL: Duration = Duration::from_hours(30 * 24);
/// Time to live of other results: the data may be corrected soon.
const NOT_FOUND_TTL: Duration = Duration::from_mins(5);
const MAX_ENTRIES_IN_MEMORY: u64 = 10_000;
/// Queries near points in the same cell share results.
const CELLS_PER_DEGREE: f64 = 10.0;

impl<G: Geocoder> CachedGeocoder<G> {
    pub fn new(geocoder: G, cache_scope: String, persistent: Box<dyn PersistentCache>) -> Self {
        Self {
            geocoder,
            cache_scope,
            memory: Cache::builder()
                .max_capacity(MAX_ENTRIES_IN_MEMORY)
                .expire_after(ResultExpiry)
                .build(),
            persistent,
        }
    }

    async fn get_or_geocode(&self, query: &Query) -> Result<GeocodeResult, Error> {
        let key = self.key(query);
        if let Some((result, _)) = self.memory.get(&key) {
            return Ok(result);
        }
        if let Some((result, remaining)) = self.persistent.get(key).await {
            // Another host's clock may be ahead.
            let remaining = remaining.min(time_to_live(&result));
            self.memory.insert(key, (result.clone(), remaining));
            return Ok(result);
        }
        let result = self.geocoder.geocode(query).await?;
        let time_to_live = time_to_live(&result);
        self.memory.insert(key, (result.clone(), time_to_live));
        let stored = self.persistent.put(key, result.clone(), time_to_live);
        stored.await;
        Ok(result)
    }

    /// Ignores case and accents of the text, and the position within a cell.
    fn key(&self, query: &Query) -> CacheKey {
        let words: Vec<_> = query
            .text
            .split(|c: char| !c.is_alphanumeric())
            .map(tokenizer::fold)
            .filter(|word| !word.is_empty())
            .collect();
        let cell = query.near.map(|near| {
            let rounded = |degrees: f64| (degrees * CELLS_PER_DEGREE).round();
            (rounded(near.latitude()), rounded(near.longitude()))
        });
        let text = format!(
            "{:?}",
            (
                &self.cache_scope,
                words,
                &query.country,
                cell,
                query.required
            )
        );
        Sha256::digest(text).into()
    }
}

impl<G: Geocoder> Geocoder for CachedGeocoder<G> {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
        self.get_or_geocode(query).boxed()
    }
}

fn time_to_live(result: &GeocodeResult) -> Duration {
    match result {
        GeocodeResult::Found(_) => FOUND_TTL,
        GeocodeResult::Partial(_) | GeocodeResult::NotFound => NOT_FOUND_TTL,
    }
}

struct ResultExpiry;

impl Expiry<CacheKey, (GeocodeResult, Duration)> for ResultExpiry {
    fn expire_after_create(
        &self,
        _: &CacheKey,
        (_, time_to_live): &(GeocodeResult, Duration),
        _: Instant,
    ) -> Option<Duration> {
        Some(*time_to_live)
    }

    /// By default, a replaced result would keep the time to live of the first.
    fn expire_after_update(
        &self,
        _: &CacheKey,
        (_, time_to_live): &(GeocodeResult, Duration),
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(*time_to_live)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;
    use domain::address::LatLng;

    /// Counts its calls. Fails for the text `down`; finds no address for any other.
    #[derive(Clone, Default)]
    struct CountingGeocoder(Arc<AtomicUsize>);

    impl Geocoder for CountingGeocoder {
        fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let result = match query.text.as_str() {
                "down" => Err(Error::Unavailable("down".into())),
                _ => Ok(GeocodeResult::NotFound),
            };
            std::future::ready(result).boxed()
        }
    }

    #[derive(Clone, Default)]
    struct SharedCache(Arc<Mutex<HashMap<CacheKey, (GeocodeResult, Duration)>>>);

    impl PersistentCache for SharedCache {
        fn get(&self, key: CacheKey) -> BoxFuture<'_, Option<(GeocodeResult, Duration)>> {
            std::future::ready(self.0.lock().unwrap().get(&key).cloned()).boxed()
        }
        fn put(
            &self,
            key: CacheKey,
            result: GeocodeResult,
            time_to_live: Duration,
        ) -> BoxFuture<'_, ()> {
            self.0.lock().unwrap().insert(key, (result, time_to_live));
            std::future::ready(()).boxed()
        }
    }

    fn cached(
        geocoder: &CountingGeocoder,
        shared: &SharedCache,
    ) -> CachedGeocoder<CountingGeocoder> {
        CachedGeocoder::new(geocoder.clone(), "x".to_owned(), Box::new(shared.clone()))
    }

    #[tokio::test]
    async fn spellings_of_one_query_share_a_cache_entry() {
        let counting = CountingGeocoder::default();
        let cached = cached(&counting, &SharedCache::default());
        let near = |longitude| Query {
            near: LatLng::new(48.85, longitude).ok(),
            ..Query::new("24 rue")
        };
        let calls_after = async |query: Query| {
            cached.geocode(&query).await.unwrap();
            counting.0.load(Ordering::Relaxed)
        };

        assert_eq!(
            calls_after(Query::new("24 Rue de la Paix, Épinay")).await,
            1
        );
        assert_eq!(
            calls_after(Query::new(" 24 RUE DE LA PAIX EPINAY ")).await,
            1
        );
        assert_eq!(calls_after(Query::new("25 rue de la paix épinay")).await, 2);
        assert_eq!(calls_after(near(2.35)).await, 3);
        assert_eq!(calls_after(near(2.351)).await, 3);
        assert_eq!(calls_after(near(5.0)).await, 4);
    }

    #[tokio::test]
    async fn a_failure_is_not_cached() {
        let counting = CountingGeocoder::default();
        let cached = cached(&counting, &SharedCache::default());
        for _ in 0..2 {
            assert!(cached.geocode(&Query::new("down")).await.is_err());
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_process_uses_the_persistent_cache() {
        let (counting, shared) = (CountingGeocoder::default(), SharedCache::default());
        for _ in 0..2 {
            let cached = cached(&counting, &shared);
            cached.geocode(&Query::new("24 rue")).await.unwrap();
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        assert_eq!(shared.0.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_result_of_the_persistent_cache_is_used_no_longer_than_it_lives_there() {
        let (counting, shared) = (CountingGeocoder::default(), SharedCache::default());
        let query = Query::new("24 rue");
        let cached = cached(&counting, &shared);
        let expired = (GeocodeResult::NotFound, Duration::ZERO);
        shared.0.lock().unwrap().insert(cached.key(&query), expired);
        cached.geocode(&query).await.unwrap();
        shared.0.lock().unwrap().clear();

        cached.geocode(&query).await.unwrap();

        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_result_that_replaces_another_has_its_own_time_to_live() {
        let cached = cached(&CountingGeocoder::default(), &SharedCache::default());
        for time_to_live in [FOUND_TTL, Duration::ZERO] {
            let result = (GeocodeResult::NotFound, time_to_live);
            cached.memory.insert([1; 32], result);
        }

        assert_eq!(cached.memory.get(&[1; 32]), None);
    }
}
