//! Price lists: applied and checked by operators.

use tonic::{Request, Response, Status};

use super::{Core, definitions, messages};
use crate::{
    domain::{
        api_client::Scope,
        price_list::{PriceList, Zones},
    },
    error::Error,
    storage::{self, price_lists::StoredPriceList},
};

#[tonic::async_trait]
impl proto::price_lists_server::PriceLists for Core {
    async fn apply_price_list(
        &self,
        request: Request<proto::ApplyPriceListRequest>,
    ) -> Result<Response<proto::PriceList>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let store = self.find_store(&request.store).await?;
        let definition = request.definition;
        let list =
            PriceList::parse(&definition, &Zones::default()).map_err(definitions::invalid)?;

        let (store_id, now) = (store.id, self.clock.now());
        let stored = self
            .storage
            .write(move |transaction| {
                let definition = definition.clone();
                Box::pin(async move {
                    storage::stores::lock(transaction, store_id).await?;
                    let version =
                        storage::price_lists::current_version(transaction, store_id).await?;
                    let stored = StoredPriceList {
                        store_id,
                        version: version.unwrap_or(0) + 1,
                        definition,
                        created_at: now,
                    };
                    storage::price_lists::insert(transaction, &stored).await?;
                    Ok(stored)
                })
            })
            .await?;

        Ok(Response::new(price_list(stored, list.warnings())))
    }

    async fn check_price_list(
        &self,
        request: Request<proto::CheckPriceListRequest>,
    ) -> Result<Response<proto::CheckPriceListResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let definition = request.into_inner().definition;
        let list =
            PriceList::parse(&definition, &Zones::default()).map_err(definitions::invalid)?;

        Ok(Response::new(proto::CheckPriceListResponse {
            warnings: list.warnings().to_vec(),
        }))
    }

    async fn get_price_list(
        &self,
        request: Request<proto::GetPriceListRequest>,
    ) -> Result<Response<proto::PriceList>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let name = request.into_inner().store;
        let store = self.find_store(&name).await?;
        let stored = storage::price_lists::find_current(self.storage.reader(), store.id)
            .await
            .map_err(Error::from)?
            .ok_or_else(|| Error::NotFound {
                name: format!("{name}/price_list"),
            })?;
        let warnings = PriceList::parse(&stored.definition, &Zones::default())
            .map(|list| list.warnings().to_vec())
            .unwrap_or_default();

        Ok(Response::new(price_list(stored, &warnings)))
    }
}

fn price_list(stored: StoredPriceList, warnings: &[String]) -> proto::PriceList {
    proto::PriceList {
        store: proto::iri::Collection::Stores.name(stored.store_id),
        version: u32::try_from(stored.version).unwrap_or(u32::MAX),
        definition: stored.definition,
        create_time: Some(messages::timestamp(stored.created_at)),
        warnings: warnings.to_vec(),
    }
}
