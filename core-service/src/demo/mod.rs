//! What the all-in-one creates once: the platform's own API clients, and the demo, a store with a
//! time slot, a price list and an API client. Never overwrites changes of an operator.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    address::Address,
    api_client::Scope,
    brand::Brand,
    id::{AddressId, StoreId, TimeSlotId},
    price_list::PriceList,
    store::{self, Store},
    time_slot::TimeSlot,
    zone::Zones,
};
use futures_util::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use geocoding::{Gazetteer, GeocodeResult, Geocoder as _, Query};
use jiff::Timestamp;
use process::random;
use proto::iri::Collection;
use storage::{
    Storage, platform_secrets::StoredSecret, price_lists::StoredPriceList,
    time_slots::StoredTimeSlot,
};
use zeroize::Zeroizing;

use crate::{
    bootstrap::{self, Credentials},
    error::Error,
    secrets::secret_box::{Purpose, SecretBox, derive},
    service::CoreService,
    startup::{Resources, StartError},
};

#[derive(Clone, Debug)]
pub struct Demo {
    /// `stores/<id>`.
    pub store: String,
    /// Scopes `deliveries tasks`. `None` once its secret was replaced or it was disabled.
    pub client: Option<Credentials>,
}

/// The API clients of the all-in-one itself.
#[derive(Clone, Debug)]
pub struct OwnClients {
    /// Scopes `tasks:all admin`. `None` once its secret was replaced or it was disabled.
    pub operator: Option<Credentials>,
    /// Scope `notifications`.
    pub dispatcher: Credentials,
}

const STORE_NAME: &str = "Demo shop";
const TIME_ZONE: &str = "Europe/Paris";
const CURRENCY: &str = "EUR";
const COUNTRY: &str = "FR";
const ADDRESS: &str = include_str!("address.txt");
const TIME_SLOT: &str = include_str!("time_slot.toml");
const PRICE_LIST: &str = include_str!("price_list.toml");

impl CoreService {
    /// Creates the clients of the all-in-one itself and, with the demo, its store and client, unless
    /// they exist. Their keys and secrets are the same at every start.
    pub fn ensure_clients(
        &self,
        with_demo: bool,
    ) -> BoxFuture<'_, Result<(OwnClients, Option<Demo>), StartError>> {
        create_clients(self.resources(), with_demo)
            .map_err(StartError::Bootstrap)
            .boxed()
    }
}

async fn create_clients(
    resources: &Resources,
    with_demo: bool,
) -> Result<(OwnClients, Option<Demo>), Error> {
    let seed = Seed::read_or_create(&resources.storage, &resources.secret_box).await?;
    let demo = if with_demo {
        Some(create_demo(resources, &seed).await?)
    } else {
        None
    };
    Ok((create_own_clients(resources, &seed).await?, demo))
}

async fn create_demo(resources: &Resources, seed: &Seed) -> Result<Demo, Error> {
    let (storage, now) = (&resources.storage, resources.clock.now());
    let credentials = seed.credentials("demo client");
    let existing = storage::api_clients::find_by_key(storage, &credentials.api_key).await?;
    let store_id = if let Some(store_id) = existing.and_then(|client| client.store_id) {
        store_id
    } else {
        let store = store(now, default_address(&resources.gazetteer).await?)?;
        create_store(storage, store, &credentials).await?
    };
    Ok(Demo {
        store: Collection::Stores.name(store_id),
        client: if_valid(storage, credentials, now).await?,
    })
}

async fn create_own_clients(resources: &Resources, seed: &Seed) -> Result<OwnClients, Error> {
    let (storage, now) = (&resources.storage, resources.clock.now());
    // `demo` in the labels, although there need not be one: another label would yield other credentials.
    let operator = seed.credentials("demo operator");
    let dispatcher = seed.credentials("demo dispatcher");
    for client in [
        bootstrap::operator(&operator, now),
        bootstrap::dispatcher(&dispatcher, now),
    ] {
        let created = storage.write(move |transaction| async move {
            storage::api_clients::insert_if_absent(&transaction, &client).await
        });
        created.await?;
    }
    Ok(OwnClients {
        operator: if_valid(storage, operator, now).await?,
        dispatcher,
    })
}

