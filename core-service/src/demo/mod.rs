//! The demo: a shop, its slots and prices, and clients to try everything with. It is made once;
//! what an operator changes of it stays changed.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    address::Address,
    api_client::Scope,
    id::{AddressId, StoreId, TimeSlotId},
    price_list::PriceList,
    store::{self, Store},
    time_slot::TimeSlot,
    zone::Zones,
};
use geocoding::{Answer, Geocoder, Query, gazetteer::GazetteerGeocoder};
use jiff::Timestamp;
use proto::iri::Collection;
use storage::{price_lists::StoredPriceList, time_slots::StoredTimeSlot};

use crate::{
    bootstrap::{self, Credentials, DISPATCHER, OPERATOR},
    error::Error,
    grpc::Core,
    service::{CoreService, StartError},
};

/// The demo's store and clients.
#[derive(Clone, Debug)]
pub struct Demo {
    /// `stores/<id>`.
    pub store: String,
    /// Scopes `deliveries tasks`.
    pub demo_client: Credentials,
    /// Scopes `tasks:all admin`.
    pub operator_client: Credentials,
    /// Scope `notifications`.
    pub dispatcher_client: Credentials,
}

const SHOP: &str = "Demo shop";
const TIME_ZONE: &str = "Europe/Paris";
const CURRENCY: &str = "EUR";
const COUNTRY: &str = "FR";
const ADDRESS: &str = include_str!("address.txt");
const TIME_SLOT: &str = include_str!("time_slot.toml");
const PRICE_LIST: &str = include_str!("price_list.toml");

impl CoreService {
    /// Creates what is missing of the demo. Its keys and secrets derive from the master key, so
    /// that every start finds the same.
    pub async fn ensure_demo(&self) -> Result<Demo, StartError> {
        ensure(self.core()).await.map_err(StartError::Bootstrap)
    }
}

async fn ensure(core: &Core) -> Result<Demo, Error> {
    let demo_client = credentials(core, "demo client");
    let known =
        storage::api_clients::find_by_key(core.storage.reader(), &demo_client.api_key).await?;
    let store_id = match known.and_then(|client| client.store_id) {
        Some(store_id) => store_id,
        None => create_shop(core, &demo_client).await?,
    };

    Ok(Demo {
        store: Collection::Stores.name(store_id),
        demo_client,
        operator_client: ensure_client(core, "demo operator", OPERATOR).await?,
        dispatcher_client: ensure_client(core, "demo dispatcher", DISPATCHER).await?,
    })
}

/// The store with its slots, prices and client, in one transaction: the client is what a later
/// start finds the store by.
async fn create_shop(core: &Core, credentials: &Credentials) -> Result<StoreId, Error> {
    let now = core.clock.now();
    let store = store(now, default_address(core).await?)?;
    let store_id = store.id;
    let time_slot = time_slot(store_id, now)?;
    PriceList::parse(PRICE_LIST, &Zones::default()).map_err(|_| broken("price list"))?;
    let price_list = StoredPriceList {
        store_id,
        version: 1,
        definition: PRICE_LIST.to_owned(),
        created_at: now,
    };
    let client = bootstrap::client(
        (SHOP, &[Scope::Deliveries, Scope::Tasks]),
        Some(store_id),
        credentials,
        now,
    );
    core.storage
        .write(move |transaction| {
            let (store, client) = (store.clone(), client.clone());
            let (time_slot, price_list) = (time_slot.clone(), price_list.clone());
            Box::pin(async move {
                storage::stores::insert(transaction, &store).await?;
                storage::time_slots::save(transaction, &time_slot).await?;
                storage::price_lists::insert(transaction, &price_list).await?;
                storage::api_clients::insert_if_absent(transaction, &client).await?;
                Ok::<_, Error>(())
            })
        })
        .await?;
    Ok(store_id)
}

fn store(now: Timestamp, default_address: Option<Address>) -> Result<Store, Error> {
    Ok(Store {
        id: StoreId::new(),
        display_name: SHOP.to_owned(),
        time_zone: store::parse_time_zone(TIME_ZONE).map_err(|_| broken("time zone"))?,
        currency: store::parse_currency(CURRENCY).map_err(|_| broken("currency"))?,
        country: COUNTRY.parse().map_err(|_| broken("country"))?,
        default_address,
        service_area: None,
        created_at: now,
    })
}

fn time_slot(store_id: StoreId, now: Timestamp) -> Result<StoredTimeSlot, Error> {
    let time_slot = TimeSlot::parse(TIME_SLOT, COUNTRY).map_err(|_| broken("time slot"))?;
    Ok(StoredTimeSlot {
        store_id,
        id: TimeSlotId::new(),
        display_name: time_slot.display_name().to_owned(),
        definition: TIME_SLOT.to_owned(),
        updated_at: now,
    })
}

fn broken(what: &str) -> Error {
    Error::Bug(format!("the demo's {what} cannot be read"))
}

/// None if the operator has addresses of elsewhere.
async fn default_address(core: &Core) -> Result<Option<Address>, Error> {
    let gazetteer = GazetteerGeocoder(Arc::clone(&core.gazetteer));
    let query = Query::new(ADDRESS.trim());
    let Answer::Found(found) = gazetteer.geocode(&query).await? else {
        return Ok(None);
    };
    Ok(Some(Address {
        id: AddressId::new(),
        street_address: found.formatted,
        lat_lng: found.lat_lng,
        place_name: Some(SHOP.to_owned()),
        contact_name: None,
        telephone: None,
        description: None,
        postal_code: found.postal_code,
        locality: found.locality,
        country: found.country,
    }))
}

async fn ensure_client(
    core: &Core,
    label: &str,
    role: (&str, &[Scope]),
) -> Result<Credentials, Error> {
    let credentials = credentials(core, label);
    let client = bootstrap::client(role, None, &credentials, core.clock.now());
    bootstrap::create(&core.storage, client).await?;
    Ok(credentials)
}

fn credentials(core: &Core, label: &str) -> Credentials {
    let key = core.vault.derive(&format!("{label} key"));
    let secret = core.vault.derive(&format!("{label} secret"));
    Credentials {
        api_key: BASE64_URL_SAFE_NO_PAD.encode(&key[..16]),
        api_secret: BASE64_URL_SAFE_NO_PAD.encode(secret),
    }
}
