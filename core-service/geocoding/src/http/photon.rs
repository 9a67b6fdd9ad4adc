//! Photon (`/api`): `GeoJSON`, without a score.

use serde::Deserialize;

use super::protocol::{GeocodeRequest, Parameters, Place, geo_json_places, given};
use crate::{Precision, tokenizer::address_line};

/// Photon rejects any other language with status 400.
const LANGUAGES: [&str; 3] = ["de", "en", "fr"];

pub(super) fn parameters(request: &GeocodeRequest) -> (&'static str, Parameters) {
    let mut parameters = vec![("q", request.text.clone()), ("limit", "5".to_owned())];
    let language = request.language.split('-').next().unwrap_or_default();
    if LANGUAGES.contains(&language) {
        parameters.push(("lang", language.to_owned()));
    }
    // Servers before version 1 reject `countrycode` with status 400.
    if request.has_configured_countries {
        for country in &request.countries {
            parameters.push(("countrycode", country.clone()));
        }
    }
    if let Some(near) = request.near {
        parameters.push(("lat", near.latitude().to_string()));
        parameters.push(("lon", near.longitude().to_string()));
    }
    ("/api", parameters)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    r#type: String,
    name: Option<String>,
    housenumber: Option<String>,
    street: Option<String>,
    postcode: Option<String>,
    city: Option<String>,
    locality: Option<String>,
    district: Option<String>,
    county: Option<String>,
    state: Option<String>,
    country: Option<String>,
    countrycode: Option<String>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    geo_json_places(body, place)
}

fn place(properties: Properties, [longitude, latitude]: [f64; 2]) -> Place {
    let precision = match properties.r#type.as_str() {
        _ if properties.housenumber.is_some() => Some(Precision::House),
        "street" => Some(Precision::Street),
        "city" | "district" | "locality" => Some(Precision::Locality),
        _ => None,
    };
    let street = match properties.r#type.as_str() {
        "street" => properties.name.as_deref().or(properties.street.as_deref()),
        _ => properties.street.as_deref(),
    };
    let town = match precision {
        Some(Precision::Locality) => properties.city.as_deref().or(properties.name.as_deref()),
        _ => properties.city.as_deref(),
    };
    let postcode = properties
        .postcode
        .as_deref()
        .filter(|_| precision == Some(Precision::House));
    Place {
        formatted: address_line(
            [properties.housenumber.as_deref(), street].map(Option::unwrap_or_default),
            [postcode, town].map(Option::unwrap_or_default),
        ),
        locality: town.map(str::to_owned),
        street: street.map(str::to_owned),
        number: properties.housenumber,
        postal_code: properties.postcode,
        areas: given([properties.locality, properties.district]),
        regions: given([properties.county, properties.state, properties.country]),
        country: properties.countrycode,
        latitude,
        longitude,
        precision,
        confidence: 1.0,
    }
}
