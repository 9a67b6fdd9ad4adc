//! Retail prices: calculated on request, and decrypted from their own names. A price is stored
//! only when it is used.

use domain::api_client::Scope;
use proto::iri::Collection;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages,
    planning::{definitions::CachePolicy, quotes::QuoteUse},
};

#[tonic::async_trait]
impl proto::retail_prices_server::RetailPrices for Services {
    async fn calculate_retail_price(
        &self,
        request: Request<proto::CalculateRetailPriceRequest>,
    ) -> Reply<proto::RetailPrice> {
        let (caller, request) = Caller::of(request)?;
        let caller = self
            .caller_for_store(caller, &request.store, Scope::DispatchRead)
            .await?;
        let store = caller.store()?;

        let (draft, found) = (request.delivery, request.violations);
        let planned = self
            .planner
            .plan(
                &caller,
                draft,
                found,
                QuoteUse::Replaced,
                CachePolicy::Recent,
            )
            .await?;
        let (delivery, calculation) = (planned.delivery, planned.calculation);
        let reference = delivery.external_reference.as_deref();
        self.check_external_reference(store.id, reference).await?;

        let priced = calculation.price.zip(planned.price_list);
        let (price, price_list) =
            priced.ok_or_else(|| Error::price_not_calculated(&calculation.outcomes))?;
        let expires_at = delivery
            .created_at
            .checked_add(price_list.quote_expiry)
            .map_err(|error| Error::Bug(error.to_string()))?;

        let retail_price = proto::RetailPrice {
            name: String::new(),
            price: Some(messages::price(price)),
            expire_time: Some(messages::timestamp(expires_at)),
            distance_meters: delivery.route.distance_meters,
            duration_seconds: delivery.route.duration_seconds,
            distance_source: messages::distance_source(delivery.route.source).into(),
            calculation: calculation
                .outcomes
                .into_iter()
                .map(messages::rule_outcome)
                .collect(),
            time_zone: store.time_zone_name().to_owned(),
        };
        let quoted = self.planner.issue_quote(&delivery, retail_price);
        Ok(Response::new(quoted))
    }

    async fn get_retail_price(
        &self,
        request: Request<proto::GetRetailPriceRequest>,
    ) -> Reply<proto::RetailPrice> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let collection = Collection::RetailPrices;
        if collection.last_segment(&name).is_none() {
            return Err(Error::InvalidName(name, collection).into());
        }
        let retail_price = self
            .planner
            .read_quote(store.id, &name)
            .ok_or(Error::NotFound(name))?;

        Ok(Response::new(retail_price))
    }
}
