//! Parsing and formatting shared by the protocols.

use serde::de::DeserializeOwned;

use crate::Precision;

/// A place in a response, not yet validated.
#[derive(Default)]
pub(super) struct Place {
    pub(super) formatted: String,
    pub(super) number: Option<String>,
    pub(super) street: Option<String>,
    pub(super) postal_code: Option<String>,
    pub(super) locality: Option<String>,
    /// Other towns, suburbs and districts that contain it.
    pub(super) areas: Vec<String>,
    /// Larger areas that contain it: counties, states, the country.
    pub(super) regions: Vec<String>,
    pub(super) country: Option<String>,
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    /// `None` for areas larger than a town and for places without an address.
    pub(super) precision: Option<Precision>,
    /// The service's score from 0 to 1; 1 if it has none.
    pub(super) confidence: f64,
}

impl Place {
    /// The house number; empty if unknown.
    pub(super) fn number(&self) -> &str {
        self.number.as_deref().unwrap_or_default()
    }
}

/// Query parameters of a request, in addition to those of the base URL.
pub(super) type Parameters = Vec<(&'static str, String)>;

/// The names that a response has.
pub(super) fn given<const N: usize>(names: [Option<String>; N]) -> Vec<String> {
    names.into_iter().flatten().collect()
}

/// Deserializes the valid members of a list and skips the others.
pub(super) fn valid_members<T: DeserializeOwned>(
    list: Vec<serde_json::Value>,
) -> impl Iterator<Item = T> {
    list.into_iter()
        .filter_map(|member| serde_json::from_value(member).ok())
}

/// The places of a `GeoJSON` response, by their properties and coordinates: longitude, latitude
/// (RFC 7946 §3.1.1).
pub(super) fn geo_json_places<P: DeserializeOwned>(
    body: &[u8],
    place: fn(P, [f64; 2]) -> Place,
) -> serde_json::Result<Vec<Place>> {
    let collection: FeatureCollection = serde_json::from_slice(body)?;
    Ok(valid_members::<Feature<P>>(collection.features)
        .map(|feature| place(feature.properties, feature.geometry.coordinates))
        .collect())
}

#[derive(serde::Deserialize)]
struct Feature<Properties> {
    properties: Properties,
    geometry: Geometry,
}

#[derive(serde::Deserialize)]
struct Geometry {
    coordinates: [f64; 2],
}

#[derive(serde::Deserialize)]
struct FeatureCollection {
    features: Vec<serde_json::Value>,
}
