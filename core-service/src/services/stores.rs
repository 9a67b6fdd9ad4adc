//! Stores: managed by operators, read by their own clients.

mod changes;

use domain::{api_client::Scope, brand::Brand, id::StoreId, store::Store, time_slot::TimeSlot};
use iso_currency::Currency;
use jiff::Timestamp;
use proto::iri::Collection;
use storage::Session;
use tonic::{Request, Response};

use self::changes::NewLogo;
use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages,
    planning::{
        definitions::CachePolicy, planner::PRICE_NOT_CALCULATED,
        slot_availability::SLOT_NOT_OFFERED,
    },
};

#[tonic::async_trait]
impl proto::stores_server::Stores for Services {
    async fn create_store(
        &self,
        request: Request<proto::CreateStoreRequest>,
    ) -> Reply<proto::Store> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let created = self.insert_store(&caller, request).await?;
        caller.audit("CreateStore", &created.get_ref().name, &created);
        Ok(created)
    }

    async fn get_store(&self, request: Request<proto::GetStoreRequest>) -> Reply<proto::Store> {
        let (caller, request) = Caller::of(request)?;
        let store = self.store_of(&caller, &request.name).await?;
        // The default first.
        let time_slots = storage::time_slots::list(self.storage.reader(), store.id)
            .await
            .map_err(Error::from)?;

        let default_slot = self
            .definitions()
            .time_slot(&store, CachePolicy::Recent)
            .await?;
        let offered_only = default_slot.is_some_and(|current| current.rules.offered_only());
        let refusals = [
            (offered_only, SLOT_NOT_OFFERED),
            (store.refuses_unpriced, PRICE_NOT_CALCULATED),
        ];
        let refused = refusals.into_iter().filter(|(is_refused, _)| *is_refused);

        Ok(Response::new(proto::Store {
            refused_warnings: refused.map(|(_, reason)| reason.to_owned()).collect(),
            time_slots: time_slots
                .into_iter()
                .map(|time_slot| Collection::TimeSlots.name(time_slot.id))
                .collect(),
            ..messages::store(&store)
        }))
    }

    async fn list_stores(
        &self,
        request: Request<proto::ListStoresRequest>,
    ) -> Reply<proto::ListStoresResponse> {
        Caller::with_scope(request, Scope::PlatformRead)?;

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
    ) -> Reply<proto::Store> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let updated = self.write_store_changes(&caller, request).await?;
        caller.audit("UpdateStore", &updated.get_ref().name, &updated);
        Ok(updated)
    }

    async fn disable_store(
        &self,
        request: Request<proto::DisableStoreRequest>,
    ) -> Reply<proto::Store> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;
        let (name, idempotency) = (&request.name, request.idempotency);
        let now = Some(self.clock.now());
        let disabled = self.set_store_disabled(&caller, name, idempotency, now);
        let disabled = disabled.await?;
        caller.audit("DisableStore", name, &disabled);
        Ok(disabled)
    }

    async fn enable_store(
        &self,
        request: Request<proto::EnableStoreRequest>,
    ) -> Reply<proto::Store> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;
        let (name, idempotency) = (&request.name, request.idempotency);
        let enabled = self.set_store_disabled(&caller, name, idempotency, None);
        let enabled = enabled.await?;
        caller.audit("EnableStore", name, &enabled);
        Ok(enabled)
    }
}

