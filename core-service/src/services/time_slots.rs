//! Time slots: defined by operators, offered to shops.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    id::TimeSlotId,
    time_slot::{
        OpeningHoursSpecification, TimeSlot,
        label::{self, Language},
    },
};
use jiff::{Zoned, civil::Time};
use proto::{iri::Collection, language::negotiate};
use storage::time_slots::StoredTimeSlot;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages,
    planning::{
        definitions::{self, CachePolicy},
        slot_availability::SlotAvailability,
    },
};

#[tonic::async_trait]
impl proto::time_slots_server::TimeSlots for Services {
    async fn list_time_slot_choices(
        &self,
        request: Request<proto::ListTimeSlotChoicesRequest>,
    ) -> Reply<proto::ListTimeSlotChoicesResponse> {
        let (caller, request) = Caller::of(request)?;
        let caller = self
            .caller_for_store(caller, &request.store, Scope::DispatchRead)
            .await?;
        let store = caller.store()?;

        let id = match &*request.name {
            "" => None,
            name => Some(messages::id_in(Collection::TimeSlots, name)?),
        };
        let not_found = || {
            Error::NotFound(if request.name.is_empty() {
                "time slot of the store".to_owned()
            } else {
                request.name.clone()
            })
        };
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let availability =
            SlotAvailability::read(self.definitions(), store, CachePolicy::Recent, &now)
                .await?
                .ok_or_else(not_found)?;
        if id.is_some_and(|id| id != availability.stored.id.0) {
            return Err(not_found().into());
        }

        let language = Language::with_tag(negotiate(
            &request.accept_language,
            &self.config.platform.locale,
            &Language::tags(),
        ));
        let choices = availability
            .choices(&now)
            .into_iter()
            .map(|window| proto::TimeSlotChoice {
                start_time: Some(messages::timestamp(window.after)),
                end_time: Some(messages::timestamp(window.before)),
                label: label::label(window, &now, language),
            })
            .collect();
        Ok(Response::new(proto::ListTimeSlotChoicesResponse {
            choices,
            language: language.tag().to_owned(),
        }))
    }

    async fn apply_time_slot(
        &self,
        request: Request<proto::ApplyTimeSlotRequest>,
    ) -> Reply<proto::TimeSlot> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = request.store.clone();
        let applied = self.save_time_slot(&caller, request).await?;
        caller.audit("ApplyTimeSlot", &store, &applied);
        Ok(applied)
    }

    async fn check_time_slot(
        &self,
        request: Request<proto::CheckTimeSlotRequest>,
    ) -> Reply<proto::CheckTimeSlotResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let definition = request.definition;
        let country = self.config.platform.country.as_str();
        TimeSlot::parse(&definition, country).map_err(definitions::invalid)?;

        Ok(Response::new(proto::CheckTimeSlotResponse {}))
    }

    async fn get_default_time_slot(
        &self,
        request: Request<proto::GetDefaultTimeSlotRequest>,
    ) -> Reply<proto::TimeSlot> {
        let (caller, request) = Caller::of(request)?;
        let store = self.store_of(&caller, &request.store).await?;
        let current = self
            .definitions()
            .time_slot(&store, CachePolicy::Bypass)
            .await?
            .ok_or_else(|| Error::NotFound(format!("{}/time_slot", request.store)))?;
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let stored = Arc::unwrap_or_clone(current.stored);
        Ok(Response::new(message(stored, &current.rules, &now)))
    }

    async fn get_time_slot(
        &self,
        request: Request<proto::GetTimeSlotRequest>,
    ) -> Reply<proto::TimeSlot> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let reader = self.storage.reader();
        let find = |id| storage::time_slots::find(reader, store.id, TimeSlotId(id));
        let stored = messages::find_resource(Collection::TimeSlots, &name, find).await?;

        let rules = self.definitions().compile_time_slot(store, &stored)?;
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        Ok(Response::new(message(stored, &rules, &now)))
    }
}

impl Services {
    /// Applies a time slot, or replays the response to an earlier request.
    async fn save_time_slot(
        &self,
        caller: &Caller,
        request: proto::ApplyTimeSlotRequest,
    ) -> Result<Response<proto::TimeSlot>, Error> {
        let request_key = begin_or_replay!(
            self,
            caller,
            "ApplyTimeSlot",
            &request.store,
            request.idempotency
        );
        let store = messages::find_store(&self.storage, &request.store).await?;
        let (store_id, definition, now) = (store.id, request.definition, self.clock.now());
        let audit = caller.audit.clone();
        let applied = self
            .idempotency
            .write(request_key, move |transaction| async move {
                // Read again under the lock: its country may have changed.
                let store = storage::stores::find_and_lock(&transaction, store_id)
                    .await?
                    .ok_or_else(|| Error::NotFound(Collection::Stores.name(store_id)))?;
                let time_slot = TimeSlot::parse(&definition, store.country.as_str())
                    .map_err(definitions::invalid)?;
                let existing = storage::time_slots::find_default(&transaction, store_id).await?;
                let stored = StoredTimeSlot {
                    store_id,
                    id: existing.map_or_else(TimeSlotId::new, |existing| existing.id),
                    display_name: time_slot.display_name.clone(),
                    definition,
                    updated_at: now,
                };
                storage::time_slots::save(&transaction, &stored).await?;
                audit.record_store(&transaction, store_id).await?;
                Ok(message(stored, &time_slot, &now.to_zoned(store.time_zone)))
            })
            .await;
        self.definitions().invalidate();
        applied
    }
}

fn message(stored: StoredTimeSlot, time_slot: &TimeSlot, now: &Zoned) -> proto::TimeSlot {
    proto::TimeSlot {
        name: Collection::TimeSlots.name(stored.id),
        store: Collection::Stores.name(stored.store_id),
        display_name: stored.display_name,
        definition: stored.definition,
        update_time: Some(messages::timestamp(stored.updated_at)),
        interval: time_slot.interval.to_string(),
        prior_notice: time_slot.prior_notice.map(|length| length.to_string()),
        working_days_only: time_slot.working_days_only,
        opening_hours: time_slot
            .opening_hours_specification(now)
            .iter()
            .map(opening_hours)
            .collect(),
    }
}

fn opening_hours(row: &OpeningHoursSpecification) -> proto::OpeningHours {
    let time = |time: Time| time.strftime("%H:%M").to_string();
    // Only in a row of dates on which the store is closed.
    let closed = row.closed.as_ref();
    proto::OpeningHours {
        opens: time(row.opens),
        closes: time(row.closes),
        // `Day` has the numbers of ISO 8601.
        days: row
            .days
            .iter()
            .map(|day| day.to_monday_one_offset().into())
            .collect(),
        valid_from: closed.map(|dates| dates.start().to_string()),
        valid_through: closed.map(|dates| dates.end().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The domain does not depend on the contract.
    #[test]
    fn labels_are_in_the_languages_of_the_contract() {
        assert_eq!(Language::tags(), proto::language::LANGUAGES);
    }
}
