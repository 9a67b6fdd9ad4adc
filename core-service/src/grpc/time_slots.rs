//! Time slots: defined by operators, offered to shops.

use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, definitions, messages};
use crate::{
    domain::{
        api_client::Scope,
        id::TimeSlotId,
        time_slot::{
            TimeSlot,
            label::{self, Language},
        },
    },
    error::Error,
    storage::{self, time_slots::StoredTimeSlot},
};

#[tonic::async_trait]
impl proto::time_slots_server::TimeSlots for Core {
    async fn list_time_slot_choices(
        &self,
        request: Request<proto::ListTimeSlotChoicesRequest>,
    ) -> Result<Response<proto::ListTimeSlotChoicesResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let not_found = || Error::NotFound {
            name: if request.name.is_empty() {
                "time slot of the store".to_owned()
            } else {
                request.name.clone()
            },
        };
        let offer = self.offer(store).await?.ok_or_else(not_found)?;
        if !request.name.is_empty() && Collection::TimeSlots.id(&request.name) != Some(offer.id.0) {
            return Err(not_found().into());
        }

        let now = self.now_in(store);
        let fallback = &self.config.platform.locale;
        let language = Language::negotiate(&request.accept_language, fallback);
        let choices = offer
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
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let store = self.find_store(&request.store).await?;
        let time_slot = TimeSlot::parse(&request.definition, store.country.as_str())
            .map_err(definitions::invalid)?;

        let stored = StoredTimeSlot {
            store_id: store.id,
            id: TimeSlotId::new(),
            display_name: time_slot.display_name().to_owned(),
            definition: request.definition,
            updated_at: self.clock.now(),
        };
        let stored = self
            .storage
            .write(move |transaction| {
                let mut stored = stored.clone();
                Box::pin(async move {
                    storage::stores::lock(transaction, stored.store_id).await?;
                    let known =
                        storage::time_slots::find_default(transaction, stored.store_id).await?;
                    if let Some(known) = known {
                        stored.id = known.id;
                    }
                    storage::time_slots::save(transaction, &stored).await?;
                    Ok(stored)
                })
            })
            .await?;

        Ok(Response::new(time_slot_message(stored)))
    }

    async fn check_time_slot(
        &self,
        request: Request<proto::CheckTimeSlotRequest>,
    ) -> Result<Response<proto::CheckTimeSlotResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let definition = request.into_inner().definition;
        TimeSlot::parse(&definition, self.config.platform.country.as_str())
            .map_err(definitions::invalid)?;

        Ok(Response::new(proto::CheckTimeSlotResponse {}))
    }

    async fn get_default_time_slot(
        &self,
        request: Request<proto::GetDefaultTimeSlotRequest>,
    ) -> Result<Response<proto::TimeSlot>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let name = request.into_inner().store;
        let not_found = || Error::NotFound {
            name: format!("{name}/time_slot"),
        };
        let store_id = if caller.has(Scope::Admin) {
            self.find_store(&name).await?.id
        } else {
            caller.require(Scope::Deliveries)?;
            let store = caller.store()?;
            if Collection::Stores.id(&name) != Some(store.id.0) {
                return Err(not_found().into());
            }
            store.id
        };

        let stored = storage::time_slots::find_default(self.storage.reader(), store_id)
            .await
            .map_err(Error::from)?
            .ok_or_else(not_found)?;
        Ok(Response::new(time_slot_message(stored)))
    }
}

fn time_slot_message(stored: StoredTimeSlot) -> proto::TimeSlot {
    proto::TimeSlot {
        name: Collection::TimeSlots.name(stored.id),
        store: Collection::Stores.name(stored.store_id),
        display_name: stored.display_name,
        definition: stored.definition,
        update_time: Some(messages::timestamp(stored.updated_at)),
    }
}
