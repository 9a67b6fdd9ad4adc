//! Addok (`/search/`), also the API of the French address database (BAN): `GeoJSON` with a score.

use serde::Deserialize;

use super::protocol::{GeocodeRequest, Parameters, Place, geo_json_places, given};
use crate::Precision;

pub(super) fn parameters(request: &GeocodeRequest) -> (&'static str, Parameters) {
    let mut parameters = vec![("q", request.text.clone()), ("limit", "5".to_owned())];
    if let Some(near) = request.near {
        parameters.push(("lat", near.latitude().to_string()));
        parameters.push(("lon", near.longitude().to_string()));
    }
    ("/search/", parameters)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    label: String,
    score: f64,
    r#type: String,
    housenumber: Option<String>,
    /// The street of a house.
    street: Option<String>,
    /// The name of a street.
    name: Option<String>,
    postcode: Option<String>,
    city: Option<String>,
    district: Option<String>,
    /// The town's former name.
    oldcity: Option<String>,
    /// Department and region.
    context: Option<String>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    geo_json_places(body, place)
}

fn place(properties: Properties, [longitude, latitude]: [f64; 2]) -> Place {
    Place {
        formatted: properties.label,
        precision: match properties.r#type.as_str() {
            "housenumber" => Some(Precision::House),
            "street" => Some(Precision::Street),
            "municipality" | "locality" => Some(Precision::Locality),
            _ => None,
        },
        street: properties.street.or(properties.name),
        number: properties.housenumber,
        postal_code: properties.postcode,
        locality: properties.city,
        areas: given([properties.district, properties.oldcity]),
        regions: properties.context.into_iter().collect(),
        country: None,
        latitude,
        longitude,
        confidence: properties.score,
    }
}
