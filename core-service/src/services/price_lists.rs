//! Price lists: applied and checked by operators.

use domain::{api_client::Scope, id::DeliveryId, price_list::Calculation};
use proto::iri::Collection;
use storage::price_lists::StoredPriceList;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages,
    planning::{
        definitions::{self, CachePolicy},
        quotes::QuoteUse,
    },
};

#[tonic::async_trait]
impl proto::price_lists_server::PriceLists for Services {
    async fn apply_price_list(
        &self,
        request: Request<proto::ApplyPriceListRequest>,
    ) -> Reply<proto::PriceList> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = request.store.clone();
        let applied = self.insert_price_list(&caller, request).await?;
        caller.audit("ApplyPriceList", &store, &applied);
        Ok(applied)
    }

    async fn check_price_list(
        &self,
        request: Request<proto::CheckPriceListRequest>,
    ) -> Reply<proto::CheckPriceListResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let definition = request.definition;
        let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
        let list = definitions::parse_price_list(&definition, &zones, None)
            .await?
            .map_err(definitions::invalid)?;

        Ok(Response::new(proto::CheckPriceListResponse {
            warnings: list.warnings.clone(),
        }))
    }

    async fn get_price_list(
        &self,
        request: Request<proto::GetPriceListRequest>,
    ) -> Reply<proto::PriceList> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = messages::find_store(&self.storage, &request.store).await?;
        let reader = self.storage.reader();
        let found = match request.version {
            Some(version) => {
                storage::price_lists::find_version(reader, store.id, version.into()).await
            }
            None => storage::price_lists::find_current(reader, store.id).await,
        };
        let stored = found
            .map_err(Error::from)?
            .ok_or_else(|| Error::NotFound(format!("{}/price_list", request.store)))?;
        let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
        let warnings = definitions::parse_price_list(&stored.definition, &zones, None)
            .await?
            .map(|list| list.warnings.clone())
            .unwrap_or_default();

        Ok(Response::new(price_list(stored, &warnings)))
    }

    async fn list_price_lists(
        &self,
        request: Request<proto::ListPriceListsRequest>,
    ) -> Reply<proto::ListPriceListsResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = messages::find_store(&self.storage, &request.store).await?;
        let reader = self.storage.reader();
        let versions = storage::price_lists::list_versions(reader, store.id, MAX_LISTED)
            .await
            .map_err(Error::from)?;

        let stored = versions.into_iter().map(|(version, created_at)| {
            let stored = StoredPriceList {
                store_id: store.id,
                version,
                definition: String::new(),
                created_at,
            };
            price_list(stored, &[])
        });
        Ok(Response::new(proto::ListPriceListsResponse {
            price_lists: stored.collect(),
        }))
    }

    async fn explain_price(
        &self,
        request: Request<proto::ExplainPriceRequest>,
    ) -> Reply<proto::PriceExplanation> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;
        if !request.name.is_empty() {
            let explanation = self.explain_price_of(&request.name).await?;
            return Ok(Response::new(explanation));
        }

        let store = messages::find_store(&self.storage, &request.store).await?;
        let shop = Caller::of_store(caller.id, store.clone());
        let delivery = request.delivery.map(|delivery| proto::DeliveryDraft {
            retail_price: None,
            ..delivery
        });
        let (found, quote_use) = (request.violations, QuoteUse::Replaced);
        let planned = self
            .planner
            .plan(&shop, delivery, found, quote_use, CachePolicy::Bypass)
            .await?;

        let list = planned.price_list.as_ref();
        let currency = list.map_or(store.currency, |list| list.currency);
        let route = planned.delivery.route;
        Ok(Response::new(proto::PriceExplanation {
            price: planned.calculation.price.map(messages::price),
            currency_code: currency.code().to_owned(),
            distance_meters: route.distance_meters,
            duration_seconds: route.duration_seconds,
            distance_source: messages::distance_source(route.source).into(),
            calculation: planned
                .calculation
                .outcomes
                .into_iter()
                .map(messages::rule_outcome)
                .collect(),
            ..proto::PriceExplanation::default()
        }))
    }
}

