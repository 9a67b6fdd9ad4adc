//! Values stored as JSON, because they are read and written as a whole.

use std::collections::BTreeMap;

use domain::{
    address::{Address, LatLng},
    coverage::{Circle, ServiceArea},
    task::Package,
};
use geocoding::GeocodeMatch;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct AddressJson(pub Address);

/// Package types and quantities, in the order given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct PackagesJson(Vec<(String, u32)>);

impl From<Vec<Package>> for PackagesJson {
    fn from(packages: Vec<Package>) -> Self {
        Self(
            packages
                .into_iter()
                .map(|package| (package.kind, package.quantity))
                .collect(),
        )
    }
}

impl From<PackagesJson> for Vec<Package> {
    fn from(packages: PackagesJson) -> Self {
        packages
            .0
            .into_iter()
            .map(|(kind, quantity)| Package { kind, quantity })
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct TagsJson(pub Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct MetadataJson(pub BTreeMap<String, String>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(untagged)]
pub enum ServiceAreaJson {
    Zone {
        zone: String,
    },
    Circle {
        /// Latitude, longitude.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<[f64; 2]>,
        radius_meters: u32,
    },
}

impl From<ServiceArea> for ServiceAreaJson {
    fn from(area: ServiceArea) -> Self {
        match area {
            ServiceArea::Zone(zone) => Self::Zone { zone },
            ServiceArea::Circle(circle) => Self::Circle {
                center: circle
                    .center()
                    .map(|center| [center.latitude(), center.longitude()]),
                radius_meters: circle.radius_meters(),
            },
        }
    }
}

impl TryFrom<ServiceAreaJson> for ServiceArea {
    type Error = Error;

    fn try_from(area: ServiceAreaJson) -> Result<Self, Self::Error> {
        let (center, radius_meters) = match area {
            ServiceAreaJson::Zone { zone } => return Ok(Self::Zone(zone)),
            ServiceAreaJson::Circle {
                center,
                radius_meters,
            } => (center, radius_meters),
        };
        let center = center
            .map(|[latitude, longitude]| LatLng::new(latitude, longitude))
            .transpose()
            .map_err(|error| Error::inconsistent("stores", error))?;
        Circle::new(center, radius_meters)
            .map(Self::Circle)
            .map_err(|error| Error::inconsistent("stores", error))
    }
}

/// A place that is precise enough to deliver to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct PlaceJson(pub GeocodeMatch);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_stored_address_or_place_is_read_and_written_unchanged() {
        let id = "01900000-0000-7000-8000-000000000001";
        let short =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 48.5, "longitude": 2.0 });
        let mut full = short.clone();
        for name in [
            "place_name",
            "contact_name",
            "telephone",
            "description",
            "postal_code",
            "locality",
            "country",
        ] {
            full[name] = Value::from(name);
        }
        for stored in [short, full] {
            let address: AddressJson = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(address).unwrap(), stored);
        }
        let place = json!({
            "formatted": "Town", "postal_code": null, "locality": "Town", "country": "FR",
            "latitude": 48.5, "longitude": 2.0, "precision": "locality", "confidence": 1.0,
        });
        let read: PlaceJson = serde_json::from_value(place.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), place);

        let nowhere =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 91.0, "longitude": 2.0 });
        let error = serde_json::from_value::<AddressJson>(nowhere).unwrap_err();
        assert!(error.to_string().contains("latitude 91"), "{error}");
    }
}
