//! Deliveries as they are read: one, and pages of them.

use std::mem;

use domain::{
    api_client::Scope, before::DateOrder, delivery::Delivery, id::DeliveryId, store::Store,
};
use proto::iri::Collection;
use storage::delivery_pages::{self, Stores};

use super::{filters, message};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, pages},
    planning::validation,
    services::Services,
};

impl Services {
    pub(super) async fn read_delivery(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::Delivery, Error> {
        let store = if caller.has(Scope::DispatchRead) {
            let find = |id| self.find_store_of(DeliveryId(id));
            messages::find_resource(Collection::Deliveries, name, find).await?
        } else {
            caller.require(Scope::Deliveries)?;
            caller.store()?.clone()
        };
        let reader = self.storage.reader();
        let find = |id| storage::deliveries::find(reader, store.id, DeliveryId(id));
        let delivery = messages::find_resource(Collection::Deliveries, name, find).await?;
        Ok(message(caller, delivery, &store, &self.config.public_url))
    }

    pub(super) async fn read_page(
        &self,
        caller: &Caller,
        mut request: proto::ListDeliveriesRequest,
    ) -> Result<proto::ListDeliveriesResponse, Error> {
        let is_dispatch = caller.has(Scope::DispatchRead);
        let store = if is_dispatch {
            match &*request.store {
                "" => None,
                name => Some(messages::find_store(&self.storage, name).await?),
            }
        } else {
            // Only dispatch names a store, and has days.
            let is_of_dispatch = !request.store.is_empty() || !request.day.is_empty();
            caller.require(if is_of_dispatch {
                Scope::DispatchRead
            } else {
                Scope::Deliveries
            })?;
            Some(caller.store()?.clone())
        };

        let mut violations = messages::read_violations(mem::take(&mut request.violations));
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        let platform = &self.config.platform;
        let today = self.clock.now().to_zoned(platform.timezone.clone());
        let country = store
            .as_ref()
            .map_or(&platform.country, |store| &store.country);
        let context = filters::Context {
            now: match &store {
                Some(store) => today.with_time_zone(store.time_zone.clone()),
                None => today.clone(),
            },
            order: DateOrder::of_country(country.as_str()),
            today,
            is_of_all_stores: store.is_none(),
        };
        let filter = filters::parse(request, &context, &mut violations);
        Error::check(violations)?;

        let stores = match &store {
            None => Stores::All,
            Some(store) if is_dispatch => Stores::One(store.id),
            Some(store) => Stores::Own(store.id),
        };
        let page = delivery_pages::read(self.storage.reader(), stores, &filter, start, size);
        let (mut page, has_more) = page.await?;
        let has_more = pages::shorten(&mut page, start, text_bytes) || has_more;
        let bounds = [page.first(), page.last()];
        let bounds = bounds.map(|delivery| delivery.map(|delivery| stores.cursor(delivery)));
        let (next_page_token, previous_page_token) = pages::tokens(start, bounds, has_more);
        let deliveries = match store {
            Some(store) if !is_dispatch => {
                let page = page.into_iter();
                page.map(|delivery| messages::delivery(delivery, &store, &self.config.public_url))
                    .collect()
            }
            _ => self.with_stores(page).await?,
        };
        Ok(proto::ListDeliveriesResponse {
            deliveries,
            next_page_token,
            previous_page_token,
        })
    }

    /// Deliveries as dispatch sees them.
    pub(super) async fn with_stores(
        &self,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<proto::Delivery>, Error> {
        let ids = deliveries.iter().map(|delivery| delivery.store_id);
        let stores = storage::stores::find_all(self.storage.reader(), ids).await?;
        let shown = deliveries.into_iter().map(|delivery| -> Result<_, Error> {
            let store = stores.get(&delivery.store_id).ok_or_else(|| {
                storage::Error::inconsistent("deliveries", "a delivery has no store")
            })?;
            let public_url = &self.config.public_url;
            Ok(messages::delivery_with_store(delivery, store, public_url))
        });
        shown.collect()
    }

    pub(in crate::services) async fn find_store_of(
        &self,
        id: DeliveryId,
    ) -> Result<Option<Store>, Error> {
        let reader = self.storage.reader();
        Ok(match storage::deliveries::find_store(reader, id).await? {
            Some(store_id) => storage::stores::find(reader, store_id).await?,
            None => None,
        })
    }
}

pub(super) fn text_bytes(delivery: &Delivery) -> usize {
    [&delivery.pickup, &delivery.dropoff]
        .map(|task| task.address.text_bytes() + validation::text_bytes(&task.details))
        .into_iter()
        .sum()
}
