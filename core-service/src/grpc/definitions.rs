//! What operators define, compiled: time slots and price lists, kept until they change.

use std::sync::Arc;

use super::Core;
use crate::{
    domain::{
        definition::Mistake,
        id::{StoreId, TimeSlotId},
        price_list::{PriceList, Zones},
        store::Store,
        time_slot::TimeSlot,
        violation::Violations,
    },
    error::Error,
    storage::{self, time_slots::StoredTimeSlot},
};

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
    price_lists: moka::sync::Cache<(StoreId, i64), Arc<PriceList>>,
    /// By definition and country.
    time_slots: moka::sync::Cache<(String, String), Arc<TimeSlot>>,
}

impl Definitions {
    pub(crate) fn new() -> Self {
        Self {
            price_lists: moka::sync::Cache::new(KEPT),
            time_slots: moka::sync::Cache::new(KEPT),
        }
    }
}

impl Core {
    /// The price list in force in a store, if it has one.
    pub(super) async fn price_list(
        &self,
        store_id: StoreId,
    ) -> Result<Option<Arc<PriceList>>, Error> {
        let reader = self.storage.reader();
        let Some(version) = storage::price_lists::current_version(reader, store_id).await? else {
            return Ok(None);
        };
        if let Some(known) = self.definitions.price_lists.get(&(store_id, version)) {
            return Ok(Some(known));
        }
        let Some(stored) = storage::price_lists::find_current(reader, store_id).await? else {
            return Ok(None);
        };
        let list = PriceList::parse(&stored.definition, &Zones::default())
            .map_err(|mistakes| outdated("price list", store_id, &mistakes))?;
        let list = Arc::new(list);
        self.definitions
            .price_lists
            .insert((store_id, stored.version), Arc::clone(&list));
        Ok(Some(list))
    }

    /// The time slot a store offers by default, if it has one.
    pub(super) async fn time_slot(
        &self,
        store: &Store,
    ) -> Result<Option<(TimeSlotId, Arc<TimeSlot>)>, Error> {
        let stored = storage::time_slots::find_default(self.storage.reader(), store.id).await?;
        let Some(stored) = stored else {
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
