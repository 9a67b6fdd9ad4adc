//! Price lists: applied and checked by operators.

use std::sync::Arc;

use domain::{api_client::Scope, price_list::Calculation};
use process::clock::Clock;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::Idempotency,
    messages::{self, lookup},
    planning::{
        definitions::{self, Definitions},
        freshness::Freshness,
        planner::Planner,
        quotes::QuoteUse,
    },
};
use storage::{Storage, price_lists::StoredPriceList};

pub(crate) struct PriceLists {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) planner: Arc<Planner>,
}

#[tonic::async_trait]
impl proto::price_lists_server::PriceLists for PriceLists {
    async fn apply_price_list(
        &self,
        request: Request<proto::ApplyPriceListRequest>,
    ) -> Result<Response<proto::PriceList>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = (Collection::Stores, request.store.as_str());
        let request_key =
            self.idempotency
                .read_key_on(&caller, "ApplyPriceList", store, request.idempotency)?;
        if let Some(reply) = self.idempotency.replay(request_key).await? {
            return Ok(reply);
        }
        let store = lookup::store(&self.storage, &request.store).await?;
        let definition = request.definition;
        let (_, zones) = self.definitions.zones(Freshness::Current).await?;
        let list = definitions::parse_price_list(&definition, &zones, Some(store.currency))
            .await?
            .map_err(definitions::invalid)?;

        let (store_id, now) = (store.id, self.clock.now());
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
                Ok(price_list(stored, &warnings))
            })
            .await;
        self.definitions.invalidate();
        let applied = applied?;
        caller.audit("ApplyPriceList", &request.store);
        Ok(applied)
    }

    async fn check_price_list(
        &self,
        request: Request<proto::CheckPriceListRequest>,
    ) -> Result<Response<proto::CheckPriceListResponse>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let definition = request.definition;
        let (_, zones) = self.definitions.zones(Freshness::Current).await?;
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
    ) -> Result<Response<proto::PriceList>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = lookup::store(&self.storage, &request.store).await?;
        let reader = self.storage.reader();
        let stored = match request.version {
            Some(version) => {
                storage::price_lists::find_version(reader, store.id, version.into()).await
            }
            None => storage::price_lists::find_current(reader, store.id).await,
        };
        let stored = stored
            .map_err(Error::from)?
            .ok_or_else(|| no_list(&request.store))?;
        let (_, zones) = self.definitions.zones(Freshness::Current).await?;
        let warnings = definitions::parse_price_list(&stored.definition, &zones, None)
            .await?
            .map(|list| list.warnings.clone())
            .unwrap_or_default();

        Ok(Response::new(price_list(stored, &warnings)))
    }

    async fn list_price_lists(
        &self,
        request: Request<proto::ListPriceListsRequest>,
    ) -> Result<Response<proto::ListPriceListsResponse>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = lookup::store(&self.storage, &request.store).await?;
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
    ) -> Result<Response<proto::PriceExplanation>, Status> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let store = lookup::store(&self.storage, &request.store).await?;
        let shop = Caller::of_store(caller.id, store.clone());
        let delivery = request.delivery.map(|delivery| proto::DeliveryDraft {
            retail_price: None,
            ..delivery
        });
        let draft = (delivery, request.violations);
        let planned = self
            .planner
            .plan(&shop, draft, QuoteUse::Replaced, Freshness::Current)
            .await?;

        let (currency, calculation) = match &planned.price_list {
            Some(list) => (
                list.currency,
                list.calculate(&planned.plan, &store.display_name, &planned.now),
            ),
            None => (store.currency, Calculation::without_list()),
        };
        Ok(Response::new(proto::PriceExplanation {
            price: calculation.price.map(messages::price),
            currency_code: currency.code().to_owned(),
            distance_meters: planned.plan.route.distance_meters,
            duration_seconds: planned.plan.route.duration_seconds,
            distance_source: messages::distance_source(planned.plan.route.source).into(),
            calculation: calculation
                .outcomes
                .into_iter()
                .map(messages::rule_outcome)
                .collect(),
        }))
    }
}

/// Limit of listed versions; older ones can be read by number.
const MAX_LISTED: u64 = 100;

fn no_list(store: &str) -> Error {
    Error::NotFound(format!("{store}/price_list"))
}

fn price_list(stored: StoredPriceList, warnings: &[String]) -> proto::PriceList {
    proto::PriceList {
        store: Collection::Stores.name(stored.store_id),
        version: u32::try_from(stored.version).unwrap_or(u32::MAX),
        definition: stored.definition,
        create_time: Some(messages::timestamp(stored.created_at)),
        warnings: warnings.to_vec(),
    }
}
