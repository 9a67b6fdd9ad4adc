//! Time slots, price lists and zones, compiled and cached, which saves price calculations and creations
//! most of their queries. A cached one that is too old is compiled again only if the definition in the
//! database has changed.

#[cfg(test)]
mod tests;

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use domain::{
    coverage::{Coverage, ServiceArea},
    definition::Mistake,
    id::StoreId,
    price_list::PriceList,
    store::{Country, Store},
    time_slot::TimeSlot,
    violation::Violations,
    zone::Zones,
};
use iso_currency::Currency;
use storage::{Storage, delivery_insertion::DefinitionVersions, time_slots::StoredTimeSlot};

use crate::error::Error;

/// How long a price calculation may miss a definition applied at another core.
const TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// The bytes of cached price lists, and of time slots: those of 100,000 stores without their own take a tenth and a fifth.
const PRICE_LIST_BYTES: u64 = 256 * 1024 * 1024;
const TIME_SLOT_BYTES: u64 = 128 * 1024 * 1024;

/// The bytes of an entry without a definition.
const ENTRY_BYTES: usize = 256;

/// What the expressions, and the hours, of a definition take in memory, compared with its text.
const PRICE_LIST_FACTOR: usize = 32;
const TIME_SLOT_FACTOR: usize = 8;

/// What a definition takes besides.
const DEFINITION_BYTES: usize = 2048;

/// Which cached definitions may be used. None is older than the last definition applied at this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// None: read from the database.
    Bypass,
    /// One that is at most [`TIME_TO_LIVE`] old.
    Recent,
    /// One of any age. What is planned with it is written only if it is still current.
    AnyAge,
}

/// Values of the database by key.
struct DefinitionCache<K, V>(moka::sync::Cache<K, CachedValue<V>>);

#[derive(Clone)]
struct CachedValue<V> {
    value: V,
    /// When the read began.
    at: Instant,
    /// The value of [`Definitions::applied`] when the read began.
    applied: u64,
}

