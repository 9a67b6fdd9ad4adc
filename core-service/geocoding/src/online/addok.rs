//! Addok (`/search/`), which the French BAN's service is: `GeoJSON`, with a score.

use serde::Deserialize;

use super::{Feature, FeatureCollection, Parameters, Place, Precision, Question, readable};

pub(super) fn request(question: &Question) -> (&'static str, Parameters) {
    let mut parameters = vec![("q", question.text.clone()), ("limit", "5".to_owned())];
    if let Some(near) = question.near {
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
    postcode: Option<String>,
    city: Option<String>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    let collection: FeatureCollection = serde_json::from_slice(body)?;
    Ok(readable::<Feature<Properties>>(collection.features)
        .map(place)
        .collect())
}

fn place(feature: Feature<Properties>) -> Place {
    let [longitude, latitude] = feature.geometry.coordinates;
    let properties = feature.properties;
    Place {
        formatted: properties.label,
        precision: match properties.r#type.as_str() {
            "housenumber" => Some(Precision::House),
            "street" => Some(Precision::Street),
            "municipality" | "locality" => Some(Precision::Locality),
            _ => None,
        },
        number: properties.housenumber,
        postal_code: properties.postcode,
        locality: properties.city,
        country: None,
        latitude,
        longitude,
        confidence: properties.score,
    }
}
