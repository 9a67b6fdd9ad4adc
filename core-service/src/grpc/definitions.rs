//! What operators define, compiled: time slots and price lists, kept until they change.

use domain::{
    definition::Mistake,
    id::{StoreId, TimeSlotId},
    price_list::PriceList,
    store::Store,
    time_slot::TimeSlot,
    violation::Violations,
    zone::Zones,
};
use std::sync::Arc;

use super::{
    Core,
    in_force::{Applied, Freshness, InForce},
};
use storage::time_slots::StoredTimeSlot;

use crate::error::Error;

/// How many of each are kept compiled.
const KEPT: u64 = 1_000;

/// A definition that was applied passed the check then; it can fail it only after an upgrade.
fn outdated(what: &str, store_id: StoreId, mistakes: &[Mistake]) -> Error {
    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    Error::Bug(format!(
        "the {what} of store {store_id} can no longer be read: {}",
        mistakes.join("; ")
    ))
}

/// The definitions in use, by what makes them differ.
pub(crate) struct Definitions {
    price_lists: moka::sync::Cache<(StoreId, i64), KeptPriceList>,
    /// The last of them, by version.
    zones: moka::sync::Cache<i64, Zones>,
    /// By definition and country.
    time_slots: moka::sync::Cache<(String, String), Arc<TimeSlot>>,
    applied: Applied,
    price_lists_in_force: InForce<StoreId, Option<Arc<PriceList>>>,
    zones_in_force: InForce<(), (Option<i64>, Zones)>,
    time_slots_in_force: InForce<StoreId, Option<StoredTimeSlot>>,
}

/// A price list, and the version of the zones that its rules know.
#[derive(Clone)]
struct KeptPriceList {
    list: Arc<PriceList>,
    zones: Option<i64>,
}

impl Definitions {
    pub(crate) fn new() -> Self {
        Self {
            price_lists: moka::sync::Cache::new(KEPT),
            zones: moka::sync::Cache::new(1),
            time_slots: moka::sync::Cache::new(KEPT),
            applied: Applied::default(),
            price_lists_in_force: InForce::new(),
            zones_in_force: InForce::new(),
            time_slots_in_force: InForce::new(),
        }
    }

    /// To be called when a definition may have been committed, whatever became of the answer.
    pub(super) fn applied(&self) {
        self.applied.add();
    }
}

impl Core {
    /// The price list in force in a store, if it has one.
    pub(super) async fn price_list(
        &self,
        store_id: StoreId,
        freshness: Freshness,
    ) -> Result<Option<Arc<PriceList>>, Error> {
        let definitions = &self.definitions;
        let freshness = (freshness, &definitions.applied);
        let read = self.read_price_list(store_id);
        let lists = &definitions.price_lists_in_force;
        lists.get(store_id, freshness, read).await
    }

    async fn read_price_list(&self, store_id: StoreId) -> Result<Option<Arc<PriceList>>, Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::price_lists::current_version(reader, store_id).await? else {
            return Ok(None);
        };
        if let Some(known) = self.definitions.price_lists.get(&(store_id, version)) {
            let names_zones = known.list.names_zones();
            if !names_zones || known.zones == storage::zones::current_version(reader).await? {
                return Ok(Some(known.list));
            }
        }
        let Some(stored) = storage::price_lists::find_current(reader, store_id).await? else {
            return Ok(None);
        };
        // After the list: it may name a zone that was applied just before it.
        let (zones_version, zones) = self.read_zones().await?;
        let list = parse_price_list(&stored.definition, &zones)
            .await?
            .map_err(|mistakes| outdated("price list", store_id, &mistakes))?;
        let list = Arc::new(list);
        self.definitions.price_lists.insert(
            (store_id, stored.version),
            KeptPriceList {
                list: Arc::clone(&list),
                zones: zones_version,
            },
        );
        Ok(Some(list))
    }

    /// The zones there are now, and their version.
    pub(super) async fn zones(&self, freshness: Freshness) -> Result<(Option<i64>, Zones), Error> {
        let definitions = &self.definitions;
        let freshness = (freshness, &definitions.applied);
        let zones = &definitions.zones_in_force;
        zones.get((), freshness, self.read_zones()).await
    }

    async fn read_zones(&self) -> Result<(Option<i64>, Zones), Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::zones::current_version(reader).await? else {
            return Ok((None, Zones::default()));
        };
        if let Some(zones) = self.definitions.zones.get(&version) {
            return Ok((Some(version), zones));
        }
        let Some(stored) = storage::zones::find_current(reader).await? else {
            return Ok((None, Zones::default()));
        };
        self.definitions
            .zones
            .insert(stored.version, stored.zones.clone());
        Ok((Some(stored.version), stored.zones))
    }

    /// The time slot a store offers by default, if it has one.
    pub(super) async fn time_slot(
        &self,
        store: &Store,
        freshness: Freshness,
    ) -> Result<Option<(TimeSlotId, Arc<TimeSlot>)>, Error> {
        let definitions = &self.definitions;
        let freshness = (freshness, &definitions.applied);
        let read = storage::time_slots::find_default(self.storage.reader(), store.id);
        let slots = &definitions.time_slots_in_force;
        let Some(stored) = slots.get(store.id, freshness, read).await? else {
            return Ok(None);
        };
        let time_slot = self.compile_time_slot(store, &stored)?;
        Ok(Some((stored.id, time_slot)))
    }

    /// A store's time slot, ready for use.
    pub(super) fn compile_time_slot(
        &self,
        store: &Store,
        stored: &StoredTimeSlot,
    ) -> Result<Arc<TimeSlot>, Error> {
        let country = store.country.as_str();
        let key = (stored.definition.clone(), country.to_owned());
        if let Some(known) = self.definitions.time_slots.get(&key) {
            return Ok(known);
        }
        let time_slot = TimeSlot::parse(&stored.definition, country)
            .map_err(|mistakes| outdated("time slot", store.id, &mistakes))?;
        let time_slot = Arc::new(time_slot);
        self.definitions
            .time_slots
            .insert(key, Arc::clone(&time_slot));
        Ok(time_slot)
    }
}

/// Reads a price list where that holds up no other call: a long one takes a moment.
pub(super) async fn parse_price_list(
    definition: &str,
    zones: &Zones,
) -> Result<Result<PriceList, Vec<Mistake>>, Error> {
    let (definition, zones) = (definition.to_owned(), zones.clone());
    tokio::task::spawn_blocking(move || PriceList::parse(&definition, &zones))
        .await
        .map_err(|error| Error::Bug(error.to_string()))
}

/// The mistakes of a definition as violations: the field is their place.
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
