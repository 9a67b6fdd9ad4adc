//! Time slots: defined by operators, offered to shops.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    id::TimeSlotId,
    store::Country,
    time_slot::{
        OpeningHoursSpecification, TimeSlot,
        label::{self, Language},
    },
};
use jiff::{Zoned, civil::Time};
use process::clock::Clock;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::Idempotency,
    messages::{self, lookup},
    planning::{
        definitions::{self, Definitions},
        freshness::Freshness,
        slot_availability::SlotAvailability,
    },
};
use storage::{Storage, time_slots::StoredTimeSlot};

pub(crate) struct TimeSlots {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) definitions: Arc<Definitions>,
    /// Language of labels for clients without a supported preference.
    pub(crate) locale: String,
    /// Country of the public holidays that a definition is checked with.
    pub(crate) country: Country,
}

#[tonic::async_trait]
impl proto::time_slots_server::TimeSlots for TimeSlots {
    async fn list_time_slot_choices(
        &self,
        request: Request<proto::ListTimeSlotChoicesRequest>,
    ) -> Result<Response<proto::ListTimeSlotChoicesResponse>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let not_found = || {
            Error::NotFound(if request.name.is_empty() {
                "time slot of the store".to_owned()
            } else {
                request.name.clone()
            })
        };
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let availability =
            SlotAvailability::read(&self.definitions, store, Freshness::Recent, &now)
                .await?
                .ok_or_else(not_found)?;
        if !request.name.is_empty()
            && Collection::TimeSlots.id(&request.name) != Some(availability.stored.id.0)
        {
            return Err(not_found().into());
        }

        let language = Language::negotiate(&request.accept_language, &self.locale);
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
    ) -> Result<Response<proto::TimeSlot>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = (Collection::Stores, request.store.as_str());
        let request_key =
            self.idempotency
                .read_key_on(&caller, "ApplyTimeSlot", store, request.idempotency)?;
        if let Some(reply) = self.idempotency.replay(request_key).await? {
            return Ok(reply);
        }
        let store = lookup::store(&self.storage, &request.store).await?;
        let (store_id, definition, now) = (store.id, request.definition, self.clock.now());
        let applied = self
            .idempotency
            .write(request_key, move |transaction| async move {
                // Read again under the lock: its country may have changed meanwhile.
                let store = storage::stores::find_and_lock(&transaction, store_id).await?;
                let store =
                    store.ok_or_else(|| Error::NotFound(Collection::Stores.name(store_id)))?;
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
                Ok(message(stored, &time_slot, &now.to_zoned(store.time_zone)))
            })
            .await;
        self.definitions.invalidate();
        let applied = applied?;
        caller.audit("ApplyTimeSlot", &request.store);
        Ok(applied)
    }

    async fn check_time_slot(
        &self,
        request: Request<proto::CheckTimeSlotRequest>,
    ) -> Result<Response<proto::CheckTimeSlotResponse>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let definition = request.definition;
        TimeSlot::parse(&definition, self.country.as_str()).map_err(definitions::invalid)?;

        Ok(Response::new(proto::CheckTimeSlotResponse {}))
    }

    async fn get_default_time_slot(
        &self,
        request: Request<proto::GetDefaultTimeSlotRequest>,
    ) -> Result<Response<proto::TimeSlot>, Status> {
        let (caller, request) = Caller::of(request)?;
        let name = request.store;
        let not_found = || Error::NotFound(format!("{name}/time_slot"));
        let store = if caller.has(Scope::Admin) {
            lookup::store(&self.storage, &name).await?
        } else {
            caller.require(Scope::Deliveries)?;
            let store = caller.store()?;
            if Collection::Stores.id(&name) != Some(store.id.0) {
                return Err(not_found().into());
            }
            store.clone()
        };

        let current = self
            .definitions
            .time_slot(&store, Freshness::Current)
            .await?
            .ok_or_else(not_found)?;
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let stored = Arc::unwrap_or_clone(current.stored);
        Ok(Response::new(message(stored, &current.rules, &now)))
    }

    async fn get_time_slot(
        &self,
        request: Request<proto::GetTimeSlotRequest>,
    ) -> Result<Response<proto::TimeSlot>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let reader = self.storage.reader();
        let find = |id| storage::time_slots::find(reader, store.id, TimeSlotId(id));
        let stored = lookup::resource((Collection::TimeSlots, &name), find).await?;

        let rules = self.definitions.compile_time_slot(store, &stored)?;
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        Ok(Response::new(message(stored, &rules, &now)))
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
