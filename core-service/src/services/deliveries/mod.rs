//! Deliveries: created and cancelled together with their tasks, each in one transaction. A store's own client creates
//! them, or dispatch for the store that it names.

mod cancelling;
mod filters;
mod reading;
mod searching;

use std::sync::Arc;

use domain::{
    api_client::Scope, delivery::Delivery, id::StoreId, store::Store, tracking::TrackingLink,
    violation::Violation,
};
use process::random;
use prost::Message as _;
use proto::iri::Collection;
use storage::{
    Session,
    delivery_insertion::{self, NewDelivery},
    retail_prices, slot_bookings,
};
use tonic::{Request, Response};
use uuid::Uuid;

use super::{Reply, Services};
use crate::{
    auth::{authenticator::require_enabled, caller::Caller},
    error::Error,
    idempotency::{RequestKey, begin_or_replay},
    messages,
    planning::{
        definitions::CachePolicy,
        planner::PlannedDelivery,
        quotas,
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
        let (caller, request) = Caller::of(request)?;
        let caller = self
            .caller_for_store(caller, &request.store, Scope::Dispatch)
            .await?;
        let created = Box::pin(self.create_or_replay(&caller, request)).await?;
        caller.audit("CreateDelivery", &created.get_ref().name, &created);
        Ok(created)
    }

    async fn assert_delivery(
        &self,
        request: Request<proto::AssertDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::of(request)?;
        let caller = self
            .caller_for_store(caller, &request.store, Scope::DispatchRead)
            .await?;
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
            let found = retail_prices::find_use(reader, store.id, quote_id)
                .await
                .map_err(Error::from)?;
            if let Some(delivery_id) = found {
                return Err(quotes::already_used(delivery_id).into());
            }
        }

        let delivery = planned.delivery;
        let reference = delivery.external_reference.as_deref();
        self.check_external_reference(store.id, reference).await?;
        Ok(Response::new(proto::Delivery {
            warnings: warnings(&planned.warnings),
            ..messages::preview(message(&caller, delivery, store, ""))
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::of(request)?;
        let delivery = self.read_delivery(&caller, &request.name).await?;
        let store = Collection::Stores.id(&delivery.store).map(StoreId);
        self.record_read(&caller, store, &request.name);
        Ok(Response::new(delivery))
    }

    async fn list_deliveries(
        &self,
        request: Request<proto::ListDeliveriesRequest>,
    ) -> Reply<proto::ListDeliveriesResponse> {
        let (caller, request) = Caller::of(request)?;
        let store = Collection::Stores.id(&request.store).map(StoreId);
        let page = self.read_page(&caller, request).await?;
        self.record_read(&caller, store, Collection::Deliveries.segment());
        Ok(Response::new(page))
    }

    async fn search_deliveries(
        &self,
        request: Request<proto::SearchDeliveriesRequest>,
    ) -> Reply<proto::SearchDeliveriesResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::DispatchRead)?;
        let found = self.search(&request.text).await?;
        self.record_read(&caller, None, Collection::Deliveries.segment());
        Ok(Response::new(found))
    }

    async fn cancel_delivery(
        &self,
        request: Request<proto::CancelDeliveryRequest>,
    ) -> Reply<proto::Delivery> {
        let (caller, request) = Caller::of(request)?;
        Ok(self.cancel_or_replay(&caller, request).await?)
    }
}

impl Services {
    /// The caller on behalf of a store: a store's client names none, and a program of the platform, which needs a
    /// scope, names one. Fails if it is disabled.
    pub(super) async fn caller_for_store(
        &self,
        caller: Arc<Caller>,
        store: &str,
        scope: Scope,
    ) -> Result<Arc<Caller>, Error> {
        if store.is_empty() {
            caller.require(Scope::Deliveries)?;
            caller.store()?;
            return Ok(caller);
        }
        caller.require(scope)?;
        let store = messages::find_store(&self.storage, store).await?;
        require_enabled(Some(&store))?;
        Ok(Arc::new(caller.for_store(store)))
    }

    /// Creates a delivery for the caller's store, or replays the response to an earlier request.
    async fn create_or_replay(
        &self,
        caller: &Caller,
        request: proto::CreateDeliveryRequest,
    ) -> Result<Response<proto::Delivery>, Error> {
        // A key of dispatch is for the store that it names.
        let (store, idempotency) = (&request.store, request.idempotency);
        let request_key = begin_or_replay!(self, caller, "CreateDelivery", store, idempotency);
        let (draft, found) = (request.delivery, request.violations);
        Box::pin(self.plan_and_create(caller, draft, found, request_key)).await
    }

