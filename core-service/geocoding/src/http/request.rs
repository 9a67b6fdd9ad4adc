//! The request to a geocoder service: the parts of a query that the operator permits to send.

use domain::address::LatLng;

use crate::Query;

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

/// The settings for all requests to a service.
pub(super) struct RequestPolicy {
    /// The countries to search; all if empty.
    pub(super) countries: Vec<String>,
    /// BCP 47.
    pub(super) language: String,
    /// Whether to send the point near which to search.
    pub(super) bias: bool,
}

impl RequestPolicy {
    /// `None` if the query is for a country that is not configured.
    pub(super) fn request(&self, query: &Query) -> Option<GeocodeRequest> {
        let country = query.country.as_ref().map(|code| code.to_ascii_uppercase());
        let countries = match country {
            None => self.countries.clone(),
            Some(country) if self.countries.is_empty() || self.countries.contains(&country) => {
                vec![country]
            }
            Some(_) => return None,
        };
        Some(GeocodeRequest {
            text: query.text.chars().take(MAX_CHARACTERS).collect(),
            countries,
            has_configured_countries: !self.countries.is_empty(),
            near: query.near.filter(|_| self.bias),
            language: self.language.clone(),
        })
    }
}
