//! Deliveries: created in one transaction with their tasks, and cancelled with them.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    delivery::{CancelError, Delivery},
    event::EventName,
    id::{DeliveryId, StoreId},
    store::Store,
};
use proto::iri::Collection;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{
    Core,
    caller::Caller,
    filters,
    in_force::Freshness,
    messages,
    notifications::{Owing, owe},
    pages,
    planning::{self, Asked, Planned},
    promises,
};
use storage::{DatabaseTransaction, pages::Place, slot_bookings};

use crate::error::Error;

#[tonic::async_trait]
impl proto::deliveries_server::Deliveries for Core {
    async fn create_delivery(
        &self,
        request: Request<proto::CreateDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let once = self.once(&caller, "CreateDelivery", request.idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }

        let planned = self
            .plan_order(&caller, request.delivery, request.violations)
            .await;
        let planned = match planned {
            Ok(planned) => planned,
            Err(error) => return Ok(self.replay_or(once, error).await?),
        };

        let booking = planned.booking;
        let promise_id = planned.promise.as_ref().map(|promise| promise.id);
        let delivery = order(planned, store);

        let reference = delivery.external_reference.clone();
        let reply = messages::delivery(&delivery, store);
        let created = self
            .write_once(once, move |transaction| {
                let (delivery, reply) = (delivery.clone(), reply.clone());
                Box::pin(async move {
                    // Before the place: who sends an order twice hears that it was used.
                    if let Some(id) = promise_id {
                        use_promise(transaction, id, &delivery).await?;
                    }
                    if let Some((booking, capacity)) = booking {
                        let store_id = delivery.store_id;
                        let booked =
                            slot_bookings::book(transaction, store_id, booking, capacity).await?;
                        if !booked {
                            return Err(Error::SlotTaken(booking.window));
                        }
                    }
                    storage::deliveries::insert(transaction, &delivery).await?;
                    Ok(reply)
                })
            })
            .await;

        match created {
            Err(Error::SlotTaken(window)) => Err(self.slot_is_full(store, window).await.into()),
            Err(Error::Storage(error)) if error.is_unique_violation() => {
                self.check_reference(store.id, reference).await?;
                Err(Error::Storage(error).into())
            }
            created => Ok(created?),
        }
    }

    async fn assert_delivery(
        &self,
        request: Request<proto::AssertDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let planned = self
            .plan_order(&caller, request.delivery, request.violations)
            .await?;
        if let Some(promise) = &planned.promise {
            let reader = self.storage.reader();
            let found = storage::retail_prices::find_use(reader, store.id, promise.id)
                .await
                .map_err(Error::from)?;
            if let Some(delivery_id) = found {
                return Err(promises::used(delivery_id).into());
            }
        }

        let delivery = order(planned, store);
        self.check_reference(store.id, delivery.external_reference.clone())
            .await?;
        Ok(Response::new(messages::preview(&delivery, store)))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.into_inner().name;
        let not_found = || Error::NotFound { name: name.clone() };
        let id = Collection::Deliveries.id(&name).ok_or_else(not_found)?;
        let delivery = storage::deliveries::find(self.storage.reader(), store.id, DeliveryId(id))
            .await
            .map_err(Error::from)?
            .ok_or_else(not_found)?;

        Ok(Response::new(messages::delivery(&delivery, store)))
    }

    async fn list_deliveries(
        &self,
        request: Request<proto::ListDeliveriesRequest>,
    ) -> Result<Response<proto::ListDeliveriesResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let mut request = request.into_inner();
        let mut violations = planning::violations(std::mem::take(&mut request.violations));
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        let (now, order) = (self.now_in(store), Self::date_order(store));
        let filter = filters::read(request, (&now, order), &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations).into());
        }

        let reader = self.storage.reader();
        let (page, more) = storage::delivery_pages::read(reader, store.id, &filter, (start, size))
            .await
            .map_err(Error::from)?;
        let ends = [page.first().map(place), page.last().map(place)];
        let (next_page_token, previous_page_token) = pages::tokens(start, ends, more);
        Ok(Response::new(proto::ListDeliveriesResponse {
            deliveries: page
                .iter()
                .map(|delivery| messages::delivery(delivery, store))
                .collect(),
            next_page_token,
            previous_page_token,
        }))
    }

    async fn cancel_delivery(
        &self,
        request: Request<proto::CancelDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.into_inner().name;
        let id = Collection::Deliveries.id(&name).map(DeliveryId);
        let delivery = match id {
            Some(id) => self.cancel(store.id, id).await?,
            None => None,
        };
        let delivery = delivery.ok_or(Error::NotFound { name })?;

        Ok(Response::new(messages::delivery(&delivery, store)))
    }
}

