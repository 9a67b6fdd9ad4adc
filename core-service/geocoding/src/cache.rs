//! Caches the results of external geocoders, which are slow and rate limited.

use std::time::{Duration, Instant};

use futures_util::{FutureExt, future::BoxFuture};
use moka::{Expiry, sync::Cache};
use sha2::{Digest, Sha256};

use super::{Error, GeocodeResult, Geocoder, Query, tokenizer};

/// A hash of everything a result depends on.
type CacheKey = [u8; 32];

/// A geocoder with a cache in memory.
pub struct CachedGeocoder<G> {
    geocoder: G,
    results: Cache<CacheKey, GeocodeResult>,
}

/// Time to live of a found address.
const FOUND_TTL: Duration = Duration::from_hours(30 * 24);
/// Time to live of other results: the data may be corrected soon.
const NOT_FOUND_TTL: Duration = Duration::from_mins(5);
const MAX_ENTRIES: u64 = 10_000;
/// Queries near points in the same cell share results.
const CELLS_PER_DEGREE: f64 = 10.0;

impl<G: Geocoder> CachedGeocoder<G> {
    pub fn new(geocoder: G) -> Self {
        Self {
            geocoder,
            results: Cache::builder()
                .max_capacity(MAX_ENTRIES)
                .expire_after(ResultExpiry)
                .build(),
        }
    }
}

/// Ignores case and accents of the text, and the position within a cell.
fn key(query: &Query) -> CacheKey {
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
    let text = format!("{:?}", (words, &query.country, cell, query.required));
    Sha256::digest(text).into()
}

impl<G: Geocoder> Geocoder for CachedGeocoder<G> {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
        async move {
            let key = key(query);
            if let Some(result) = self.results.get(&key) {
                return Ok(result);
            }
            let result = self.geocoder.geocode(query).await?;
            self.results.insert(key, result.clone());
            Ok(result)
        }
        .boxed()
    }
}

struct ResultExpiry;

impl Expiry<CacheKey, GeocodeResult> for ResultExpiry {
    fn expire_after_create(
        &self,
        _: &CacheKey,
        result: &GeocodeResult,
        _: Instant,
    ) -> Option<Duration> {
        Some(match result {
            GeocodeResult::Found(_) => FOUND_TTL,
            GeocodeResult::Partial(_) | GeocodeResult::NotFound => NOT_FOUND_TTL,
        })
    }

    // Two queries for one key at once may have different results.
    fn expire_after_update(
        &self,
        key: &CacheKey,
        result: &GeocodeResult,
        updated_at: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, result, updated_at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
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

    #[tokio::test]
    async fn spellings_of_one_query_share_a_cache_entry() {
        let counting = CountingGeocoder::default();
        let cached = CachedGeocoder::new(counting.clone());
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
        let cached = CachedGeocoder::new(counting.clone());
        for _ in 0..2 {
            assert!(cached.geocode(&Query::new("down")).await.is_err());
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
    }
}
