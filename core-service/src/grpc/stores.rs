//! Stores: kept by operators, read by their own clients.

use iso_currency::Currency;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, drafts, messages};
use crate::{
    domain::{
        address::Address,
        api_client::Scope,
        id::StoreId,
        store::{self, Country, Store},
        violation::Violations,
    },
    error::Error,
    storage,
};

#[tonic::async_trait]
impl proto::stores_server::Stores for Core {
    async fn create_store(
        &self,
        request: Request<proto::CreateStoreRequest>,
    ) -> Result<Response<proto::Store>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let store = Store {
            id: StoreId::new(),
            display_name: String::new(),
            time_zone: self.config.platform.timezone.clone(),
            currency: Currency::EUR,
            country: self.config.platform.country.clone(),
            default_address: None,
            created_at: self.clock.now(),
        };
        let changes = proto::UpdateStoreRequest {
            name: String::new(),
            display_name: Some(request.display_name),
            default_address: request.default_address,
            time_zone: request.time_zone,
            currency_code: request.currency_code,
            country_code: request.country_code,
        };
        let store = self.changed(store, changes).await?;

        let reply = messages::store(&store);
        self.storage
            .write(move |transaction| {
                let store = store.clone();
                Box::pin(async move {
                    storage::stores::insert(transaction, &store).await?;
                    Ok(())
                })
            })
            .await?;
        Ok(Response::new(reply))
    }

    async fn get_store(
        &self,
        request: Request<proto::GetStoreRequest>,
    ) -> Result<Response<proto::Store>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let name = request.into_inner().name;

        if caller.has(Scope::Admin) {
            let store = self.find_store(&name).await?;
            return Ok(Response::new(messages::store(&store)));
        }
        caller.require(Scope::Deliveries)?;
        let own = caller.store()?;
        if Collection::Stores.id(&name) != Some(own.id.0) {
            return Err(Error::NotFound { name }.into());
        }
        Ok(Response::new(messages::store(own)))
    }

    async fn list_stores(
        &self,
        request: Request<proto::ListStoresRequest>,
    ) -> Result<Response<proto::ListStoresResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let stores = storage::stores::list(self.storage.reader())
            .await
            .map_err(Error::from)?;
        Ok(Response::new(proto::ListStoresResponse {
            stores: stores.iter().map(messages::store).collect(),
        }))
    }

    async fn update_store(
        &self,
        request: Request<proto::UpdateStoreRequest>,
    ) -> Result<Response<proto::Store>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let store = self.find_store(&request.name).await?;
        let store = self.changed(store, request).await?;

        let reply = messages::store(&store);
        self.storage
            .write(move |transaction| {
                let store = store.clone();
                Box::pin(async move {
                    storage::stores::update(transaction, &store).await?;
                    Ok(())
                })
            })
            .await?;
        self.callers.forget();
        Ok(Response::new(reply))
    }
}

impl Core {
    pub(super) async fn find_store(&self, name: &str) -> Result<Store, Error> {
        let not_found = || Error::NotFound {
            name: name.to_owned(),
        };
        let id = Collection::Stores.id(name).ok_or_else(not_found)?;
        storage::stores::find(self.storage.reader(), StoreId(id))
            .await?
            .ok_or_else(not_found)
    }

    /// A store with what is given in place of what it has.
    async fn changed(
        &self,
        mut store: Store,
        changes: proto::UpdateStoreRequest,
    ) -> Result<Store, Error> {
        let mut violations = Violations::new();
        if let Some(name) = changes.display_name {
            store.display_name = drafts::display_name("display_name", &name, &mut violations);
        }
        if let Some(name) = changes.time_zone {
            let parsed = store::parse_time_zone(&name);
            if let Some(zone) = violations.check("time_zone", "UNKNOWN_TIME_ZONE", parsed) {
                store.time_zone = zone;
            }
        }
        if let Some(code) = changes.currency_code {
            let parsed = store::parse_currency(&code);
            if let Some(code) = violations.check("currency_code", "UNKNOWN_CURRENCY", parsed) {
                store.currency = code;
            }
        }
        if let Some(code) = changes.country_code {
            let parsed = code.parse::<Country>();
            if let Some(code) = violations.check("country_code", "UNKNOWN_COUNTRY", parsed) {
                store.country = code;
            }
        }
        if let Some(draft) = changes.default_address {
            store.default_address = self
                .default_address(draft, Some(&store), &mut violations)
                .await?;
        }
        if violations.is_empty() {
            Ok(store)
        } else {
            Err(Error::Invalid(violations))
        }
    }

    /// A default address, of a store or a client.
    pub(super) async fn default_address(
        &self,
        draft: proto::AddressDraft,
        store: Option<&Store>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        const FIELD: &str = "default_address";
        let country = self.config.platform.country.as_str();
        if let Some(draft) = drafts::address_object(FIELD, draft, country, violations) {
            return self.locate(FIELD, draft, store, violations).await;
        }
        if !violations.is_at_or_below(FIELD) {
            violations.add(FIELD, "REQUIRED", "must have a text or a point");
        }
        Ok(None)
    }
}