impl Services {
    /// Explains the price of a delivery of any store, as of its creation.
    async fn explain_price_of(&self, name: &str) -> Result<proto::PriceExplanation, Error> {
        let reader = self.storage.reader();
        let find = |id| self.find_store_of(DeliveryId(id));
        let store = messages::find_resource(Collection::Deliveries, name, find).await?;
        let find = |id| storage::deliveries::find(reader, store.id, DeliveryId(id));
        let delivery = messages::find_resource(Collection::Deliveries, name, find).await?;
        let created_at = delivery.created_at;
        let stored = storage::price_lists::find_at(reader, store.id, created_at).await?;
        let list = match &stored {
            Some(stored) => {
                let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
                let list = definitions::parse_price_list(&stored.definition, &zones, None).await?;
                Some(list.map_err(definitions::invalid)?)
            }
            None => None,
        };
        let now = created_at.to_zoned(store.time_zone.clone());
        let calculation = list
            .as_ref()
            .map_or_else(Calculation::without_list, |list| {
                list.calculate(&delivery, &store.display_name, &now)
            });

        let currency = delivery.price.map(|price| price.currency);
        let currency = currency.or(list.map(|list| list.currency));
        let version = stored.map(|stored| u32::try_from(stored.version).unwrap_or(u32::MAX));
        let route = delivery.route;
        let outcomes = calculation.outcomes.into_iter();
        Ok(proto::PriceExplanation {
            price: delivery.price.map(messages::price),
            currency_code: currency.unwrap_or(store.currency).code().to_owned(),
            distance_meters: route.distance_meters,
            duration_seconds: route.duration_seconds,
            distance_source: messages::distance_source(route.source).into(),
            calculation: outcomes.map(messages::rule_outcome).collect(),
            price_list_version: version,
            retail_price: delivery.retail_price.unwrap_or_default(),
            calculated_price: calculation.price.map(messages::price),
        })
    }

    /// Applies a price list, or replays the response to an earlier request.
    async fn insert_price_list(
        &self,
        caller: &Caller,
        request: proto::ApplyPriceListRequest,
    ) -> Result<Response<proto::PriceList>, Error> {
        let request_key = begin_or_replay!(
            self,
            caller,
            "ApplyPriceList",
            &request.store,
            request.idempotency
        );
        let store = messages::find_store(&self.storage, &request.store).await?;
        let definition = request.definition;
        let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
        let list = definitions::parse_price_list(&definition, &zones, Some(store.currency))
            .await?
            .map_err(definitions::invalid)?;

        let (store_id, now, audit) = (store.id, self.clock.now(), caller.audit.clone());
        let warnings = list.warnings.clone();
        let applied = self
            .idempotency
            .write(request_key, move |transaction| async move {
                storage::stores::lock(&transaction, store_id).await?;
                let version = storage::price_lists::current_version(&transaction, store_id).await?;
                let stored = StoredPriceList {
                    store_id,
                    version: version.unwrap_or(0) + 1,
                    definition,
                    created_at: now,
                };
                storage::price_lists::insert(&transaction, &stored).await?;
                audit.record_store(&transaction, store_id).await?;
                Ok(price_list(stored, &warnings))
            })
            .await;
        self.definitions().invalidate();
        applied
    }
}

/// Limit of listed versions; older ones can be read by number.
const MAX_LISTED: u64 = 100;

fn price_list(stored: StoredPriceList, warnings: &[String]) -> proto::PriceList {
    proto::PriceList {
        store: Collection::Stores.name(stored.store_id),
        version: u32::try_from(stored.version).unwrap_or(u32::MAX),
        definition: stored.definition,
        create_time: Some(messages::timestamp(stored.created_at)),
        warnings: warnings.to_vec(),
    }
}