    /// Plans a draft and creates the delivery, again with the current definitions if those of the
    /// first plan may have changed or its time slot was booked.
    async fn plan_and_create(
        &self,
        caller: &Caller,
        draft: Option<proto::DeliveryDraft>,
        found: Vec<proto::Violation>,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
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
                Ok(planned) => Box::pin(self.insert_planned(caller, planned, request_key)).await,
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
        caller: &Caller,
        planned: PlannedDelivery,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let store = caller.store()?;
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
        let request_key = request_key.map(|key| key.of_delivery(store.id, delivery.id));
        let reply = proto::Delivery {
            warnings: warnings(&planned.warnings),
            ..message(caller, delivery.clone(), store, &self.config.public_url)
        };
        let quotas = self.quotas;
        let audit = caller.audit.clone();
        let is_plain = quote_id.is_none() && booking.is_none() && quotas.is_none();
        let is_single_insert = is_plain && !audit.is_on();
        let new = Arc::new(NewDelivery { delivery, versions });
        let inserted = if is_single_insert {
            self.insert_at_once(&new, request_key, &reply).await
        } else {
            Ok(None)
        };
        let created = match inserted {
            Ok(Some(true)) => Ok(Response::new(reply)),
            Ok(Some(false)) => Err(Error::DefinitionChanged),
            Err(error) => Err(error),
            Ok(None) => {
                // With a key, the response is stored too.
                let copies = if request_key.is_none() { 1 } else { 2 };
                let bytes = reply.encoded_len() * copies;
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
                                slot_bookings::book(&transaction, store_id, booking, capacity)
                                    .await?;
                            if !booked {
                                return Err(Error::SlotFull);
                            }
                        }
                        let (store_id, now) = (delivery.store_id, delivery.created_at);
                        if let Some(quotas) = quotas {
                            quotas.check(&transaction, store_id, bytes, now).await?;
                        }
                        if !delivery_insertion::insert(&transaction, &new, None).await? {
                            return Err(Error::DefinitionChanged);
                        }
                        if quotas.is_some() {
                            quotas::count(&transaction, store_id, bytes, now).await?;
                        }
                        let name = &*reply.name;
                        audit.record(&transaction, Some(store_id), name).await?;
                        Ok(reply)
                    });
                Box::pin(write).await
            }
        };

        match created {
            Err(Error::Storage(error)) if error.is_unique_violation() => {
                let reference = reference.as_deref();
                self.check_external_reference(store.id, reference).await?;
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

    /// Inserts a delivery and the response under its key, without a transaction. Returns whether the
    /// definitions are current; `None` if another request has or may have the key.
    async fn insert_at_once(
        &self,
        new: &Arc<NewDelivery>,
        request_key: RequestKey,
        reply: &proto::Delivery,
    ) -> Result<Option<bool>, Error> {
        let response = request_key.map(|request| self.idempotency.new_response(request, reply));
        let inserted = self
            .storage
            .insert_with_response(Arc::clone(new), response)
            .await;
        match inserted {
            Ok(are_current) => Ok(Some(are_current)),
            Err(error)
                if request_key.is_some()
                    && (error.is_unique_violation() || error.is_lock_timeout()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if a delivery of the store has the external reference.
    pub(super) async fn check_external_reference(
        &self,
        store_id: StoreId,
        reference: Option<&str>,
    ) -> Result<(), Error> {
        let Some(reference) = reference else {
            return Ok(());
        };
        let reader = self.storage.reader();
        let id = storage::deliveries::find_by_external_reference(reader, store_id, reference);
        match id.await? {
            Some(id) => Err(Error::ExternalReferenceTaken {
                reference: reference.to_owned(),
                existing: Collection::Deliveries.name(id),
            }),
            None => Ok(()),
        }
    }
}

/// Records the use of a quote. Fails if another delivery has used it.
async fn use_quote(transaction: &Session, id: Uuid, delivery: &Delivery) -> Result<(), Error> {
    if retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(quotes::already_used(earlier.unwrap_or(delivery.id)))
}

/// A delivery as a caller sees it: a shop neither its couriers nor its store.
fn message(
    caller: &Caller,
    delivery: Delivery,
    store: &Store,
    public_url: &str,
) -> proto::Delivery {
    if caller.has(Scope::DispatchRead) {
        messages::delivery_with_store(delivery, store, public_url)
    } else {
        messages::delivery(delivery, store, public_url)
    }
}

fn warnings(found: &[Violation]) -> Vec<proto::Warning> {
    let warnings = found.iter().map(|warning| proto::Warning {
        field: warning.field.clone(),
        description: warning.description.clone(),
        reason: warning.reason.clone().into_owned(),
    });
    warnings.collect()
}
