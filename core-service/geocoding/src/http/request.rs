//! The request to a geocoder service: the parts of a query that the operator permits to send.

use domain::address::LatLng;

use crate::{Options, Query};

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
        let configured = options
            .countries
            .iter()
            .map(|code| code.as_str().to_owned());
        let configured: Vec<_> = configured.collect();
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
