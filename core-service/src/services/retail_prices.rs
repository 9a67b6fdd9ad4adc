//! Retail prices: calculated on request, and decrypted from their own names. A price is stored
//! only when it is used.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    price_list::{Calculation, RuleOutcome},
};
use tonic::{Request, Response, Status};

use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, lookup},
    planning::{
        freshness::Freshness,
        planner::Planner,
        quotes::{QuoteUse, Quotes},
    },
};

use storage::Storage;

pub(crate) struct RetailPrices {
    pub(crate) storage: Arc<Storage>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) quotes: Arc<Quotes>,
}

#[tonic::async_trait]
impl proto::retail_prices_server::RetailPrices for RetailPrices {
    async fn calculate_retail_price(
        &self,
        request: Request<proto::CalculateRetailPriceRequest>,
    ) -> Result<Response<proto::RetailPrice>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let draft = (request.delivery, request.violations);
        let planned = self
            .planner
            .plan(&caller, draft, QuoteUse::Replaced, Freshness::Recent)
            .await?;
        lookup::check_external_reference(
            &self.storage,
            store.id,
            planned.external_reference.clone(),
        )
        .await?;

        let no_list = || not_calculated(&Calculation::without_list().outcomes);
        let price_list = planned.price_list.as_ref().ok_or_else(no_list)?;
        let calculation = price_list.calculate(&planned.plan, &store.display_name, &planned.now);
        let price = calculation
            .price
            .ok_or_else(|| not_calculated(&calculation.outcomes))?;
        let expires_at = planned
            .now
            .timestamp()
            .checked_add(price_list.quote_expiry)
            .map_err(|error| Error::Bug(error.to_string()))?;

        let retail_price = proto::RetailPrice {
            name: String::new(),
            price: Some(messages::price(price)),
            expire_time: Some(messages::timestamp(expires_at)),
            distance_meters: planned.plan.route.distance_meters,
            duration_seconds: planned.plan.route.duration_seconds,
            distance_source: messages::distance_source(planned.plan.route.source).into(),
            calculation: calculation
                .outcomes
                .into_iter()
                .map(messages::rule_outcome)
                .collect(),
            time_zone: store.time_zone_name().to_owned(),
        };
        let quoted = (&planned.plan, planned.now.timestamp());
        Ok(Response::new(self.quotes.issue(
            store,
            quoted,
            retail_price,
        )))
    }

    async fn get_retail_price(
        &self,
        request: Request<proto::GetRetailPriceRequest>,
    ) -> Result<Response<proto::RetailPrice>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.name;
        let retail_price = self
            .quotes
            .read(store.id, &name)
            .ok_or(Error::NotFound(name))?;

        Ok(Response::new(retail_price))
    }
}

fn not_calculated(outcomes: &[RuleOutcome]) -> Error {
    Error::PriceNotCalculated {
        rules: outcomes
            .iter()
            .map(|outcome| (outcome.rule.clone(), outcome.reason.clone()))
            .collect(),
    }
}
