//! `delivery stores`: the shops.

use clap::{Args, Subcommand};
use proto::{
    CreateStoreRequest, GetStoreRequest, LatLng, ListStoresRequest, ServiceArea,
    UpdateStoreRequest, iri, stores_client::StoresClient,
};
use serde::Serialize;

use crate::operator::{
    access::Access,
    address::AddressFlags,
    id,
    refusal::refused,
    reply::{self, Resource},
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
    /// How far it delivers, e.g. 5km around its address, 48.8554,2.3596,5km around a point, or
    /// anywhere
    #[arg(long, value_name = "AREA", value_parser = service_area, allow_hyphen_values = true)]
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
    /// Metres around a point, or around the address; null is anywhere.
    service_area: Option<Area>,
    created_at: Option<String>,
}

#[derive(Serialize)]
struct Area {
    /// Latitude, longitude.
    center: Option<[f64; 2]>,
    radius_meters: u32,
}

impl From<ServiceArea> for Area {
    fn from(area: ServiceArea) -> Self {
        let center = area
            .center
            .map(|center| [center.latitude, center.longitude]);
        Self {
            center,
            radius_meters: area.radius_meters,
        }
    }
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
            service_area: store.service_area.map(Area::from),
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
        let delivers = self.service_area.as_ref().map_or_else(String::new, |area| {
            let center = area
                .center
                .map_or_else(String::new, |[latitude, longitude]| {
                    format!(" around {latitude},{longitude}")
                });
            format!("within {} m{center}", area.radius_meters)
        });
        vec![
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("address", self.address.clone().unwrap_or_default()),
            ("point", point),
            ("timezone", self.timezone.clone()),
            ("currency", self.currency.clone()),
            ("country", self.country.clone()),
            ("delivers", delivers),
            ("created", self.created_at.clone().unwrap_or_default()),
        ]
    }
}

fn service_area(text: &str) -> Result<ServiceArea, String> {
    const FORM: &str = "give a distance (5km, 800m), a point and a distance \
                        (48.8554,2.3596,5km), or anywhere";
    let read = || {
        let (center, distance) = match text.rsplit_once(',') {
            Some((center, distance)) => {
                let (latitude, longitude) = center.split_once(',')?;
                let center = LatLng {
                    latitude: latitude.trim().parse().ok()?,
                    longitude: longitude.trim().parse().ok()?,
                };
                (Some(center), distance)
            }
            None => (None, text),
        };
        Some(ServiceArea {
            center,
            radius_meters: meters(distance.trim())?,
        })
    };
    if text == "anywhere" {
        return Ok(ServiceArea::default());
    }
    read()
        .filter(|area| area.radius_meters > 0)
        .ok_or_else(|| FORM.to_owned())
}

/// `5km`, `2.5 km` or `800m`, in whole metres.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and core refuses what is too far"
)]
fn meters(text: &str) -> Option<u32> {
    let (number, unit) = match text.strip_suffix("km") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('m')?, 1.0),
    };
    let meters: f64 = number.trim().parse::<f64>().ok()? * unit;
    meters.is_finite().then(|| meters.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_a_distance_around_the_address_or_a_point() {
        let read = |text: &str| {
            let area = service_area(text).ok()?;
            let center = area
                .center
                .map(|center| (center.latitude, center.longitude));
            Some((center, area.radius_meters))
        };

        assert_eq!(read("5km"), Some((None, 5000)));
        assert_eq!(read("800 m"), Some((None, 800)));
        assert_eq!(
            read("-33.9, 151.2, 2.5km"),
            Some((Some((-33.9, 151.2)), 2500))
        );
        assert_eq!(read("anywhere"), Some((None, 0)));
        for wrong in [
            "", "5", "km", "5 miles", "0m", "-5km", "48.8,5km", "a,b,5km", "inf km",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