/// The credentials, unless an operator has replaced the secret or disabled the client.
async fn if_valid(
    storage: &Storage,
    credentials: Credentials,
    now: Timestamp,
) -> Result<Option<Credentials>, Error> {
    let client = storage::api_clients::find_by_key(storage, &credentials.api_key).await?;
    let accepted = client.and_then(|client| client.accept(&credentials.api_secret, now));
    Ok(accepted.map(|_| credentials))
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
        STORE_NAME,
        &[Scope::Deliveries, Scope::Tasks],
        Some(store_id),
        credentials,
        now,
    );
    storage
        .write(move |transaction| async move {
            storage::stores::insert(&transaction, &store).await?;
            storage::time_slots::save(&transaction, &time_slot).await?;
            storage::price_lists::insert(&transaction, &price_list).await?;
            storage::api_clients::insert_if_absent(&transaction, &client).await?;
            Ok::<_, Error>(())
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
        refuses_unpriced: false,
        has_tracking: true,
        telephone: None,
        brand: Brand::default(),
        created_at: now,
        disabled_at: None,
    })
}

fn time_slot(store_id: StoreId, now: Timestamp) -> Result<StoredTimeSlot, Error> {
    let time_slot = TimeSlot::parse(TIME_SLOT, COUNTRY).map_err(|_| invalid("time slot"))?;
    Ok(StoredTimeSlot {
        store_id,
        id: TimeSlotId::new(),
        display_name: time_slot.display_name.clone(),
        definition: TIME_SLOT.to_owned(),
        updated_at: now,
    })
}

fn invalid(what: &str) -> Error {
    Error::Bug(format!("the demo's {what} is invalid"))
}

/// None if the gazetteer does not contain the address.
async fn default_address(gazetteer: &Arc<Gazetteer>) -> Result<Option<Address>, Error> {
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

/// The name of the seed in the database.
const SEED_NAME: &str = "own clients";

/// The secret from which the credentials of the clients are derived: the same at every start and under
/// every master key.
struct Seed(Zeroizing<Vec<u8>>);

impl Seed {
    /// Reads the secret; creates it at the first start.
    async fn read_or_create(storage: &Storage, secret_box: &SecretBox) -> Result<Self, Error> {
        if let Some(seed) = Self::read(storage, secret_box).await? {
            return Ok(seed);
        }
        let new = Zeroizing::new(random::bytes::<32>());
        let encrypted = secret_box.encrypt(Purpose::PlatformSecret, SEED_NAME.as_bytes(), &*new);
        let secret = StoredSecret {
            name: SEED_NAME.to_owned(),
            encrypted,
        };
        storage
            .write(move |transaction| async move {
                // Another all-in-one may have created it.
                storage::platform_secrets::insert_if_absent(&transaction, secret).await
            })
            .await?;
        Self::read(storage, secret_box)
            .await?
            .ok_or_else(|| Error::Bug("no secret after creating one".to_owned()))
    }

    async fn read(storage: &Storage, secret_box: &SecretBox) -> Result<Option<Self>, Error> {
        let encrypted = storage::platform_secrets::find(storage.reader(), SEED_NAME).await?;
        let decrypt = |secret: Vec<u8>| {
            secret_box.decrypt(Purpose::PlatformSecret, SEED_NAME.as_bytes(), &secret)
        };
        Ok(encrypted.map(decrypt).transpose()?.map(Self))
    }

    fn credentials(&self, label: &str) -> Credentials {
        let key = derive(&self.0, &format!("{label} key"));
        let secret = derive(&self.0, &format!("{label} secret"));
        Credentials {
            api_key: BASE64_URL_SAFE_NO_PAD.encode(&key[..16]),
            api_secret: BASE64_URL_SAFE_NO_PAD.encode(*secret),
        }
    }
}
