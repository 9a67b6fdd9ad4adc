//! `delivery stores`: creates, lists, shows and changes stores.

mod service_area;

use clap::{Args, Subcommand};
use proto::{
    CreateStoreRequest, GetStoreRequest, ListStoresRequest, ServiceArea, UpdateStoreRequest, iri,
    stores_client::StoresClient,
};
use serde::Serialize;

use self::service_area::Area;
use crate::cli::{
    access::Access,
    address::AddressFlags,
    errors::{call_error, reply},
    id,
    output::{self, Resource},
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
    /// Create a store
    Create {
        /// Name of the store
        #[arg(long)]
        name: String,
        #[command(flatten)]
        address: AddressFlags,
        #[command(flatten)]
        region: RegionFlags,
    },
    /// List all stores, oldest first
    List,
    /// Show a store
    Show {
        #[arg(value_parser = id::store)]
        id: String,
    },
    /// Change the given settings of a store
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
    /// Name of the store
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    address: AddressFlags,
    #[command(flatten)]
    region: RegionFlags,
}

#[derive(Args, Debug)]
struct RegionFlags {
    /// Time zone of the store, IANA name
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Currency of the store's prices, ISO 4217
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Country of the store, ISO 3166-1 alpha-2
    #[arg(long, value_name = "CODE")]
    country: Option<String>,
    /// Service area: 5km (around the address), 48.8554,2.3596,5km (around a location),
    /// zone:NAME (see delivery zones apply), or anywhere
    #[arg(long, value_name = "AREA", value_parser = service_area::parse, allow_hyphen_values = true)]
    service_area: Option<ServiceArea>,
}

impl Stores {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let stores = || StoresClient::new(core.channel.clone());
        let json = self.access.json;

        let store = match self.command {
            Command::Create {
                name,
                address,
                region,
            } => {
                let message = CreateStoreRequest {
                    display_name: name,
                    default_address: address.draft(),
                    time_zone: region.timezone,
                    currency_code: region.currency,
                    country_code: region.country,
                    service_area: region.service_area,
                    idempotency: None,
                };
                core.write(message, call_error, async |request| {
                    stores().create_store(request).await
                })
                .await?
            }
            Command::List => {
                let request = core.request(ListStoresRequest {});
                let listed = reply(stores().list_stores(request).await)?;
                let stores: Vec<_> = listed.stores.into_iter().map(Store::from).collect();
                return output::many(json, &stores);
            }
            Command::Show { id } => {
                let request = core.request(GetStoreRequest { name: id });
                reply(stores().get_store(request).await)?
            }
            Command::Set { id, changes } => {
                let message = UpdateStoreRequest {
                    name: id,
                    display_name: changes.name,
                    default_address: changes.address.draft(),
                    time_zone: changes.region.timezone,
                    currency_code: changes.region.currency,
                    country_code: changes.region.country,
                    service_area: changes.region.service_area,
                    idempotency: None,
                };
                core.write(message, call_error, async |request| {
                    stores().update_store(request).await
                })
                .await?
            }
        };
        output::one(json, &Store::from(store))
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
    /// Null: anywhere.
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
            created_at: output::instant(store.create_time.as_ref(), &store.time_zone),
            service_area: store.service_area.and_then(Area::new),
            timezone: store.time_zone,
            currency: store.currency_code,
            country: store.country_code,
        }
    }
}

impl Resource for Store {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let location = self
            .lat_lng
            .map(|[latitude, longitude]| format!("{latitude},{longitude}"))
            .unwrap_or_default();
        let service_area = self.service_area.as_ref().map(Area::to_string);
        vec![
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("address", self.address.clone().unwrap_or_default()),
            ("location", location),
            ("timezone", self.timezone.clone()),
            ("currency", self.currency.clone()),
            ("country", self.country.clone()),
            ("service area", service_area.unwrap_or_default()),
            ("created", self.created_at.clone().unwrap_or_default()),
        ]
    }
}
