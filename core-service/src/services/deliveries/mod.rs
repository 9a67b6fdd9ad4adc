//! Deliveries: created and cancelled together with their tasks, each in one transaction.

pub(crate) mod creation;
mod filters;

use std::sync::Arc;

use domain::{
    api_client::Scope,
    before::DateOrder,
    delivery::Delivery,
    id::{DeliveryId, StoreId},
};
use process::clock::Clock;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::Idempotency,
    messages::{self, lookup, pages},
    metrics::Metrics,
    notifications::Streams,
    planning::{
        freshness::Freshness,
        quotes::{self, QuoteUse},
    },
    services::deliveries::creation::{DeliveryCreator, new_delivery},
};
use storage::{Storage, pages::Cursor, slot_bookings};

pub(crate) struct Deliveries {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) creator: DeliveryCreator,
    pub(crate) streams: Arc<Streams>,
    pub(crate) metrics: Metrics,
}

#[tonic::async_trait]
impl proto::deliveries_server::Deliveries for Deliveries {
    async fn create_delivery(
        &self,
        request: Request<proto::CreateDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        caller.store()?;

        let request_key =
            self.idempotency
                .read_key(&caller, "CreateDelivery", request.idempotency)?;
        if let Some(reply) = self.idempotency.replay(request_key).await? {
            return Ok(reply);
        }

        let draft = (request.delivery, request.violations);
        let created = self.creator.plan_and_create(&caller, draft, request_key);
        Ok(Box::pin(created).await?)
    }

    async fn assert_delivery(
        &self,
        request: Request<proto::AssertDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let draft = (request.delivery, request.violations);
        let planned = self
            .creator
            .planner
            .plan(&caller, draft, QuoteUse::Charged, Freshness::Current)
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
            ..messages::preview(delivery, store)
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let reader = self.storage.reader();
        let find = |id| storage::deliveries::find(reader, store.id, DeliveryId(id));
        let delivery = lookup::resource((Collection::Deliveries, &name), find).await?;

        Ok(Response::new(messages::delivery(delivery, store)))
    }

    async fn list_deliveries(
        &self,
        request: Request<proto::ListDeliveriesRequest>,
    ) -> Result<Response<proto::ListDeliveriesResponse>, Status> {
        let (caller, mut request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let mut violations = messages::read_violations(std::mem::take(&mut request.violations));
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        let order = DateOrder::of_country(store.country.as_str());
        let filter = filters::parse(request, (&now, order), &mut violations);
        Error::check(violations)?;

        let reader = self.storage.reader();
        let (page, has_more) =
            storage::delivery_pages::read(reader, store.id, &filter, (start, size))
                .await
                .map_err(Error::from)?;
        let bounds = [page.first().map(cursor), page.last().map(cursor)];
        let (next_page_token, previous_page_token) = pages::tokens(start, bounds, has_more);
        Ok(Response::new(proto::ListDeliveriesResponse {
            deliveries: page
                .into_iter()
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
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let id = Collection::Deliveries.id(&name).map(DeliveryId);
        let delivery = match id {
            Some(id) => self.cancel(store.id, id).await?,
            None => None,
        };
        let delivery = delivery.ok_or(Error::NotFound(name))?;

        Ok(Response::new(messages::delivery(delivery, store)))
    }
}

fn cursor(delivery: &Delivery) -> Cursor {
    Cursor {
        created_at: delivery.created_at,
        id: delivery.id.0,
    }
}

impl Deliveries {
    /// Cancels a delivery. Writes the event and enqueues its notifications in the same transaction.
    /// None if the delivery does not exist.
    async fn cancel(&self, store_id: StoreId, id: DeliveryId) -> Result<Option<Delivery>, Error> {
        let now = self.clock.now();
        let streams = Arc::clone(&self.streams);
        let (delivery, pending_dispatch) = self
            .storage
            .write(move |transaction| async move {
                // The lock serializes cancellation and completion.
                let found = storage::deliveries::find_and_lock(&transaction, store_id, id).await?;
                let Some(mut delivery) = found else {
                    return Ok::<_, Error>((None, None));
                };
                let event = delivery
                    .cancel(now)
                    .map_err(|error| Error::Conflict("TASK_DONE", error.to_string()))?;
                let Some(event) = event else {
                    return Ok((Some(delivery), None));
                };

                if let Some(booking) = delivery.booking {
                    slot_bookings::release(&transaction, store_id, booking).await?;
                }
                let changes = storage::deliveries::cancellation(&delivery)?;
                let pending_dispatch = streams
                    .enqueue(&transaction, (store_id, id), changes, &[event], now)
                    .await?;
                Ok((Some(delivery), Some(pending_dispatch)))
            })
            .await?;
        if let Some(pending_dispatch) = pending_dispatch {
            self.metrics.deliveries_cancelled.inc();
            self.streams.dispatch(pending_dispatch);
        }
        Ok(delivery)
    }
}
