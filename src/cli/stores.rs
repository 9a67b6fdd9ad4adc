//! `delivery stores`: creates, lists, shows and changes stores.

use std::{fs::File, io::Read as _};

use clap::{Args, Subcommand};
use proto::{
    Circle, CreateStoreRequest, DisableStoreRequest, EnableStoreRequest, GetStoreRequest,
    ListStoresRequest, ServiceArea, UpdateStoreRequest,
    iri::{self, Collection},
    service_area::Area,
};
use serde_json::{Value, json};

use crate::cli::{
    access::CoreCommand,
    id,
    location::{AddressFlags, located, parse_lat_lng},
    output::{self, View, instant},
};

/// In bytes; core accepts less.
const MAX_READ: u64 = 200_000;

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
    /// Disable a store: its API clients get no tokens, and their calls are refused
    ///
    /// Tokens that they have stop working within a minute, and no delivery is created on the store's behalf. What was
    /// ordered is completed: tasks, webhooks and tracking pages continue. `delivery webhooks disable` ends a webhook,
    /// `delivery clients disable` one of its clients for good.
    Disable {
        #[arg(value_parser = id::parser(Collection::Stores))]
        id: String,
    },
    /// Enable a disabled store: at once, also for tokens that have not expired
    Enable {
        #[arg(value_parser = id::parser(Collection::Stores))]
        id: String,
    },
}

#[derive(Args, Debug)]
#[group(
    required = true,
    multiple = true,
    args = [
        "name", "address", "lat_lng", "timezone", "currency", "country", "service_area", "unpriced",
        "tracking", "telephone", "colour", "logo"
    ]
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
    #[arg(long, value_name = "AREA", value_parser = parse_area, allow_hyphen_values = true)]
    service_area: Option<ServiceArea>,
    /// Whether a delivery for which the price list gives no price is created, with a warning
    #[arg(long, value_name = "CHOICE", value_parser = ["accept", "refuse"])]
    unpriced: Option<String>,
    /// Whether recipients can follow deliveries on tracking pages
    #[arg(long, value_name = "CHOICE", value_parser = ["on", "off"])]
    tracking: Option<String>,
    /// Telephone number of the store, which tracking pages show; "" removes it
    #[arg(long, value_name = "NUMBER")]
    telephone: Option<String>,
    /// Colour of the tracking pages, 1 to 12; 0 for the platform's own
    #[arg(long, value_name = "NUMBER")]
    colour: Option<u32>,
    /// Logo on the tracking pages: the file of a PNG or WebP image, at most 100 kB; "" removes it
    #[arg(long, value_name = "FILE", value_parser = read_logo)]
    logo: Option<Logo>,
}

/// The content of an image's file; empty for none.
#[derive(Clone, Debug)]
pub(crate) struct Logo(Vec<u8>);

/// Reads no more than it takes to reject a file that is too large.
fn read_logo(path: &str) -> Result<Logo, String> {
    let mut content = Vec::new();
    if !path.is_empty() {
        let file = File::open(path).map(|file| file.take(MAX_READ));
        let read = file.and_then(|mut file| file.read_to_end(&mut content));
        read.map_err(|error| error.to_string())?;
        if content.is_empty() {
            return Err("the file is empty".to_owned());
        }
    }
    Ok(Logo(content))
}

impl RegionFlags {
    fn has_tracking(&self) -> Option<bool> {
        self.tracking.as_ref().map(|choice| choice == "on")
    }
}

impl Command {
    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::List | Self::Show { .. } => "platform:read",
            _ => "admin",
        }
    }
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect(self.command.scope()).await?;
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
                    has_tracking: region.has_tracking(),
                    telephone: region.telephone,
                    colour: region.colour,
                    logo: region.logo.map(|Logo(content)| content),
                    refuses_unpriced: region.unpriced.map(|choice| choice == "refuse"),
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
                    has_tracking: changes.region.has_tracking(),
                    telephone: changes.region.telephone,
                    colour: changes.region.colour,
                    logo: changes.region.logo.map(|Logo(content)| content),
                    refuses_unpriced: changes.region.unpriced.map(|choice| choice == "refuse"),
                    time_zone: changes.region.timezone,
                    currency_code: changes.region.currency,
                    country_code: changes.region.country,
                    service_area: changes.region.service_area,
                    idempotency: None,
                };
                core.write(message).await?
            }
            Command::Disable { id: name } => {
                let idempotency = None;
                core.write(DisableStoreRequest { name, idempotency })
                    .await?
            }
            Command::Enable { id: name } => {
                let idempotency = None;
                core.write(EnableStoreRequest { name, idempotency }).await?
            }
        };
        output::one(json, view(store))
    }
}

