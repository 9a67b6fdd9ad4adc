//! Deliveries: created and cancelled together with their tasks, each in one transaction.

mod filters;
mod reading;
mod searching;

use domain::{
    api_client::Scope,
    delivery::Delivery,
    id::DeliveryId,
    store::Store,
    task::Actor,
    task_event::{Remarks, TaskReport},
    tracking::TrackingLink,
};
use process::random;
use prost::Message as _;
use proto::iri::Collection;
use storage::{
    Session,
    delivery_insertion::{self, NewDelivery},
    slot_bookings,
};
use tonic::{Request, Response};
use uuid::Uuid;

use super::{
    Reply, Services,
    delivery_changes::{Changed, DeliveryWriter},
};
use crate::{
    auth::caller::{Caller, Effect},
    error::Error,
    idempotency::{RequestKey, begin_or_replay},
    messages,
    planning::{
        definitions::CachePolicy,
        planner::PlannedDelivery,
        quotas::DeliveryQuotas,
        quotes::{self, QuoteUse},
    },
};

/// The reasons of violations that a store's definitions decide about: its price list, its time slot and
/// the zones.
const REASONS_OF_DEFINITIONS: [&str; 5] = [
    "ADDRESS_UNCLEAR",
    "OUTSIDE_SERVICE_AREA",
    "TIME_SLOT_REFUSED",
    "TIME_SLOT_REQUIRED",
    "UNKNOWN_PACKAGE",
];

/// The most times that a delivery is planned.
const MAX_PLANS: usize = 5;

#[tonic::async_trait]
impl proto::deliveries_server::Deliveries for Services {
    async fn create_delivery(
        &self,
        request: Request<proto::CreateDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        caller.store()?;

        let request_key =
            begin_or_replay!(self, &caller, "CreateDelivery", "", request.idempotency);

        let created =
            self.plan_and_create(&caller, request.delivery, request.violations, request_key);
        Ok(Box::pin(created).await?)
    }

