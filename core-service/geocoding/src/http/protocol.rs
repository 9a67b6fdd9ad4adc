//! What the protocols share: a request, with the parts of a query that the operator permits to send, and
//! the places of a response.

use domain::address::LatLng;
use serde::de::DeserializeOwned;

use crate::{Options, Precision, Query};

/// A request, independent of the protocol.
pub(super) struct GeocodeRequest {
    pub(super) text: String,
    /// ISO 3166-1 alpha-2, upper case: the countries to search; all if empty.
    pub(super) countries: Vec<String>,
    /// Whether the operator configured countries, and so declared that the service supports a
    /// filter by country.
    pub(super) has_configured_countries: bool,
    /// The point near which to search first.
    pub(super) near: Option<LatLng>,
    /// BCP 47.
    pub(super) language: String,
}

/// Characters of a query; Addok rejects more than 200.
const MAX_CHARACTERS: usize = 200;

impl GeocodeRequest {
    /// `None` if the query is for a country that is not configured. `language` is BCP 47.
    pub(super) fn new(query: &Query, options: &Options, language: &str) -> Option<Self> {
        let countries = options.countries.iter();
        let configured: Vec<_> = countries.map(|code| code.as_str().to_owned()).collect();
        let country = query.country.as_ref().map(|code| code.to_ascii_uppercase());
        let has_configured_countries = !configured.is_empty();
        let countries = match country {
            None => configured,
            Some(country) if !has_configured_countries || configured.contains(&country) => {
                vec![country]
            }
            Some(_) => return None,
        };
        Some(Self {
            text: query.text.chars().take(MAX_CHARACTERS).collect(),
            countries,
            has_configured_countries,
            near: query.near.filter(|_| options.bias),
            language: language.to_owned(),
        })
    }
}

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
