//! Creates deliveries: of a store's own client, or of dispatch for the store that it names.

use std::sync::Arc;

use domain::{delivery::Delivery, tracking::TrackingLink};
use process::random;
use prost::Message as _;
use storage::{
    Session,
    delivery_insertion::{self, NewDelivery},
    slot_bookings,
};
use tonic::Response;
use uuid::Uuid;

use super::{message, warnings};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::{RequestKey, begin_or_replay},
    planning::{
        definitions::CachePolicy,
        planner::PlannedDelivery,
        quotas::DeliveryQuotas,
        quotes::{self, QuoteUse},
    },
    services::Services,
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

impl Services {
    /// Creates a delivery for the caller's store, or replays the response to an earlier request.
    pub(super) async fn create_or_replay(
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
        let quotas = DeliveryQuotas::new(self.config.deliveries);
        let audit = caller.audit.clone();
        let is_plain = quote_id.is_none() && booking.is_none() && quotas.are_off();
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
                        quotas.check(&transaction, store_id, bytes, now).await?;
                        if !delivery_insertion::insert(&transaction, &new).await? {
                            return Err(Error::DefinitionChanged);
                        }
                        quotas.count(&transaction, store_id, bytes, now).await?;
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
        let response = self.idempotency.new_response(request_key, reply);
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
}

/// Records the use of a quote. Fails if another delivery has used it.
async fn use_quote(transaction: &Session, id: Uuid, delivery: &Delivery) -> Result<(), Error> {
    if storage::retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = storage::retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(quotes::already_used(earlier.unwrap_or(delivery.id)))
}
