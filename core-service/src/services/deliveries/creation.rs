//! Creates deliveries: plans them with the definitions that this core has cached, and again if these
//! have changed.

use std::sync::Arc;

use domain::{delivery::Delivery, store::Store};
use prost::Message as _;
use tonic::Response;
use uuid::Uuid;

use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::{Idempotency, RequestKey},
    messages::{self, lookup},
    metrics::Metrics,
    planning::{
        freshness::Freshness,
        planner::{Draft, PlannedDelivery, Planner},
        quotas::DeliveryQuotas,
        quotes::{self, QuoteUse},
    },
};
use storage::{
    Session, Storage,
    delivery_insertion::{self, NewDelivery},
    slot_bookings,
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

/// Plans and creates deliveries.
pub(crate) struct DeliveryCreator {
    pub(crate) storage: Arc<Storage>,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) quotas: DeliveryQuotas,
    pub(crate) metrics: Metrics,
}

impl DeliveryCreator {
    /// Plans a draft and creates the delivery, again with the current definitions if those of the
    /// first plan may have changed or its time slot was booked meanwhile.
    pub(crate) async fn plan_and_create(
        &self,
        caller: &Caller,
        draft: Draft,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let store = caller.store()?;
        let mut freshness = self.freshness_of_first_plan();
        let mut plans = 1;
        loop {
            let planned = self
                .planner
                .plan(caller, draft.clone(), QuoteUse::Charged, freshness);
            let created = match planned.await {
                Ok(planned) => Box::pin(self.create(store, planned, request_key)).await,
                Err(error) => Err(error),
            };
            let may_be_outdated = match &created {
                Err(Error::DefinitionChanged | Error::SlotFull) => true,
                Err(Error::Invalid(violations)) => {
                    let is_by_definition = |reason| REASONS_OF_DEFINITIONS.contains(&reason);
                    freshness == Freshness::Any
                        && violations
                            .iter()
                            .any(|violation| is_by_definition(&violation.reason))
                }
                Err(Error::PriceMismatch(_) | Error::Bug(_)) => freshness == Freshness::Any,
                _ => false,
            };
            if may_be_outdated && plans < MAX_PLANS {
                freshness = Freshness::Current;
                plans += 1;
                continue;
            }
            return match created {
                Err(error) => self.idempotency.replay_or(request_key, error).await,
                created => created,
            };
        }
    }

    /// A core that shares its database plans with cached definitions first.
    fn freshness_of_first_plan(&self) -> Freshness {
        if self.storage.is_single_process() {
            Freshness::Current
        } else {
            Freshness::Any
        }
    }

    /// Creates a planned delivery, unless a definition that it was planned with has changed.
    async fn create(
        &self,
        store: &Store,
        planned: PlannedDelivery,
        request_key: RequestKey,
    ) -> Result<Response<proto::Delivery>, Error> {
        let booking = planned.booking;
        let quote_id = planned.quote.as_ref().map(|quote| quote.id);
        let warnings = messages::warnings(&planned.warnings);
        let versions = planned.versions.clone();
        let delivery = new_delivery(planned, store);

        let reference = delivery.external_reference.clone();
        let reply = proto::Delivery {
            warnings,
            ..messages::delivery(delivery.clone(), store)
        };
        let quotas = self.quotas;
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
}

/// A new delivery from a plan.
pub(crate) fn new_delivery(planned: PlannedDelivery, store: &Store) -> Delivery {
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
async fn use_quote(transaction: &Session, id: Uuid, delivery: &Delivery) -> Result<(), Error> {
    if storage::retail_prices::use_once(transaction, id, delivery).await? {
        return Ok(());
    }
    let earlier = storage::retail_prices::find_use(transaction, delivery.store_id, id).await?;
    Err(quotes::already_used(earlier.unwrap_or(delivery.id)))
}