fn view(store: proto::Store) -> View {
    let address = store.default_address;
    let location = address.as_ref().and_then(|address| address.lat_lng);
    let area = store.service_area.and_then(|area| area.area);
    let unpriced = if store.refuses_unpriced {
        "refuse"
    } else {
        "accept"
    };
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
        .json("service_area", area.as_ref().map(area_json))
        .text(
            "service area",
            area.as_ref().map(area_text).unwrap_or_default(),
        )
        .field("unpriced", unpriced)
        .field("tracking", if store.has_tracking { "on" } else { "off" })
        .field("telephone", output::non_empty(store.telephone))
        .field("colour", Some(store.colour).filter(|number| *number > 0))
        .field("logo", output::non_empty(store.logo_version))
        .field("created_at", instant(store.create_time, &store.time_zone))
        .field("disabled_at", instant(store.disable_time, &store.time_zone))
}

/// `center` is latitude and longitude; null: the store's address.
fn area_json(area: &Area) -> Value {
    match area {
        Area::Circle(Circle {
            center,
            radius_meters,
        }) => json!({
            "center": center.map(|center| [center.latitude, center.longitude]),
            "radius_meters": radius_meters,
        }),
        Area::Zone(zone) => json!({ "zone": zone }),
    }
}

fn area_text(area: &Area) -> String {
    match area {
        Area::Circle(circle) => {
            let radius = format!("within {} m", circle.radius_meters);
            match circle.center {
                Some(center) => format!("{radius} around {}", located(center)),
                None => radius,
            }
        }
        Area::Zone(zone) => format!("in {zone}"),
    }
}

/// Parses `5km`, `48.8554,2.3596,5km`, `zone:NAME` or `anywhere`.
fn parse_area(text: &str) -> Result<ServiceArea, String> {
    const EXPECTED: &str = "must be a distance (5km, 800m), a location and a distance \
                        (48.8554,2.3596,5km), a zone (zone:NAME), or anywhere";
    let area = match text.split_once(':') {
        _ if text == "anywhere" => return Ok(ServiceArea::default()),
        Some(("zone", name)) if !name.trim().is_empty() => Some(Area::Zone(name.trim().to_owned())),
        _ => parse_circle(text).map(Area::Circle),
    };
    area.map(|area| ServiceArea { area: Some(area) })
        .ok_or_else(|| EXPECTED.to_owned())
}

fn parse_circle(text: &str) -> Option<Circle> {
    let (center, distance) = match text.rsplit_once(',') {
        Some((center, distance)) => (Some(parse_lat_lng(center).ok()?), distance),
        None => (None, text),
    };
    let radius_meters = parse_meters(distance.trim()).filter(|meters| *meters > 0)?;
    Some(Circle {
        center,
        radius_meters,
    })
}

/// Parses `5km`, `2.5 km` or `800m` to whole metres.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and core rejects too large distances"
)]
fn parse_meters(text: &str) -> Option<u32> {
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
    fn an_area_is_a_circle_around_the_address_or_a_location_or_a_zone() {
        let format = |text: &str| {
            let area = parse_area(text).ok()?;
            Some(area.area.as_ref().map(super::area_text))
        };

        for (text, expected) in [
            ("5km", Some("within 5000 m")),
            ("800 m", Some("within 800 m")),
            (
                "-33.9, 151.2, 2.5km",
                Some("within 2500 m around -33.9,151.2"),
            ),
            ("zone:Centre", Some("in Centre")),
            ("zone: Île, 5km ", Some("in Île, 5km")),
            ("anywhere", None),
        ] {
            assert_eq!(format(text), Some(expected.map(str::to_owned)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "km",
            "5 miles",
            "0m",
            "-5km",
            "48.8,5km",
            "a,b,5km",
            "inf km",
            "zone",
            "zone:",
            "zone: ",
            "Zone:Centre",
        ] {
            assert_eq!(format(wrong), None, "{wrong}");
        }
    }
}
