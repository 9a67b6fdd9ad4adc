//! Stores: kept by operators, read by their own clients.

use domain::{
    address::{Address, LatLng},
    api_client::Scope,
    id::StoreId,
    service_area::{Circle, ServiceArea},
    store::{self, Country, Store},
    violation::Violations,
};
use iso_currency::Currency;
use jiff::tz::TimeZone;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, drafts, in_force::Freshness, messages, reach::Reach};

use crate::error::Error;

/// What is to be changed of a store; what is absent stays.
#[derive(Clone)]
struct Changes {
    display_name: Option<String>,
    time_zone: Option<TimeZone>,
    currency: Option<Currency>,
    country: Option<Country>,
    default_address: Option<Address>,
    service_area: Option<Delivers>,
}

/// Where a store is to deliver from now on.
#[derive(Clone)]
enum Delivers {
    Anywhere,
    In(ServiceArea),
}

impl Changes {
    fn apply(self, store: &mut Store) {
        fn set<T>(place: &mut T, change: Option<T>) {
            if let Some(value) = change {
                *place = value;
            }
        }
        set(&mut store.display_name, self.display_name);
        set(&mut store.time_zone, self.time_zone);
        set(&mut store.currency, self.currency);
        set(&mut store.country, self.country);
        let service_area = self.service_area.map(|delivers| match delivers {
            Delivers::Anywhere => None,
            Delivers::In(area) => Some(area),
        });
        set(&mut store.service_area, service_area);
        if self.default_address.is_some() {
            store.default_address = self.default_address;
        }
    }
}

#[tonic::async_trait]
impl proto::stores_server::Stores for Core {
    async fn create_store(
        &self,
        request: Request<proto::CreateStoreRequest>,
    ) -> Result<Response<proto::Store>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Admin)?;

        let request = request.into_inner();
        let mut store = Store {
            id: StoreId::new(),
            display_name: String::new(),
            time_zone: self.config.platform.timezone.clone(),
            currency: Currency::EUR,
            country: self.config.platform.country.clone(),
            default_address: None,
            service_area: None,
            created_at: self.clock.now(),
        };
        let changes = proto::UpdateStoreRequest {
            name: String::new(),
            display_name: Some(request.display_name),
            default_address: request.default_address,
            time_zone: request.time_zone,
            currency_code: request.currency_code,
            country_code: request.country_code,
            service_area: request.service_area,
        };
        self.changes(changes, &store).await?.apply(&mut store);

        let reply = messages::store(&store);
        self.storage
            .write(move |transaction| {
                let store = store.clone();
                Box::pin(async move {
                    storage::stores::insert(transaction, &store).await?;
                    Ok::<_, Error>(())
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

        let mut reply = if caller.has(Scope::Admin) {
            messages::store(&self.find_store(&name).await?)
        } else {
            caller.require(Scope::Deliveries)?;
            let own = caller.store()?;
            if Collection::Stores.id(&name) != Some(own.id.0) {
                return Err(Error::NotFound { name }.into());
            }
            messages::store(own)
        };
        reply.time_slots = self.time_slots_of(&reply.name).await?;

        Ok(Response::new(reply))
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
        let changes = self.changes(request, &store).await?;

        let store_id = store.id;
        let updated = self
            .storage
            .write(move |transaction| {
                let changes = changes.clone();
                Box::pin(async move {
                    // As it is now: another may have changed the rest of it meanwhile.
                    let store = storage::stores::find_and_lock(transaction, store_id).await?;
                    let Some(mut store) = store else {
                        return Ok::<_, Error>(None);
                    };
                    changes.apply(&mut store);
                    storage::stores::update(transaction, &store).await?;
                    Ok(Some(store))
                })
            })
            .await?;
        let updated = updated.ok_or_else(|| Error::NotFound {
            name: Collection::Stores.name(store_id),
        })?;
        let reply = messages::store(&updated);
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

    /// The names of a store's time slots, the default first.
    async fn time_slots_of(&self, store: &str) -> Result<Vec<String>, Error> {
        let Some(id) = Collection::Stores.id(store) else {
            return Ok(Vec::new());
        };
        let time_slots = storage::time_slots::list(self.storage.reader(), StoreId(id)).await?;
        Ok(time_slots
            .into_iter()
            .map(|time_slot| Collection::TimeSlots.name(time_slot.id))
            .collect())
    }

    /// What is to be changed of a store, checked.
    async fn changes(
        &self,
        request: proto::UpdateStoreRequest,
        store: &Store,
    ) -> Result<Changes, Error> {
        let mut violations = Violations::new();
        let display_name = request
            .display_name
            .map(|name| drafts::display_name("display_name", &name, &mut violations));
        let time_zone = request.time_zone.and_then(|name| {
            let parsed = store::parse_time_zone(&name);
            violations.check("time_zone", "UNKNOWN_TIME_ZONE", parsed)
        });
        let currency = request.currency_code.and_then(|code| {
            let parsed = store::parse_currency(&code);
            violations.check("currency_code", "UNKNOWN_CURRENCY", parsed)
        });
        let country = request.country_code.and_then(|code| {
            let parsed = code.parse::<Country>();
            violations.check("country_code", "UNKNOWN_COUNTRY", parsed)
        });
        let default_address = match request.default_address {
            Some(draft) => {
                self.default_address(draft, Some(store), &mut violations)
                    .await?
            }
            None => None,
        };
        let service_area = match request.service_area {
            Some(area) => self.delivers(area, &mut violations).await?,
            None => None,
        };
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        Ok(Changes {
            display_name,
            time_zone,
            currency,
            country,
            default_address,
            service_area,
        })
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
            let reach = match store {
                Some(store) => self.reach(store, Freshness::Current).await?,
                None => Reach::UNKNOWN,
            };
            return self.locate(FIELD, draft, &reach, violations).await;
        }
        if !violations.is_at_or_below(FIELD) {
            violations.add(FIELD, "REQUIRED", "must have a text or a point");
        }
        Ok(None)
    }

    /// Where a store is to deliver; none if that is wrong.
    async fn delivers(
        &self,
        area: proto::ServiceArea,
        violations: &mut Violations,
    ) -> Result<Option<Delivers>, Error> {
        use proto::service_area::Area;
        let area = match area.area {
            None => return Ok(Some(Delivers::Anywhere)),
            Some(Area::Circle(circle)) => service_circle(circle, violations),
            Some(Area::Zone(name)) => {
                let (_, zones) = self.zones(Freshness::Current).await?;
                if zones.has(&name) {
                    Some(ServiceArea::Zone(name))
                } else {
                    violations.add(
                        "service_area.zone",
                        "UNKNOWN_ZONE",
                        format!("there is no zone {name:?}: apply it first"),
                    );
                    None
                }
            }
        };
        Ok(area.map(Delivers::In))
    }
}

fn service_circle(circle: proto::Circle, violations: &mut Violations) -> Option<ServiceArea> {
    let center = circle.center.map(|center| {
        let center = LatLng::new(center.latitude, center.longitude);
        violations.check("service_area.circle.center", "INVALID_POINT", center)
    });
    let circle = Circle::new(center.flatten(), circle.radius_meters);
    violations
        .check("service_area.circle.radius_meters", "OUT_OF_RANGE", circle)
        .map(ServiceArea::Circle)
}
