//! The demo: a store with a time slot and a price list, and API clients. It is created once and
//! never overwrites changes of an operator.

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
use geocoding::{Gazetteer, GeocodeResult, Geocoder, Query, gazetteer::GazetteerGeocoder};
use jiff::Timestamp;
use proto::iri::Collection;
use storage::{Storage, price_lists::StoredPriceList, time_slots::StoredTimeSlot};

use crate::{
    bootstrap::{self, Credentials, DISPATCHER, OPERATOR},
    error::Error,
    secret_box::SecretBox,
    service::CoreService,
    start_error::StartError,
    startup::Resources,
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

const STORE_NAME: &str = "Demo shop";
const TIME_ZONE: &str = "Europe/Paris";
const CURRENCY: &str = "EUR";
const COUNTRY: &str = "FR";
const ADDRESS: &str = include_str!("address.txt");
const TIME_SLOT: &str = include_str!("time_slot.toml");
const PRICE_LIST: &str = include_str!("price_list.toml");

impl CoreService {
    /// Creates the missing parts of the demo. Its API keys and secrets are derived from the master
    /// key and so are the same at every start.
    pub async fn ensure_demo(&self) -> Result<Demo, StartError> {
        let Resources {
            storage,
            clock,
            secret_box,
            gazetteer,
            ..
        } = self.resources();
        ensure(storage, secret_box, gazetteer, clock.now())
            .await
            .map_err(StartError::Bootstrap)
    }
}

async fn ensure(
    storage: &Storage,
    secret_box: &SecretBox,
    gazetteer: &Arc<Gazetteer>,
    now: Timestamp,
) -> Result<Demo, Error> {
    let demo_client = credentials(secret_box, "demo client");
    let existing =
        storage::api_clients::find_by_key(storage.reader(), &demo_client.api_key).await?;
    let store_id = if let Some(store_id) = existing.and_then(|client| client.store_id) {
        store_id
    } else {
        let store = store(now, default_address(gazetteer).await?)?;
        create_store(storage, store, &demo_client).await?
    };
    let operator_client = credentials(secret_box, "demo operator");
    let dispatcher_client = credentials(secret_box, "demo dispatcher");
    for (role, credentials) in [
        (OPERATOR, &operator_client),
        (DISPATCHER, &dispatcher_client),
    ] {
        let client = bootstrap::new_client(role, None, credentials, now);
        bootstrap::create(storage, client).await?;
    }

    Ok(Demo {
        store: Collection::Stores.name(store_id),
        demo_client,
        operator_client,
        dispatcher_client,
    })
}

/// Creates the store with its time slot, price list and API client in one transaction. Later
/// starts find the store by the client.
async fn create_store(
    storage: &Storage,
    store: Store,
    credentials: &Credentials,
) -> Result<StoreId, Error> {
    let (store_id, now) = (store.id, store.created_at);
    let time_slot = time_slot(store_id, now)?;
    PriceList::parse(PRICE_LIST, &Zones::default()).map_err(|_| invalid("price list"))?;
    let price_list = StoredPriceList {
        store_id,
        version: 1,
        definition: PRICE_LIST.to_owned(),
        created_at: now,
    };
    let client = bootstrap::new_client(
        (STORE_NAME, &[Scope::Deliveries, Scope::Tasks]),
        Some(store_id),
        credentials,
        now,
    );
    storage
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
        display_name: STORE_NAME.to_owned(),
        time_zone: store::parse_time_zone(TIME_ZONE).map_err(|_| invalid("time zone"))?,
        currency: store::parse_currency(CURRENCY).map_err(|_| invalid("currency"))?,
        country: COUNTRY.parse().map_err(|_| invalid("country"))?,
        default_address,
        service_area: None,
        created_at: now,
    })
}

fn time_slot(store_id: StoreId, now: Timestamp) -> Result<StoredTimeSlot, Error> {
    let time_slot = TimeSlot::parse(TIME_SLOT, COUNTRY).map_err(|_| invalid("time slot"))?;
    Ok(StoredTimeSlot {
        store_id,
        id: TimeSlotId::new(),
        display_name: time_slot.display_name().to_owned(),
        definition: TIME_SLOT.to_owned(),
        updated_at: now,
    })
}

fn invalid(what: &str) -> Error {
    Error::Bug(format!("the demo's {what} is invalid"))
}

/// None if the gazetteer does not contain the address.
async fn default_address(gazetteer: &Arc<Gazetteer>) -> Result<Option<Address>, Error> {
    let gazetteer = GazetteerGeocoder(Arc::clone(gazetteer));
    let query = Query::new(ADDRESS.trim());
    let GeocodeResult::Found(found) = gazetteer.geocode(&query).await? else {
        return Ok(None);
    };
    Ok(Some(Address {
        id: AddressId::new(),
        street_address: found.formatted,
        lat_lng: found.lat_lng,
        place_name: Some(STORE_NAME.to_owned()),
        contact_name: None,
        telephone: None,
        description: None,
        postal_code: found.postal_code,
        locality: found.locality,
        country: found.country,
    }))
}

fn credentials(secret_box: &SecretBox, label: &str) -> Credentials {
    let key = secret_box.derive(&format!("{label} key"));
    let secret = secret_box.derive(&format!("{label} secret"));
    Credentials {
        api_key: BASE64_URL_SAFE_NO_PAD.encode(&key[..16]),
        api_secret: BASE64_URL_SAFE_NO_PAD.encode(secret),
    }
}