fn place(delivery: &Delivery) -> Place {
    Place {
        created_at: delivery.created_at,
        id: delivery.id.0,
    }
}

/// The delivery that is planned.
fn order(planned: Planned, store: &Store) -> Delivery {
    let price = match &planned.promise {
        Some(promise) => Some(promise.price),
        // A list that has no price for it does not stand in the way of a delivery.
        None => planned.price_list.as_ref().and_then(|price_list| {
            price_list
                .calculate(&planned.plan, &store.display_name, &planned.now)
                .price
        }),
    };
    let now = planned.now.timestamp();
    Delivery {
        retail_price: planned.promise.map(|promise| promise.name),
        booking: planned.booking.map(|(booking, _)| booking),
        external_reference: planned.external_reference,
        ..Delivery::new(store.id, planned.plan, price, now)
    }
}

/// Fails if another delivery has used the promise.
async fn use_promise(
    transaction: &DatabaseTransaction,
    id: Uuid,
    delivery: &Delivery,
) -> Result<(), Error> {
    if storage::retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = storage::retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(promises::used(earlier.unwrap_or(delivery.id)))
}

impl Core {
    /// Fails if a delivery of the store is called so.
    pub(super) async fn check_reference(
        &self,
        store_id: StoreId,
        reference: Option<String>,
    ) -> Result<(), Error> {
        let Some(reference) = reference else {
            return Ok(());
        };
        let reader = self.storage.reader();
        let id = storage::deliveries::find_by_external_reference(reader, store_id, &reference);
        match id.await? {
            Some(id) => Err(Error::ExternalReferenceTaken {
                reference,
                existing: Collection::Deliveries.name(id),
            }),
            None => Ok(()),
        }
    }

    /// Plans an order, at the price it was promised if it says so.
    async fn plan_order(
        &self,
        caller: &Caller,
        draft: Option<proto::DeliveryDraft>,
        found_before: Vec<proto::Violation>,
    ) -> Result<Planned, Error> {
        let name = draft
            .as_ref()
            .and_then(|draft| draft.retail_price.as_deref());
        let claim = self.read_claim(caller.store()?.id, name);
        let asked = Asked {
            draft,
            violations: found_before,
            freshness: Freshness::Current,
        };
        self.plan(caller, asked, claim).await
    }

    /// Cancels a delivery, and commits with it what that brings about. None if there is no such
    /// delivery.
    async fn cancel(&self, store_id: StoreId, id: DeliveryId) -> Result<Option<Delivery>, Error> {
        let now = self.clock.now();
        let streams = Arc::clone(&self.streams);
        let (delivery, owing) = self
            .storage
            .write(move |transaction| {
                let streams = Arc::clone(&streams);
                Box::pin(async move {
                    // The lock makes a cancellation and a completion follow each other.
                    let found =
                        storage::deliveries::find_and_lock(transaction, store_id, id).await?;
                    let Some(mut delivery) = found else {
                        return Ok::<_, Error>((None, Owing::default()));
                    };
                    let event = delivery.cancel(now).map_err(|error| refused(&error))?;
                    let Some(event) = event else {
                        return Ok((Some(delivery), Owing::default()));
                    };

                    storage::deliveries::save_cancellation(transaction, &delivery).await?;
                    if let Some(booking) = delivery.booking {
                        slot_bookings::give_back(transaction, store_id, booking).await?;
                    }
                    let events = [EventName::from(event)];
                    let of = (store_id, id);
                    let owing = owe(transaction, &streams, of, &events, now).await?;
                    Ok((Some(delivery), owing))
                })
            })
            .await?;
        self.happened.send_replace(());
        self.tell(owing);
        Ok(delivery)
    }
}

fn refused(error: &CancelError) -> Error {
    match error {
        CancelError::TaskDone => Error::Conflict {
            reason: "TASK_DONE",
            message: error.to_string(),
        },
    }
}
