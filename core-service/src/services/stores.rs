//! Stores: managed by operators, read by their own clients.

use domain::{
    address::{Address, LatLng},
    api_client::Scope,
    coverage::{Circle, ServiceArea},
    id::StoreId,
    store::{self, Country, Store},
    telephone,
    time_slot::TimeSlot,
    violation::Violations,
};
use iso_currency::Currency;
use jiff::tz::TimeZone;
use proto::iri::Collection;
use storage::Session;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages,
    planning::{
        definitions::CachePolicy, planner::PRICE_NOT_CALCULATED,
        slot_availability::SLOT_NOT_OFFERED, validation,
    },
};

/// Validated changes of a store; absent fields are left unchanged.
#[derive(Clone)]
struct Changes {
    display_name: Option<String>,
    time_zone: Option<TimeZone>,
    currency: Option<Currency>,
    country: Option<Country>,
    default_address: Option<Address>,
    /// Whether only the location of the default address changes, if the store has one.
    moves_address: bool,
    service_area: Option<NewServiceArea>,
    refuses_unpriced: Option<bool>,
    has_tracking: Option<bool>,
    telephone: Option<NewTelephone>,
}

/// `None` removes the number.
#[derive(Clone)]
struct NewTelephone(Option<String>);

#[derive(Clone)]
enum NewServiceArea {
    Unlimited,
    Limited(ServiceArea),
}

impl Changes {
    fn apply(self, store: &mut Store) {
        fn set<T>(field: &mut T, change: Option<T>) {
            if let Some(value) = change {
                *field = value;
            }
        }
        set(&mut store.display_name, self.display_name);
        set(&mut store.time_zone, self.time_zone);
        set(&mut store.currency, self.currency);
        set(&mut store.country, self.country);
        let service_area = self.service_area.map(|change| match change {
            NewServiceArea::Unlimited => None,
            NewServiceArea::Limited(area) => Some(area),
        });
        set(&mut store.service_area, service_area);
        set(&mut store.refuses_unpriced, self.refuses_unpriced);
        set(&mut store.has_tracking, self.has_tracking);
        let telephone = self.telephone.map(|NewTelephone(number)| number);
        set(&mut store.telephone, telephone);
        if let Some(address) = self.default_address {
            store.default_address = Some(match store.default_address.take() {
                Some(present) if self.moves_address => Address {
                    id: address.id,
                    lat_lng: address.lat_lng,
                    ..present
                },
                _ => address,
            });
        }
    }
}

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
            refuses_unpriced: request.refuses_unpriced,
            has_tracking: request.has_tracking,
            telephone: request.telephone,
            idempotency: None,
        };
        self.changes(changes, &store).await?.apply(&mut store);

        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::stores::insert(&transaction, &store).await?;
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

        let store_id = store.id;
        let updated = self
            .idempotency
            .write(request_key, move |transaction| async move {
                // Read again under the lock: other fields may have changed.
                let mut store = storage::stores::find_and_lock(&transaction, store_id)
                    .await?
                    .ok_or_else(|| Error::NotFound(Collection::Stores.name(store_id)))?;
                let old_country = store.country.clone();
                changes.apply(&mut store);
                if store.country != old_country {
                    check_time_slot(&transaction, &store).await?;
                }
                storage::stores::update(&transaction, &store).await?;
                Ok(messages::store(&store))
            })
            .await;
        // Even if it failed: it may be committed.
        self.authenticator.invalidate();
        updated
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

    async fn changes(
        &self,
        request: proto::UpdateStoreRequest,
        store: &Store,
    ) -> Result<Changes, Error> {
        let mut violations = Violations::new();
        let display_name = request
            .display_name
            .map(|name| validation::required_name("display_name", &name, &mut violations));
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
        let telephone = request.telephone.and_then(|number| {
            let country = country.as_ref().unwrap_or(&store.country);
            let country = telephone::national_country(Some(country), &self.config.platform.country);
            let parsed = telephone::parse(&number, country.as_str());
            let parsed = violations.check("telephone", "INVALID_TELEPHONE", parsed);
            parsed.map(NewTelephone)
        });
        let moves_address = request.default_address.as_ref().is_some_and(|draft| {
            let location = proto::AddressDraft {
                lat_lng: draft.lat_lng,
                ..proto::AddressDraft::default()
            };
            *draft == location
        });
        let default_address = match request.default_address {
            Some(draft) => {
                let mut store = store.clone();
                if let Some(country) = &country {
                    store.country = country.clone();
                }
                self.planner
                    .default_address(draft, Some(&store), &mut violations)
                    .await?
            }
            None => None,
        };
        let service_area = match request.service_area {
            Some(area) => self.new_service_area(area, &mut violations).await?,
            None => None,
        };
        let has_address = store.default_address.is_some()
            || default_address.is_some()
            || violations.has_violation_in("default_address");
        if let Some(NewServiceArea::Limited(ServiceArea::Circle(circle))) = &service_area
            && circle.center().is_none()
            && !has_address
        {
            violations.add(
                "service_area",
                "NO_CENTER",
                "is a distance from the store's address, which is not set: set the address too, or give a point with the distance (48.8554,2.3596,5km)",
            );
        }
        Error::check(violations)?;
        Ok(Changes {
            display_name,
            time_zone,
            currency,
            country,
            default_address,
            moves_address,
            service_area,
            refuses_unpriced: request.refuses_unpriced,
            has_tracking: request.has_tracking,
            telephone,
        })
    }

    /// Validates a service area; none if it is invalid.
    async fn new_service_area(
        &self,
        area: proto::ServiceArea,
        violations: &mut Violations,
    ) -> Result<Option<NewServiceArea>, Error> {
        use proto::service_area::Area;
        let area = match area.area {
            None => return Ok(Some(NewServiceArea::Unlimited)),
            Some(Area::Circle(circle)) => service_circle(circle, violations),
            Some(Area::Zone(name)) => {
                let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
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
        Ok(area.map(NewServiceArea::Limited))
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
