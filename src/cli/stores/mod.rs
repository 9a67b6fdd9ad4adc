//! `delivery stores`: creates, lists, shows and changes stores.

mod service_area;

use clap::{Args, Subcommand};
use proto::{
    CreateStoreRequest, GetStoreRequest, ListStoresRequest, ServiceArea, UpdateStoreRequest,
    iri::{self, Collection},
};

use crate::cli::{
    access::CoreCommand,
    address::{AddressFlags, located},
    id,
    output::{self, View, instant},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
        #[arg(value_parser = id::parser(Collection::Stores))]
        id: String,
    },
    /// Change the given settings of a store
    Set {
        #[arg(value_parser = id::parser(Collection::Stores))]
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
pub(crate) struct Changes {
    /// Name of the store
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    address: AddressFlags,
    #[command(flatten)]
    region: RegionFlags,
}

#[derive(Args, Debug)]
pub(crate) struct RegionFlags {
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

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
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
                core.write(message).await?
            }
            Command::List => {
                let listed = core.call(ListStoresRequest {}).await?;
                return output::many(json, listed.stores.into_iter().map(view));
            }
            Command::Show { id: name } => core.call(GetStoreRequest { name }).await?,
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
                core.write(message).await?
            }
        };
        output::one(json, view(store))
    }
}

fn view(store: proto::Store) -> View {
    let address = store.default_address;
    let location = address.as_ref().and_then(|address| address.lat_lng);
    let area = store.service_area.and_then(|area| area.area);
    let area_json = area.as_ref().map(service_area::json);
    let area_text = area.as_ref().map(service_area::text);
    View::default()
        .field("id", id::of(&store.name))
        .json("iri", iri::of(&store.name))
        .field("name", store.display_name)
        .field("address", address.map(|address| address.street_address))
        .json("lat_lng", location.map(|at| [at.latitude, at.longitude]))
        .text("location", location.map(located).unwrap_or_default())
        .field("timezone", &*store.time_zone)
        .field("currency", store.currency_code)
        .field("country", store.country_code)
        // Null: anywhere.
        .json("service_area", area_json)
        .text("service area", area_text.unwrap_or_default())
        .field("created_at", instant(store.create_time, &store.time_zone))
}
