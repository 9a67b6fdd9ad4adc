//! Zones: named areas of the map, used by price rules and service areas.

mod area;
mod geo_json;

use std::{collections::BTreeMap, sync::Arc};

pub use area::{Area, Bounds, Polygon};

use crate::address::LatLng;

/// Zones by name. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones(Arc<BTreeMap<String, Area>>);

impl Zones {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Area)> {
        self.0.iter().map(|(name, area)| (name.as_str(), area))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a point lies in a zone; `None` if there is no zone with that name.
    pub fn contains(&self, name: &str, point: LatLng) -> Option<bool> {
        Some(self.0.get(name)?.contains(point))
    }

    pub fn area(&self, name: &str) -> Option<&Area> {
        self.0.get(name)
    }

    /// These zones and those of `others`, which replace zones of the same name.
    #[must_use]
    pub fn merged_with(&self, others: &Self) -> Self {
        let both = self.0.iter().chain(others.0.iter());
        both.map(|(name, area)| (name.clone(), area.clone()))
            .collect()
    }

    /// Only the zone with this name.
    #[must_use]
    pub fn only(&self, name: &str) -> Self {
        self.0
            .get_key_value(name)
            .map(|(name, area)| (name.clone(), area.clone()))
            .into_iter()
            .collect()
    }
}

impl FromIterator<(String, Area)> for Zones {
    fn from_iter<I: IntoIterator<Item = (String, Area)>>(areas: I) -> Self {
        Self(Arc::new(areas.into_iter().collect()))
    }
}
