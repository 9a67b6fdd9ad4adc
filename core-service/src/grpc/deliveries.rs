//! Deliveries: created and cancelled together with their tasks, each in one transaction.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    before::DateOrder,
    delivery::{CancelError, Delivery},
    id::{DeliveryId, StoreId},
    store::Store,
};
use process::clock::Clock;
use prost::Message as _;
use proto::iri::Collection;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{
    caller::Caller,
    filters,
    freshness::Freshness,
    idempotency::{Idempotency, RequestKey},
    lookup, messages,
    notifications::{Outbox, PendingDispatch},
    pages,
    planning::{PlanRequest, PlannedDelivery, Planner},
    quotas::DeliveryQuotas,
    quotes::{self, Quotes},
    slot_availability::Slots,
};
use storage::{
    DatabaseTransaction, Storage,
    delivery_insertion::{self, DefinitionVersions},
    pages::Cursor,
    slot_bookings,
};

use crate::{error::Error, metrics::Metrics};

pub(super) struct Deliveries {
    pub(super) storage: Arc<Storage>,
    pub(super) clock: Clock,
    pub(super) idempotency: Arc<Idempotency>,
    pub(super) planner: Arc<Planner>,
    pub(super) quotes: Arc<Quotes>,
    pub(super) slots: Arc<Slots>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) quotas: DeliveryQuotas,
    pub(super) metrics: Metrics,
}

