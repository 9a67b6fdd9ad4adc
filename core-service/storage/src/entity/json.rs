//! Values stored as JSON, because they are read and written as a whole.

use std::collections::BTreeMap;

use domain::{
    address::{Address, LatLng},
    id::AddressId,
    service_area::{Circle, ServiceArea},
    task::Package,
};
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct AddressJson {
    id: Uuid,
    street_address: String,
    latitude: f64,
    longitude: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contact_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    telephone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    postal_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    locality: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    country: Option<String>,
}

impl AddressJson {
    pub(crate) fn has_telephone(&self, telephone: &str) -> bool {
        self.telephone.as_deref() == Some(telephone)
    }
}

impl From<Address> for AddressJson {
    fn from(address: Address) -> Self {
        Self {
            id: address.id.0,
            street_address: address.street_address,
            latitude: address.lat_lng.latitude(),
            longitude: address.lat_lng.longitude(),
            place_name: address.place_name,
            contact_name: address.contact_name,
            telephone: address.telephone,
            description: address.description,
            postal_code: address.postal_code,
            locality: address.locality,
            country: address.country,
        }
    }
}

impl TryFrom<AddressJson> for Address {
    type Error = Error;

    fn try_from(address: AddressJson) -> Result<Self, Self::Error> {
        Ok(Self {
            id: AddressId(address.id),
            street_address: address.street_address,
            lat_lng: LatLng::new(address.latitude, address.longitude)
                .map_err(|error| Error::inconsistent("tasks or stores", error))?,
            place_name: address.place_name,
            contact_name: address.contact_name,
            telephone: address.telephone,
            description: address.description,
            postal_code: address.postal_code,
            locality: address.locality,
            country: address.country,
        })
    }
}

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
pub struct PlaceJson {
    pub formatted: String,
    pub postal_code: Option<String>,
    pub locality: Option<String>,
    pub country: Option<String>,
    pub latitude: f64,
    pub longitude: f64,
    /// `house`, `interpolated`, `street` or `locality`.
    pub precision: String,
    pub confidence: f64,
}
