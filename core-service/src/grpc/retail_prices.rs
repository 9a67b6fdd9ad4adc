//! Retail prices: calculated, sealed into their own name, and read again from it; nothing is
//! stored.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use prost::Message as _;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, messages};
use crate::{
    domain::{api_client::Scope, id::StoreId, price_list::RuleOutcome},
    error::Error,
    vault::Purpose,
};

/// How many rules that counted a price's name carries at most.
const MOST_KEPT: usize = 10;

#[tonic::async_trait]
impl proto::retail_prices_server::RetailPrices for Core {
    async fn calculate_retail_price(
        &self,
        request: Request<proto::CalculateRetailPriceRequest>,
    ) -> Result<Response<proto::RetailPrice>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let planned = self
            .plan(&caller, request.delivery, request.violations)
            .await?;

        let no_list = || Error::PriceNotCalculated { rules: Vec::new() };
        let price_list = planned.price_list.ok_or_else(no_list)?;
        let calculation = price_list.calculate(&planned.plan, &store.display_name, &planned.now);
        let price = calculation
            .price
            .ok_or_else(|| not_calculated(&calculation.outcomes))?;
        let expires_at = planned
            .now
            .timestamp()
            .checked_add(price_list.promise())
            .map_err(|error| Error::Bug(error.to_string()))?;

        let mut retail_price = proto::RetailPrice {
            name: String::new(),
            price: Some(messages::price(price)),
            expire_time: Some(messages::timestamp(expires_at)),
            distance_meters: planned.plan.route.meters,
            duration_seconds: planned.plan.route.seconds,
            calculation: calculation.outcomes.into_iter().map(outcome).collect(),
            time_zone: store.time_zone_name().to_owned(),
        };
        retail_price.name = self.seal_price(store.id, &retail_price);
        Ok(Response::new(retail_price))
    }

    async fn get_retail_price(
        &self,
        request: Request<proto::GetRetailPriceRequest>,
    ) -> Result<Response<proto::RetailPrice>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.into_inner().name;
        let retail_price = self
            .unseal_price(store.id, &name, self.clock.now())
            .ok_or(Error::NotFound { name })?;

        Ok(Response::new(retail_price))
    }
}

impl Core {
    /// The name that carries the price itself, readable by its store alone. Of the calculation
    /// it keeps what counted: a name has to fit into a URL, whatever the list's length.
    fn seal_price(&self, store_id: StoreId, retail_price: &proto::RetailPrice) -> String {
        let mut kept = retail_price.clone();
        kept.calculation.retain(|outcome| outcome.matched);
        kept.calculation.truncate(MOST_KEPT);
        let plain = kept.encode_to_vec();
        let sealed = self
            .vault
            .seal(Purpose::RetailPrice, store_id.0.as_bytes(), &plain);
        Collection::RetailPrices.name(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// None if it is altered, another store's, or has expired.
    fn unseal_price(
        &self,
        store_id: StoreId,
        name: &str,
        now: Timestamp,
    ) -> Option<proto::RetailPrice> {
        let token = Collection::RetailPrices.member(name)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let plain = self
            .vault
            .unseal(Purpose::RetailPrice, store_id.0.as_bytes(), &sealed)
            .ok()?;
        let retail_price = proto::RetailPrice::decode(plain.as_slice()).ok()?;
        let expires = retail_price.expire_time.as_ref()?.seconds;
        (now.as_second() < expires).then(|| proto::RetailPrice {
            name: name.to_owned(),
            ..retail_price
        })
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

fn outcome(outcome: RuleOutcome) -> proto::RuleOutcome {
    proto::RuleOutcome {
        rule: outcome.rule,
        matched: outcome.matched,
        reason: outcome.reason,
        amount: outcome.amount,
    }
}