#[tonic::async_trait]
impl proto::deliveries_server::Deliveries for Deliveries {
    async fn create_delivery(
        &self,
        request: Request<proto::CreateDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = Caller::with_scope(&request, Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let request_key =
            self.idempotency
                .read_key(&caller, "CreateDelivery", request.idempotency)?;
        if let Some(reply) = self.idempotency.replay(request_key).await? {
            return Ok(reply);
        }

        let mut freshness = self.freshness_of_first_plan();
        loop {
            let draft = (request.delivery.clone(), request.violations.clone());
            let mut used = DefinitionVersions::default();
            let created = match self.plan_draft(&caller, draft, freshness, &mut used).await {
                Ok(planned) => Box::pin(self.create(store, planned, &used, request_key)).await,
                Err(error) => Err(error),
            };
            // Another definition may permit what an outdated one does not.
            let is_outdated = match &created {
                Err(Error::DefinitionChanged) => true,
                Err(Error::Invalid(_) | Error::SlotTaken(_) | Error::Bug(_))
                    if freshness == Freshness::Any =>
                {
                    !self.planner.definitions.are_current(store, &used).await?
                }
                _ => false,
            };
            if is_outdated {
                freshness = Freshness::Current;
                continue;
            }
            return match created {
                Ok(created) => Ok(created),
                Err(Error::SlotTaken(window)) => {
                    Err(self.slots.full_slot_error(store, window).await.into())
                }
                Err(error) => Ok(self.idempotency.replay_or(request_key, error).await?),
            };
        }
    }

    async fn assert_delivery(
        &self,
        request: Request<proto::AssertDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = Caller::with_scope(&request, Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let draft = (request.delivery, request.violations);
        let planned = self
            .plan_draft(
                &caller,
                draft,
                Freshness::Current,
                &mut DefinitionVersions::default(),
            )
            .await?;
        if let Some(quote) = &planned.quote {
            let reader = self.storage.reader();
            let found = storage::retail_prices::find_use(reader, store.id, quote.id)
                .await
                .map_err(Error::from)?;
            if let Some(delivery_id) = found {
                return Err(quotes::already_used(delivery_id).into());
            }
        }

        let warnings = messages::warnings(&planned.warnings);
        let delivery = new_delivery(planned, store);
        lookup::check_external_reference(
            &self.storage,
            store.id,
            delivery.external_reference.clone(),
        )
        .await?;
        Ok(Response::new(proto::Delivery {
            warnings,
            ..messages::preview(&delivery, store)
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = Caller::with_scope(&request, Scope::Deliveries)?;
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
        let caller = Caller::with_scope(&request, Scope::Deliveries)?;
        let store = caller.store()?;

        let mut request = request.into_inner();
        let mut violations = messages::read_violations(std::mem::take(&mut request.violations));
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let order = DateOrder::of_country(store.country.as_str());
        let filter = filters::parse(request, (&now, order), &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations).into());
        }

        let reader = self.storage.reader();
        let (page, has_more) =
            storage::delivery_pages::read(reader, store.id, &filter, (start, size))
                .await
                .map_err(Error::from)?;
        let bounds = [page.first().map(cursor), page.last().map(cursor)];
        let (next_page_token, previous_page_token) = pages::tokens(start, bounds, has_more);
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
        let caller = Caller::with_scope(&request, Scope::Deliveries)?;
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

fn cursor(delivery: &Delivery) -> Cursor {
    Cursor {
        created_at: delivery.created_at,
        id: delivery.id.0,
    }
}

/// A new delivery from a plan.
fn new_delivery(planned: PlannedDelivery, store: &Store) -> Delivery {
    let price = match &planned.quote {
        Some(quote) => Some(quote.price),
        // A delivery without a matching price rule is created without a price.
        None => planned.price_list.as_ref().and_then(|price_list| {
            price_list
                .calculate(&planned.plan, &store.display_name, &planned.now)
                .price
        }),
    };
    let now = planned.now.timestamp();
    Delivery {
        retail_price: planned.quote.map(|quote| quote.name),
        booking: planned.booking.map(|(booking, _)| booking),
        external_reference: planned.external_reference,
        ..Delivery::new(store.id, planned.plan, price, now)
    }
}

/// Records the use of a quote. Fails if another delivery has used it.
async fn use_quote(
    transaction: &DatabaseTransaction,
    id: Uuid,
    delivery: &Delivery,
) -> Result<(), Error> {
    if storage::retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = storage::retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(quotes::already_used(earlier.unwrap_or(delivery.id)))
}

impl Deliveries {
    /// A core that shares its database plans with cached definitions first.
    fn freshness_of_first_plan(&self) -> Freshness {
        if self.storage.is_single_process() {
            Freshness::Current
        } else {
            Freshness::Any
        }
    }

    /// Plans a draft and the violations found by the gateway, with the quote that the draft names.
    async fn plan_draft(
        &self,
        caller: &Caller,
        (draft, violations): (Option<proto::DeliveryDraft>, Vec<proto::Violation>),
        freshness: Freshness,
        used: &mut DefinitionVersions,
    ) -> Result<PlannedDelivery, Error> {
        let name = draft
            .as_ref()
            .and_then(|draft| draft.retail_price.as_deref());
        let quote_lookup = self.quotes.look_up(caller.store()?.id, name);
        let plan_request = PlanRequest {
            draft,
            violations,
            freshness,
        };
        self.planner
            .plan(caller, plan_request, quote_lookup, used)
            .await
    }

    /// Creates a planned delivery, unless a definition that it was planned with has changed.
    async fn create(
        &self,
        store: &Store,
        planned: PlannedDelivery,
        versions: &DefinitionVersions,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let booking = planned.booking;
        let quote_id = planned.quote.as_ref().map(|quote| quote.id);
        let versions = versions.clone();
        let warnings = messages::warnings(&planned.warnings);
        let delivery = new_delivery(planned, store);

        let reference = delivery.external_reference.clone();
        let reply = proto::Delivery {
            warnings,
            ..messages::delivery(&delivery, store)
        };
        let quotas = self.quotas;
        // With a key, the response is stored too.
        let copies = if request_key.is_absent() { 1 } else { 2 };
        let bytes = reply.encoded_len() * copies;
        let is_single_insert =
            request_key.is_absent() && quote_id.is_none() && booking.is_none() && quotas.are_off();
        let created = if is_single_insert {
            match self.storage.insert_delivery(delivery, versions).await {
                Ok(true) => Ok(Response::new(reply)),
                Ok(false) => Err(Error::DefinitionChanged),
                Err(error) => Err(error.into()),
            }
        } else {
            let write = self.idempotency.write(request_key, move |transaction| {
                let (delivery, reply) = (delivery.clone(), reply.clone());
                let versions = versions.clone();
                Box::pin(async move {
                    // Before the booking, so that a repeated request fails because of its quote,
                    // not because of the time slot.
                    if let Some(id) = quote_id {
                        use_quote(transaction, id, &delivery).await?;
                    }
                    if let Some((booking, capacity)) = booking {
                        let store_id = delivery.store_id;
                        let booked =
                            slot_bookings::book(transaction, store_id, booking, capacity).await?;
                        if !booked {
                            return Err(Error::SlotTaken(booking.window));
                        }
                    }
                    let (store_id, now) = (delivery.store_id, delivery.created_at);
                    quotas.check(transaction, store_id, bytes, now).await?;
                    if !delivery_insertion::insert(transaction, &delivery, &versions).await? {
                        return Err(Error::DefinitionChanged);
                    }
                    quotas.count(transaction, store_id, bytes, now).await?;
                    Ok(reply)
                })
            });
            write.await
        };

        match created {
            Err(Error::Storage(error)) if error.is_unique_violation() => {
                lookup::check_external_reference(&self.storage, store.id, reference).await?;
                Err(Error::Storage(error))
            }
            created => {
                let created = created?;
                if !created.metadata().contains_key(proto::IDEMPOTENT_REPLAYED) {
                    self.metrics.deliveries_created.inc();
                }
                Ok(created)
            }
        }
    }

    /// Cancels a delivery. Writes the event and enqueues its notifications in the same transaction.
    /// None if the delivery does not exist.
    async fn cancel(&self, store_id: StoreId, id: DeliveryId) -> Result<Option<Delivery>, Error> {
        let now = self.clock.now();
        let outbox = Arc::clone(&self.outbox);
        let (delivery, pending_dispatch, is_changed) = self
            .storage
            .write(move |transaction| {
                let outbox = Arc::clone(&outbox);
                Box::pin(async move {
                    // The lock serializes cancellation and completion.
                    let found =
                        storage::deliveries::find_and_lock(transaction, store_id, id).await?;
                    let Some(mut delivery) = found else {
                        return Ok::<_, Error>((None, PendingDispatch::default(), false));
                    };
                    let event = delivery.cancel(now).map_err(|error| conflict(&error))?;
                    let Some(event) = event else {
                        return Ok((Some(delivery), PendingDispatch::default(), false));
                    };

                    storage::deliveries::save_cancellation(transaction, &delivery).await?;
                    if let Some(booking) = delivery.booking {
                        slot_bookings::release(transaction, store_id, booking).await?;
                    }
                    let events = [event];
                    let delivery_key = (store_id, id);
                    let pending_dispatch = outbox
                        .enqueue(transaction, delivery_key, &events, now)
                        .await?;
                    Ok((Some(delivery), pending_dispatch, true))
                })
            })
            .await?;
        if is_changed {
            self.metrics.deliveries_cancelled.inc();
        }
        self.outbox.dispatch(pending_dispatch);
        Ok(delivery)
    }
}

fn conflict(error: &CancelError) -> Error {
    match error {
        CancelError::TaskDone => Error::Conflict {
            reason: "TASK_DONE",
            message: error.to_string(),
        },
    }
}