    async fn assert_delivery(
        &self,
        request: Request<proto::AssertDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let planned = self
            .planner
            .plan(
                &caller,
                request.delivery,
                request.violations,
                QuoteUse::Charged,
                CachePolicy::Bypass,
            )
            .await?;
        if let Some(quote_id) = planned.quote_id {
            let reader = self.storage.reader();
            let found = storage::retail_prices::find_use(reader, store.id, quote_id)
                .await
                .map_err(Error::from)?;
            if let Some(delivery_id) = found {
                return Err(quotes::already_used(delivery_id).into());
            }
        }

        let delivery = planned.delivery;
        let reference = delivery.external_reference.as_deref();
        messages::check_external_reference(&self.storage, store.id, reference).await?;
        Ok(Response::new(proto::Delivery {
            warnings: messages::warnings(&planned.warnings),
            ..messages::preview(delivery, store)
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::of(request)?;
        let delivery = self.read_delivery(&caller, &request.name).await?;
        Ok(Response::new(delivery))
    }

    async fn list_deliveries(
        &self,
        request: Request<proto::ListDeliveriesRequest>,
    ) -> Reply<proto::ListDeliveriesResponse> {
        let (caller, request) = Caller::of(request)?;
        Ok(Response::new(self.read_page(&caller, request).await?))
    }

    async fn search_deliveries(
        &self,
        request: Request<proto::SearchDeliveriesRequest>,
    ) -> Reply<proto::SearchDeliveriesResponse> {
        let (_, request) = Caller::with_scope(request, Scope::DispatchRead)?;
        Ok(Response::new(self.search(&request.text).await?))
    }

    async fn cancel_delivery(
        &self,
        request: Request<proto::CancelDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name;
        let is_dispatch = caller.has(Scope::Dispatch);
        let (store, by) = if is_dispatch {
            let find = |id| self.find_store_of(DeliveryId(id));
            let store = messages::find_resource(Collection::Deliveries, &name, find).await?;
            (store, Actor::Dispatch)
        } else {
            caller.require(Scope::Deliveries)?;
            (caller.store()?.clone(), Actor::Shop)
        };
        let report = TaskReport {
            by,
            api_client_id: caller.id,
            times: messages::device_times(request.report),
            remarks: Remarks::default(),
        };

        let cancel = |id| self.write_cancellation(&store, DeliveryId(id), report);
        let cancelled = messages::find_resource(Collection::Deliveries, &name, cancel).await?;

        let effect = match cancelled.events {
            Some(events) => {
                self.dispatch(events);
                Effect::Changed
            }
            None => Effect::Unchanged,
        };
        caller.audit_effect("CancelDelivery", &name, effect);
        let (delivery, public_url) = (cancelled.delivery, &self.config.public_url);
        Ok(Response::new(if is_dispatch {
            messages::delivery_with_store(delivery, &store, public_url)
        } else {
            messages::delivery(delivery, &store, public_url)
        }))
    }
}

impl Services {
    /// Plans a draft and creates the delivery, again with the current definitions if those of the
    /// first plan may have changed or its time slot was booked.
    async fn plan_and_create(
        &self,
        caller: &Caller,
        draft: Option<proto::DeliveryDraft>,
        found: Vec<proto::Violation>,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let store = caller.store()?;
        // A core that shares its database plans with cached definitions first.
        let mut policy = if self.storage.is_single_process() {
            CachePolicy::Bypass
        } else {
            CachePolicy::AnyAge
        };
        let mut plans = 1;
        loop {
            let (draft, found) = (draft.clone(), found.clone());
            let planned = self
                .planner
                .plan(caller, draft, found, QuoteUse::Charged, policy);
            let created = match planned.await {
                Ok(planned) => Box::pin(self.insert_planned(store, planned, request_key)).await,
                Err(error) => Err(error),
            };
            let may_be_outdated = match &created {
                Err(Error::DefinitionChanged | Error::SlotFull) => true,
                Err(Error::Invalid(violations)) => {
                    let is_by_definition = |reason| REASONS_OF_DEFINITIONS.contains(&reason);
                    policy == CachePolicy::AnyAge
                        && violations
                            .iter()
                            .any(|violation| is_by_definition(&violation.reason))
                }
                Err(Error::PriceMismatch(_) | Error::PriceNotCalculated { .. } | Error::Bug(_)) => {
                    policy == CachePolicy::AnyAge
                }
                _ => false,
            };
            if may_be_outdated && plans < MAX_PLANS {
                policy = CachePolicy::Bypass;
                plans += 1;
                continue;
            }
            return match created {
                Err(error) => self.idempotency.replay_or(request_key, error).await,
                created => created,
            };
        }
    }

    /// Creates a planned delivery, unless a definition that it was planned with has changed.
    async fn insert_planned(
        &self,
        store: &Store,
        planned: PlannedDelivery,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let PlannedDelivery {
            mut delivery,
            quote_id,
            capacity,
            versions,
            ..
        } = planned;
        delivery.tracking = Some(TrackingLink::new(random::bytes()));
        let booking = delivery.booking.zip(capacity);
        let reference = delivery.external_reference.clone();
        let reply = proto::Delivery {
            warnings: messages::warnings(&planned.warnings),
            ..messages::delivery(delivery.clone(), store, &self.config.public_url)
        };
        let quotas = DeliveryQuotas::new(self.config.deliveries);
        // With a key, the response is stored too.
        let copies = if request_key.is_none() { 1 } else { 2 };
        let bytes = reply.encoded_len() * copies;
        let is_single_insert =
            request_key.is_none() && quote_id.is_none() && booking.is_none() && quotas.are_off();
        let new = NewDelivery { delivery, versions };
        let created = if is_single_insert {
            match self.storage.insert_delivery(new).await {
                Ok(true) => Ok(Response::new(reply)),
                Ok(false) => Err(Error::DefinitionChanged),
                Err(error) => Err(error.into()),
            }
        } else {
            let write = self
                .idempotency
                .write(request_key, move |transaction| async move {
                    let delivery = &new.delivery;
                    // Before the booking, so that a repeated request fails because of its quote,
                    // not because of the time slot.
                    if let Some(id) = quote_id {
                        use_quote(&transaction, id, delivery).await?;
                    }
                    if let Some((booking, capacity)) = booking {
                        let store_id = delivery.store_id;
                        let booked =
                            slot_bookings::book(&transaction, store_id, booking, capacity).await?;
                        if !booked {
                            return Err(Error::SlotFull);
                        }
                    }
                    let (store_id, now) = (delivery.store_id, delivery.created_at);
                    quotas.check(&transaction, store_id, bytes, now).await?;
                    if !delivery_insertion::insert(&transaction, &new).await? {
                        return Err(Error::DefinitionChanged);
                    }
                    quotas.count(&transaction, store_id, bytes, now).await?;
                    Ok(reply)
                });
            Box::pin(write).await
        };

        match created {
            Err(Error::Storage(error)) if error.is_unique_violation() => {
                let reference = reference.as_deref();
                messages::check_external_reference(&self.storage, store.id, reference).await?;
                Err(Error::Storage(error))
            }
            created => {
                let created = created?;
                if !created.metadata().contains_key(proto::IDEMPOTENT_REPLAYED) {
                    self.metrics.deliveries_created.inc();
                    self.queue.streams.events_written.send_replace(());
                }
                Ok(created)
            }
        }
    }

    /// None if the delivery does not exist.
    async fn write_cancellation(
        &self,
        store: &Store,
        id: DeliveryId,
        report: TaskReport,
    ) -> Result<Option<Changed>, Error> {
        let (store_id, zone) = (store.id, store.time_zone.clone());
        let writer = DeliveryWriter::new(self, zone, report);
        let cancel = self.storage.write(move |transaction| async move {
            let cancel = |delivery: &mut Delivery, now| delivery.cancel(writer.report.by, now);
            writer.change(&transaction, store_id, id, cancel).await
        });
        cancel.await
    }
}

/// Records the use of a quote. Fails if another delivery has used it.
async fn use_quote(transaction: &Session, id: Uuid, delivery: &Delivery) -> Result<(), Error> {
    if storage::retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = storage::retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(quotes::already_used(earlier.unwrap_or(delivery.id)))
}
