//! `delivery stores`: the shops.

use clap::{Args, Subcommand};
use proto::{
    CreateStoreRequest, GetStoreRequest, ListStoresRequest, ServiceArea, UpdateStoreRequest, iri,
    stores_client::StoresClient,
};
use serde::Serialize;

use crate::operator::{
    access::Access,
    address::AddressFlags,
    id,
    refusal::refused,
    reply::{self, Resource},
    service_area::{self, Area},
};

#[derive(Args, Debug)]
pub(crate) struct Stores {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a store
    Create {
        /// The shop's name
        #[arg(long)]
        name: String,
        #[command(flatten)]
        address: AddressFlags,
        #[command(flatten)]
        place: PlaceFlags,
    },
    /// List all stores, oldest first
    List,
    /// Show a store
    Show {
        #[arg(value_parser = id::store)]
        id: String,
    },
    /// Change what is given of a store, leave the rest
    Set {
        #[arg(value_parser = id::store)]
        id: String,
        #[command(flatten)]
        changes: Changes,
    },
}

#[derive(Args, Debug)]
#[group(
    required = true,
    multiple = true,
    args = ["name", "address", "lat_lng", "timezone", "currency", "country", "service_area"]
)]
struct Changes {
    /// The shop's name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    address: AddressFlags,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Args, Debug)]
struct PlaceFlags {
    /// Zone in which the store reads and writes times, by its IANA name
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Currency of its prices, ISO 4217
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Its country, ISO 3166-1 alpha-2
    #[arg(long, value_name = "CODE")]
    country: Option<String>,
    /// Where it delivers: e.g. 5km (around its address), 48.8554,2.3596,5km (around a point),
    /// zone:NAME (a zone that was applied, wherever it is moved to), or anywhere
    #[arg(long, value_name = "AREA", value_parser = service_area::read, allow_hyphen_values = true)]
    service_area: Option<ServiceArea>,
}

impl Stores {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.open("admin").await?;
        let mut stores = StoresClient::new(core.channel.clone());
        let json = self.access.json;

        let store = match self.command {
            Command::Create {
                name,
                address,
                place,
            } => {
                let request = core.request(CreateStoreRequest {
                    display_name: name,
                    default_address: address.draft(),
                    time_zone: place.timezone,
                    currency_code: place.currency,
                    country_code: place.country,
                    service_area: place.service_area,
                });
                stores.create_store(request).await
            }
            Command::List => {
                let request = core.request(ListStoresRequest {});
                let listed = stores.list_stores(request).await;
                let listed = listed.map_err(|status| refused(&status))?.into_inner();
                let stores: Vec<_> = listed.stores.into_iter().map(Store::from).collect();
                return reply::many(json, &stores);
            }
            Command::Show { id } => {
                let request = core.request(GetStoreRequest { name: id });
                stores.get_store(request).await
            }
            Command::Set { id, changes } => {
                let request = core.request(UpdateStoreRequest {
                    name: id,
                    display_name: changes.name,
                    default_address: changes.address.draft(),
                    time_zone: changes.place.timezone,
                    currency_code: changes.place.currency,
                    country_code: changes.place.country,
                    service_area: changes.place.service_area,
                });
                stores.update_store(request).await
            }
        };
        let store = store.map_err(|status| refused(&status))?.into_inner();
        reply::one(json, &Store::from(store))
    }
}

#[derive(Serialize)]
struct Store {
    id: String,
    iri: String,
    name: String,
    address: Option<String>,
    /// Latitude, longitude.
    lat_lng: Option<[f64; 2]>,
    timezone: String,
    currency: String,
    country: String,
    /// Null is anywhere.
    service_area: Option<Area>,
    created_at: Option<String>,
}

impl From<proto::Store> for Store {
    fn from(store: proto::Store) -> Self {
        let address = store.default_address;
        Self {
            id: id::of(&store.name).to_owned(),
            iri: iri::of(&store.name),
            name: store.display_name,
            lat_lng: address
                .as_ref()
                .and_then(|address| address.lat_lng)
                .map(|point| [point.latitude, point.longitude]),
            address: address.map(|address| address.street_address),
            created_at: reply::instant(store.create_time.as_ref(), &store.time_zone),
            service_area: store.service_area.and_then(Area::of),
            timezone: store.time_zone,
            currency: store.currency_code,
            country: store.country_code,
        }
    }
}

impl Resource for Store {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let point = self
            .lat_lng
            .map(|[latitude, longitude]| format!("{latitude},{longitude}"))
            .unwrap_or_default();
        let delivers = self.service_area.as_ref().map(Area::to_string);
        vec![
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("address", self.address.clone().unwrap_or_default()),
            ("point", point),
            ("timezone", self.timezone.clone()),
            ("currency", self.currency.clone()),
            ("country", self.country.clone()),
            ("delivers", delivers.unwrap_or_default()),
            ("created", self.created_at.clone().unwrap_or_default()),
        ]
    }
}
