//! Pelias (`/v1/search`): `GeoJSON`, with a confidence and a layer.

use serde::Deserialize;

use super::protocol::{GeocodeRequest, Parameters, Place, geo_json_places, given};
use crate::Precision;

pub(super) fn parameters(request: &GeocodeRequest) -> (&'static str, Parameters) {
    let mut parameters = vec![
        ("text", request.text.clone()),
        ("size", "5".to_owned()),
        ("lang", request.language.clone()),
    ];
    if !request.countries.is_empty() {
        parameters.push(("boundary.country", request.countries.join(",")));
    }
    if let Some(near) = request.near {
        parameters.push(("focus.point.lat", near.latitude().to_string()));
        parameters.push(("focus.point.lon", near.longitude().to_string()));
    }
    ("/v1/search", parameters)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    label: String,
    layer: String,
    accuracy: String,
    match_type: String,
    confidence: f64,
    housenumber: Option<String>,
    street: Option<String>,
    postalcode: Option<String>,
    locality: Option<String>,
    neighbourhood: Option<String>,
    borough: Option<String>,
    localadmin: Option<String>,
    county: Option<String>,
    region: Option<String>,
    country: Option<String>,
    country_code: Option<String>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    geo_json_places(body, place)
}

fn place(properties: Properties, [longitude, latitude]: [f64; 2]) -> Place {
    let is_exact = properties.accuracy == "point" && properties.match_type != "interpolated";
    Place {
        formatted: properties.label,
        precision: match properties.layer.as_str() {
            "address" if is_exact => Some(Precision::House),
            "address" => Some(Precision::Interpolated),
            "street" => Some(Precision::Street),
            "locality" | "localadmin" | "postalcode" => Some(Precision::Locality),
            _ => None,
        },
        number: properties.housenumber,
        street: properties.street,
        postal_code: properties.postalcode,
        locality: properties.locality,
        areas: given([
            properties.neighbourhood,
            properties.borough,
            properties.localadmin,
        ]),
        regions: given([properties.county, properties.region, properties.country]),
        country: properties.country_code,
        latitude,
        longitude,
        confidence: properties.confidence,
    }
}
