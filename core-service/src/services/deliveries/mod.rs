//! Deliveries: created and cancelled together with their tasks, each in one transaction.

mod cancelling;
mod creating;
mod filters;
mod reading;
mod searching;

use std::sync::Arc;

use domain::{
    api_client::Scope, delivery::Delivery, id::StoreId, store::Store, violation::Violation,
};
use proto::iri::Collection;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::{authenticator::require_enabled, caller::Caller},
    error::Error,
    messages,
    planning::{
        definitions::CachePolicy,
        quotes::{self, QuoteUse},
    },
};

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
            let found = storage::retail_prices::find_use(reader, store.id, quote_id)
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