impl<K, V> DefinitionCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// A cache of so many bytes, of values that take `bytes` besides the entry.
    fn new(capacity: u64, bytes: fn(&V) -> usize) -> Self {
        let weigh = move |_: &K, cached: &CachedValue<V>| {
            u32::try_from(ENTRY_BYTES + bytes(&cached.value)).unwrap_or(u32::MAX)
        };
        let cache = moka::sync::Cache::builder().max_capacity(capacity);
        Self(cache.weigher(weigh).build())
    }

    /// The cached value, of any age. A compiled definition is valid as long as its source is
    /// unchanged.
    fn last(&self, key: &K) -> Option<V> {
        self.0.get(key).map(|cached| cached.value)
    }

    /// The cached value if the policy permits it, else the result of `read`. `applied` is the number of
    /// attempts to apply a definition at this core before this call.
    async fn get<E>(
        &self,
        key: K,
        policy: CachePolicy,
        applied: u64,
        read: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let at = Instant::now();
        let max_age = match policy {
            CachePolicy::Bypass => None,
            CachePolicy::Recent => Some(TIME_TO_LIVE),
            CachePolicy::AnyAge => Some(Duration::MAX),
        };
        if let Some(max_age) = max_age
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

/// The error for a stored definition that does not compile. Definitions are checked when they are
/// applied, so this can only happen after an upgrade.
fn invalid_stored_definition(what: &str, store_id: StoreId, mistakes: &[Mistake]) -> Error {
    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    Error::Bug(format!(
        "the {what} of store {store_id} can no longer be read: {}",
        mistakes.join("; ")
    ))
}

/// The definitions in the database, with their cache.
pub(crate) struct Definitions {
    pub(crate) storage: Arc<Storage>,
    /// The attempts to apply a definition at this core; each invalidates all cached values.
    applied: AtomicU64,
    price_lists: DefinitionCache<StoreId, Option<CompiledPriceList>>,
    zones: DefinitionCache<(), (Option<i64>, Zones)>,
    time_slots: DefinitionCache<(StoreId, Country), Option<CompiledTimeSlot>>,
}

/// A version of a price list, compiled with a version of the zones.
#[derive(Clone)]
struct CompiledPriceList {
    version: i64,
    zones: Option<i64>,
    list: Arc<PriceList>,
    text_bytes: usize,
}

impl CompiledPriceList {
    fn bytes(&self) -> usize {
        DEFINITION_BYTES + PRICE_LIST_FACTOR * self.text_bytes
    }
}

/// A time slot, as stored and compiled for the store's country.
#[derive(Clone)]
pub(crate) struct CompiledTimeSlot {
    pub(crate) stored: Arc<StoredTimeSlot>,
    pub(crate) rules: Arc<TimeSlot>,
}

impl CompiledTimeSlot {
    fn bytes(&self) -> usize {
        DEFINITION_BYTES + TIME_SLOT_FACTOR * self.stored.definition.len()
    }
}

impl Definitions {
    pub(crate) fn new(storage: Arc<Storage>) -> Self {
        Self {
            storage,
            applied: AtomicU64::new(0),
            price_lists: DefinitionCache::new(PRICE_LIST_BYTES, |list| {
                list.as_ref().map_or(0, CompiledPriceList::bytes)
            }),
            // There is one.
            zones: DefinitionCache::new(PRICE_LIST_BYTES, |_| 0),
            time_slots: DefinitionCache::new(TIME_SLOT_BYTES, |slot| {
                slot.as_ref().map_or(0, CompiledTimeSlot::bytes)
            }),
        }
    }

    /// Invalidates the cached values. To be called after every attempt to apply a definition, even
    /// a failed one, which may be committed, and before its response.
    pub(crate) fn invalidate(&self) {
        self.applied.fetch_add(1, Ordering::AcqRel);
    }

    fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// The policy of a read. A core invalidates its own values, so a recent value of the only core is
    /// the current one. The exception is an apply that failed with an unknown outcome: it may still
    /// become visible.
    fn effective(&self, policy: CachePolicy) -> CachePolicy {
        if self.storage.is_single_process() {
            CachePolicy::Recent
        } else {
            policy
        }
    }

    /// The price list of a store, if it has one. Adds its versions to `used`.
    pub(crate) async fn price_list(
        &self,
        store_id: StoreId,
        policy: CachePolicy,
        used: &mut DefinitionVersions,
    ) -> Result<Option<Arc<PriceList>>, Error> {
        let (policy, applied) = (self.effective(policy), self.applied());
        let read = self.read_price_list(store_id);
        let found = self.price_lists.get(store_id, policy, applied, read);
        let Some(compiled) = found.await? else {
            return Ok(None);
        };
        used.price_list = Some(compiled.version);
        if compiled.list.references_zones {
            used.add_zones(compiled.zones);
        }
        Ok(Some(compiled.list))
    }

    async fn read_price_list(&self, store_id: StoreId) -> Result<Option<CompiledPriceList>, Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::price_lists::current_version(reader, store_id).await? else {
            return Ok(None);
        };
        if let Some(cached) = self.price_lists.last(&store_id).flatten()
            && cached.version == version
            && (!cached.list.references_zones
                || cached.zones == storage::zones::current_version(reader).await?)
        {
            return Ok(Some(cached));
        }
        let Some(stored) = storage::price_lists::find_current(reader, store_id).await? else {
            return Ok(None);
        };
        // Read after the list, which may name a zone applied just before it.
        let (zones_version, zones) = self.zones(CachePolicy::Bypass).await?;
        let list = parse_price_list(&stored.definition, &zones, None)
            .await?
            .map_err(|mistakes| invalid_stored_definition("price list", store_id, &mistakes))?;
        Ok(Some(CompiledPriceList {
            version: stored.version,
            zones: zones_version,
            list: Arc::new(list),
            text_bytes: stored.definition.len(),
        }))
    }

    pub(crate) async fn zones(&self, policy: CachePolicy) -> Result<(Option<i64>, Zones), Error> {
        let (policy, applied) = (self.effective(policy), self.applied());
        let zones = self.zones.get((), policy, applied, self.read_zones());
        zones.await
    }

    async fn read_zones(&self) -> Result<(Option<i64>, Zones), Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::zones::current_version(reader).await? else {
            return Ok((None, Zones::default()));
        };
        if let Some(cached) = self.zones.last(&())
            && cached.0 == Some(version)
        {
            return Ok(cached);
        }
        let Some(stored) = storage::zones::find_current(reader).await? else {
            return Ok((None, Zones::default()));
        };
        Ok((Some(stored.version), stored.zones))
    }

    /// Where a store delivers now.
    pub(crate) async fn current_coverage(&self, store: &Store) -> Result<Coverage, Error> {
        let mut used = DefinitionVersions::default();
        self.coverage(store, CachePolicy::Bypass, &mut used).await
    }

    /// Where a store delivers. Adds the version of the zones to `used` if it depends on them.
    pub(crate) async fn coverage(
        &self,
        store: &Store,
        policy: CachePolicy,
        used: &mut DefinitionVersions,
    ) -> Result<Coverage, Error> {
        let default = store.default_address.as_ref();
        let address = default.map(|address| address.lat_lng);
        match &store.service_area {
            None => Ok(Coverage::Unlimited { store: address }),
            Some(ServiceArea::Circle(circle)) => Ok(match circle.center().or(address) {
                Some(center) => Coverage::Circle {
                    center,
                    radius_meters: circle.radius_meters(),
                },
                // Without a center, every address counts as covered.
                None => Coverage::UNKNOWN,
            }),
            Some(ServiceArea::Zone(name)) => {
                let (version, zones) = self.zones(policy).await?;
                used.add_zones(version);
                // The zone existed when it was assigned, and zones are never removed.
                if !zones.has(name) {
                    let store = store.id;
                    return Err(Error::Bug(format!(
                        "the service area of store {store} is the zone {name:?}, which does not exist"
                    )));
                }
                Ok(Coverage::Zone {
                    name: name.clone(),
                    zones,
                    store: address,
                })
            }
        }
    }

    pub(crate) async fn time_slot(
        &self,
        store: &Store,
        policy: CachePolicy,
    ) -> Result<Option<CompiledTimeSlot>, Error> {
        let (policy, applied) = (self.effective(policy), self.applied());
        let key = (store.id, store.country.clone());
        let read = async {
            let reader = self.storage.reader();
            let found = storage::time_slots::find_default(reader, store.id).await?;
            let Some(stored) = found else {
                return Ok(None);
            };
            Ok(Some(CompiledTimeSlot {
                rules: self.compile_time_slot(store, &stored)?,
                stored: Arc::new(stored),
            }))
        };
        self.time_slots.get(key, policy, applied, read).await
    }

    pub(crate) fn compile_time_slot(
        &self,
        store: &Store,
        stored: &StoredTimeSlot,
    ) -> Result<Arc<TimeSlot>, Error> {
        let key = (store.id, store.country.clone());
        if let Some(cached) = self.time_slots.last(&key).flatten()
            && cached.stored.definition == stored.definition
        {
            return Ok(cached.rules);
        }
        let rules = TimeSlot::parse(&stored.definition, store.country.as_str())
            .map_err(|mistakes| invalid_stored_definition("time slot", store.id, &mistakes))?;
        Ok(Arc::new(rules))
    }
}

/// Parses a price list on a blocking thread, because a long one takes a while. One to be applied
/// must be in the store's currency.
pub(crate) async fn parse_price_list(
    definition: &str,
    zones: &Zones,
    store_currency: Option<Currency>,
) -> Result<Result<PriceList, Vec<Mistake>>, Error> {
    let (definition, zones) = (definition.to_owned(), zones.clone());
    tokio::task::spawn_blocking(move || PriceList::parse_in(store_currency, &definition, &zones))
        .await
        .map_err(|error| Error::Bug(error.to_string()))
}

/// Converts mistakes of a definition to violations, with line and column as the field.
pub(crate) fn invalid(mistakes: Vec<Mistake>) -> Error {
    let mut violations = Violations::new();
    for mistake in mistakes {
        violations.add(
            format!("{}:{}", mistake.line, mistake.column),
            "MISTAKE",
            mistake.message,
        );
    }
    Error::Invalid(violations)
}