impl Services {
    /// Creates a store, or replays the response to an earlier request.
    async fn insert_store(
        &self,
        caller: &Caller,
        request: proto::CreateStoreRequest,
    ) -> Result<Response<proto::Store>, Error> {
        let request_key = begin_or_replay!(self, caller, "CreateStore", "", request.idempotency);
        let mut store = Store {
            id: StoreId::new(),
            display_name: String::new(),
            time_zone: self.config.platform.timezone.clone(),
            currency: Currency::EUR,
            country: self.config.platform.country.clone(),
            default_address: None,
            service_area: None,
            refuses_unpriced: false,
            has_tracking: true,
            telephone: None,
            brand: Brand::default(),
            created_at: self.clock.now(),
            disabled_at: None,
        };
        let changes = proto::UpdateStoreRequest {
            name: String::new(),
            display_name: Some(request.display_name),
            default_address: request.default_address,
            time_zone: request.time_zone,
            currency_code: request.currency_code,
            country_code: request.country_code,
            service_area: request.service_area,
            refuses_unpriced: request.refuses_unpriced,
            has_tracking: request.has_tracking,
            telephone: request.telephone,
            colour: request.colour,
            logo: request.logo,
            idempotency: None,
        };
        let changes = self.changes(changes, &store).await?;
        let logo = changes.logo.clone();
        changes.apply(&mut store);

        let audit = caller.audit.clone();
        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::stores::insert(&transaction, &store).await?;
                audit.record_store(&transaction, store.id).await?;
                if let Some(NewLogo(Some(logo))) = &logo {
                    storage::stores::set_logo(&transaction, store.id, Some(logo)).await?;
                }
                Ok(messages::store(&store))
            })
            .await
    }

    /// Changes a store, or replays the response to an earlier request.
    async fn write_store_changes(
        &self,
        caller: &Caller,
        mut request: proto::UpdateStoreRequest,
    ) -> Result<Response<proto::Store>, Error> {
        let idempotency = request.idempotency.take();
        let request_key = begin_or_replay!(self, caller, "UpdateStore", &request.name, idempotency);
        let store = messages::find_store(&self.storage, &request.name).await?;
        let changes = self.changes(request, &store).await?;

        let (store_id, audit) = (store.id, caller.audit.clone());
        let updated = self
            .idempotency
            .write(request_key, move |transaction| async move {
                // Read again under the lock: other fields may have changed.
                let mut store = storage::stores::find_and_lock(&transaction, store_id)
                    .await?
                    .ok_or_else(|| Error::NotFound(Collection::Stores.name(store_id)))?;
                let old_country = store.country.clone();
                if let Some(NewLogo(logo)) = &changes.logo {
                    storage::stores::set_logo(&transaction, store_id, logo.as_ref()).await?;
                }
                changes.apply(&mut store);
                if store.country != old_country {
                    check_time_slot(&transaction, &store).await?;
                }
                storage::stores::update(&transaction, &store).await?;
                audit.record_store(&transaction, store_id).await?;
                Ok(messages::store(&store))
            })
            .await;
        // Even if it failed: it may be committed.
        self.authenticator.invalidate();
        updated
    }

    /// Disables a store, unless it is, or without `disabled_at` enables it; or replays the response to an earlier
    /// request.
    async fn set_store_disabled(
        &self,
        caller: &Caller,
        name: &str,
        idempotency: Option<proto::Idempotency>,
        disabled_at: Option<Timestamp>,
    ) -> Result<Response<proto::Store>, Error> {
        let rpc = match disabled_at {
            Some(_) => "DisableStore",
            None => "EnableStore",
        };
        let request_key = begin_or_replay!(self, caller, rpc, name, idempotency);
        let id = StoreId(messages::id_in(Collection::Stores, name)?);
        let audit = caller.audit.clone();
        let changed = self
            .idempotency
            .write(request_key, move |transaction| async move {
                let mut store = storage::stores::find_and_lock(&transaction, id)
                    .await?
                    .ok_or_else(|| Error::NotFound(Collection::Stores.name(id)))?;
                store.disabled_at = disabled_at.map(|now| store.disabled_at.unwrap_or(now));
                storage::stores::update(&transaction, &store).await?;
                audit.record_store(&transaction, id).await?;
                Ok(messages::store(&store))
            })
            .await;
        // Even if it failed: it may be committed.
        self.authenticator.invalidate();
        changed
    }

    /// Finds a store to read it: the caller's own, or with scope `platform:read` any.
    pub(super) async fn store_of(&self, caller: &Caller, name: &str) -> Result<Store, Error> {
        if caller.has(Scope::PlatformRead) {
            return messages::find_store(&self.storage, name).await;
        }
        caller.require(Scope::Deliveries)?;
        let own = caller.store()?;
        if messages::id_in(Collection::Stores, name)? != own.id.0 {
            return Err(Error::NotFound(name.to_owned()));
        }
        Ok(own.clone())
    }
}

/// Checks that the store's time slot is valid in its new country, whose public holidays may not be
/// known. Requires the store's lock, which an apply takes too.
async fn check_time_slot(transaction: &Session, store: &Store) -> Result<(), Error> {
    let Some(stored) = storage::time_slots::find_default(transaction, store.id).await? else {
        return Ok(());
    };
    let Err(mistakes) = TimeSlot::parse(&stored.definition, store.country.as_str()) else {
        return Ok(());
    };
    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    Err(Error::invalid(
        "country_code",
        "TIME_SLOT_INVALID",
        format!(
            "the store's time slot would be invalid in {} ({}): apply another time slot first",
            store.country.as_str(),
            mistakes.join("; ")
        ),
    ))
}
