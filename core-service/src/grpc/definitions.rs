//! Time slots, price lists and zones, compiled and cached in two levels: which definition of a
//! store is current, for about a second ([`FreshnessCache`]), and each compiled definition until it
//! is evicted.

use domain::{
    coverage::Coverage,
    definition::Mistake,
    id::{StoreId, TimeSlotId},
    price_list::PriceList,
    service_area::ServiceArea,
    store::Store,
    time_slot::TimeSlot,
    violation::Violations,
    zone::Zones,
};
use iso_currency::Currency;
use std::sync::Arc;

use super::freshness::{ApplyCounter, Freshness, FreshnessCache};
use storage::{Storage, time_slots::StoredTimeSlot};

use crate::error::Error;

/// Capacity of each cache of compiled definitions.
const CACHE_CAPACITY: u64 = 1_000;

/// The error for a stored definition that does not compile. Definitions are checked when they are
/// applied, so this can only happen after an upgrade.
fn invalid_stored_definition(what: &str, store_id: StoreId, mistakes: &[Mistake]) -> Error {
    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    Error::Bug(format!(
        "the {what} of store {store_id} can no longer be read: {}",
        mistakes.join("; ")
    ))
}

/// The definitions in the database, with the caches of both levels.
pub(super) struct Definitions {
    storage: Arc<Storage>,
    price_lists: moka::sync::Cache<(StoreId, i64), CachedPriceList>,
    /// The latest zones, by version.
    zones: moka::sync::Cache<i64, Zones>,
    /// By definition and country.
    time_slots: moka::sync::Cache<(String, String), Arc<TimeSlot>>,
    applied: ApplyCounter,
    recent_price_lists: FreshnessCache<StoreId, Option<Arc<PriceList>>>,
    recent_zones: FreshnessCache<(), (Option<i64>, Zones)>,
    recent_time_slots: FreshnessCache<StoreId, Option<StoredTimeSlot>>,
}

/// A price list, and the version of the zones it was compiled with.
#[derive(Clone)]
struct CachedPriceList {
    list: Arc<PriceList>,
    zones: Option<i64>,
}

impl Definitions {
    pub(super) fn new(storage: Arc<Storage>) -> Self {
        Self {
            storage,
            price_lists: moka::sync::Cache::new(CACHE_CAPACITY),
            zones: moka::sync::Cache::new(1),
            time_slots: moka::sync::Cache::new(CACHE_CAPACITY),
            applied: ApplyCounter::default(),
            recent_price_lists: FreshnessCache::new(),
            recent_zones: FreshnessCache::new(),
            recent_time_slots: FreshnessCache::new(),
        }
    }

    /// Invalidates the recent values. To be called after every attempt to apply a definition, even a
    /// failed one: it may be committed.
    pub(super) fn invalidate(&self) {
        self.applied.increment();
    }

    /// The current price list of a store, if it has one.
    pub(super) async fn price_list(
        &self,
        store_id: StoreId,
        freshness: Freshness,
    ) -> Result<Option<Arc<PriceList>>, Error> {
        let freshness = (freshness, &self.applied);
        let read = self.read_price_list(store_id);
        let lists = &self.recent_price_lists;
        lists.get(store_id, freshness, read).await
    }

    async fn read_price_list(&self, store_id: StoreId) -> Result<Option<Arc<PriceList>>, Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::price_lists::current_version(reader, store_id).await? else {
            return Ok(None);
        };
        if let Some(cached) = self.price_lists.get(&(store_id, version)) {
            let references_zones = cached.list.references_zones();
            if !references_zones || cached.zones == storage::zones::current_version(reader).await? {
                return Ok(Some(cached.list));
            }
        }
        let Some(stored) = storage::price_lists::find_current(reader, store_id).await? else {
            return Ok(None);
        };
        // After the list, which may name a zone applied just before it.
        let (zones_version, zones) = self.read_zones().await?;
        let list = parse_price_list(&stored.definition, &zones, None)
            .await?
            .map_err(|mistakes| invalid_stored_definition("price list", store_id, &mistakes))?;
        let list = Arc::new(list);
        self.price_lists.insert(
            (store_id, stored.version),
            CachedPriceList {
                list: Arc::clone(&list),
                zones: zones_version,
            },
        );
        Ok(Some(list))
    }

    /// The current zones and their version.
    pub(super) async fn zones(&self, freshness: Freshness) -> Result<(Option<i64>, Zones), Error> {
        let freshness = (freshness, &self.applied);
        let zones = &self.recent_zones;
        zones.get((), freshness, self.read_zones()).await
    }

    async fn read_zones(&self) -> Result<(Option<i64>, Zones), Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::zones::current_version(reader).await? else {
            return Ok((None, Zones::default()));
        };
        if let Some(zones) = self.zones.get(&version) {
            return Ok((Some(version), zones));
        }
        let Some(stored) = storage::zones::find_current(reader).await? else {
            return Ok((None, Zones::default()));
        };
        self.zones.insert(stored.version, stored.zones.clone());
        Ok((Some(stored.version), stored.zones))
    }

    /// Where a store delivers, by the zones with the given freshness.
    pub(super) async fn coverage(
        &self,
        store: &Store,
        freshness: Freshness,
    ) -> Result<Coverage, Error> {
        let address = store.default_address.as_ref();
        let address = address.map(|address| address.lat_lng);
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
                let (_, zones) = self.zones(freshness).await?;
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

    /// The default time slot of a store, if it has one.
    pub(super) async fn time_slot(
        &self,
        store: &Store,
        freshness: Freshness,
    ) -> Result<Option<(TimeSlotId, Arc<TimeSlot>)>, Error> {
        let freshness = (freshness, &self.applied);
        let read = storage::time_slots::find_default(self.storage.reader(), store.id);
        let slots = &self.recent_time_slots;
        let Some(stored) = slots.get(store.id, freshness, read).await? else {
            return Ok(None);
        };
        let time_slot = self.compile_time_slot(store, &stored)?;
        Ok(Some((stored.id, time_slot)))
    }

    /// Compiles a time slot, or takes it from the cache.
    pub(super) fn compile_time_slot(
        &self,
        store: &Store,
        stored: &StoredTimeSlot,
    ) -> Result<Arc<TimeSlot>, Error> {
        let country = store.country.as_str();
        let key = (stored.definition.clone(), country.to_owned());
        if let Some(cached) = self.time_slots.get(&key) {
            return Ok(cached);
        }
        let time_slot = TimeSlot::parse(&stored.definition, country)
            .map_err(|mistakes| invalid_stored_definition("time slot", store.id, &mistakes))?;
        let time_slot = Arc::new(time_slot);
        self.time_slots.insert(key, Arc::clone(&time_slot));
        Ok(time_slot)
    }
}

/// Parses a price list on a blocking thread, because a long one takes a while. One to be applied
/// must be in the store's currency.
pub(super) async fn parse_price_list(
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
pub(super) fn invalid(mistakes: Vec<Mistake>) -> Error {
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
