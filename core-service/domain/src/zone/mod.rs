//! Zones: named areas of the map that price rules and service areas speak of.

mod area;
mod coordinates;
mod geo_json;

use std::{collections::BTreeMap, sync::Arc};

pub use area::{Area, Bounds, Polygon};

use crate::{address::LatLng, definition::Mistake};

/// Zones by name. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones(Arc<BTreeMap<String, Area>>);

impl Zones {
    /// Reads GeoJSON (RFC 7946): features that are polygons or multi-polygons and have a name
    /// each (`properties.name`). The first mistake is told with its place.
    pub fn parse(geo_json: &str) -> Result<Self, Mistake> {
        geo_json::parse(geo_json)
    }

    /// Writes GeoJSON that [`Zones::parse`] reads, a feature a line.
    pub fn to_geo_json(&self) -> String {
        geo_json::write(self)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Area)> {
        self.0.iter().map(|(name, area)| (name.as_str(), area))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a point lies in a zone; `None` if there is no zone of that name.
    pub fn contains(&self, name: &str, point: LatLng) -> Option<bool> {
        Some(self.0.get(name)?.contains(point))
    }

    pub fn area(&self, name: &str) -> Option<&Area> {
        self.0.get(name)
    }

    /// These and others; where both have a name, the other's area.
    #[must_use]
    pub fn updated_by(&self, others: &Self) -> Self {
        let both = self.0.iter().chain(others.0.iter());
        both.map(|(name, area)| (name.clone(), area.clone()))
            .collect()
    }

    /// One of them.
    #[must_use]
    pub fn only(&self, name: &str) -> Self {
        self.0
            .get_key_value(name)
            .map(|(name, area)| (name.clone(), area.clone()))
            .into_iter()
            .collect()
    }

    /// Fails if they are more than one document may have.
    pub fn check_size(&self) -> Result<(), Mistake> {
        geo_json::check_size(self)
    }
}

impl FromIterator<(String, Area)> for Zones {
    fn from_iter<I: IntoIterator<Item = (String, Area)>>(areas: I) -> Self {
        Self(Arc::new(areas.into_iter().collect()))
    }
}
