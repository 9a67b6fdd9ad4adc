//! The demo: a shop, its slots and prices, and clients to try everything with. It is made once;
//! what an operator changes of it stays changed.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use proto::iri::Collection;
use uuid::Uuid;

use crate::{
    bootstrap::{self, Credentials, DISPATCHER, OPERATOR, Seed},
    domain::{
        address::Address,
        api_client::Scope,
        id::{AddressId, StoreId, TimeSlotId},
        price_list::{PriceList, Zones},
        store::{self, Country, Store},
        time_slot::TimeSlot,
    },
    error::Error,
    geocoding::{Answer, Query},
    grpc::Core,
    service::{CoreService, StartError},
    storage::{self, price_lists::StoredPriceList, time_slots::StoredTimeSlot},
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
    /// Creates what is missing of the demo. Its ids and secrets derive from the master key, so
    /// that every start finds the same.
    pub async fn ensure_demo(&self) -> Result<Demo, StartError> {
        ensure(self.core()).await.map_err(StartError::Bootstrap)
    }
}

async fn ensure(core: &Core) -> Result<Demo, Error> {
    let store_id = StoreId(derived_id(core, "demo store"));
    if storage::stores::find(core.storage.reader(), store_id)
        .await?
        .is_none()
    {
        create_store(core, store_id).await?;
    }

    let shop = Seed {
        store_id: Some(store_id),
        ..Seed::new(SHOP, &[Scope::Deliveries, Scope::Tasks])
    };
    Ok(Demo {
        store: Collection::Stores.name(store_id),
        demo_client: ensure_client(core, "demo client", shop).await?,
        operator_client: {
            let (name, scopes) = OPERATOR;
            ensure_client(core, "demo operator", Seed::new(name, scopes)).await?
        },
        dispatcher_client: {
            let (name, scopes) = DISPATCHER;
            ensure_client(core, "demo dispatcher", Seed::new(name, scopes)).await?
        },
    })
}

/// The store with its slots and prices, in one transaction.
async fn create_store(core: &Core, store_id: StoreId) -> Result<(), Error> {
    let now = core.clock.now();
    let broken = |what: &str| Error::Bug(format!("the demo's {what} cannot be read"));
    let country: Country = COUNTRY.parse().map_err(|_| broken("country"))?;
    let store = Store {
        id: store_id,
        display_name: SHOP.to_owned(),
        time_zone: store::parse_time_zone(TIME_ZONE).map_err(|_| broken("time zone"))?,
        currency: store::parse_currency(CURRENCY).map_err(|_| broken("currency"))?,
        default_address: Some(default_address(core).await?),
        created_at: now,
        country,
    };
    let time_slot = TimeSlot::parse(TIME_SLOT, COUNTRY).map_err(|_| broken("time slot"))?;
    PriceList::parse(PRICE_LIST, &Zones::default()).map_err(|_| broken("price list"))?;
    let time_slot = StoredTimeSlot {
        store_id,
        id: TimeSlotId::new(),
        display_name: time_slot.display_name().to_owned(),
        definition: TIME_SLOT.to_owned(),
        updated_at: now,
    };
    let price_list = StoredPriceList {
        store_id,
        version: 1,
        definition: PRICE_LIST.to_owned(),
        created_at: now,
    };
    core.storage
        .write(move |transaction| {
            let (store, time_slot, price_list) =
                (store.clone(), time_slot.clone(), price_list.clone());
            Box::pin(async move {
                storage::stores::insert(transaction, &store).await?;
                storage::time_slots::save(transaction, &time_slot).await?;
                storage::price_lists::insert(transaction, &price_list).await?;
                Ok(())
            })
        })
        .await
}

async fn default_address(core: &Core) -> Result<Address, Error> {
    let query = Query::new(ADDRESS.trim());
    let Answer::Found(found) = core.geocoder.geocode(&query).await? else {
        return Err(Error::Bug(
            "the gazetteer does not know the demo's address".to_owned(),
        ));
    };
    Ok(Address {
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
    })
}

async fn ensure_client(core: &Core, label: &str, seed: Seed) -> Result<Credentials, Error> {
    let key = core.vault.derive(&format!("{label} key"));
    let secret = core.vault.derive(&format!("{label} secret"));
    let credentials = Credentials {
        api_key: BASE64_URL_SAFE_NO_PAD.encode(&key[..16]),
        api_secret: BASE64_URL_SAFE_NO_PAD.encode(secret),
    };
    bootstrap::create(&core.storage, seed, &credentials, core.clock.now()).await?;
    Ok(credentials)
}

fn derived_id(core: &Core, label: &str) -> Uuid {
    let bytes = core.vault.derive(label);
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[..16]);
    // A UUID of the form for values made by a rule of one's own (RFC 9562 §5.8).
    uuid::Builder::from_custom_bytes(id).into_uuid()
}
