//! Nominatim (`/search`, format `jsonv2`): latitude and longitude are texts.

use serde::Deserialize;

use super::{Parameters, Place, Precision, Question, line, readable};

/// About thirty kilometres, in degrees.
const AROUND: f64 = 0.3;

pub(super) fn request(question: &Question) -> (&'static str, Parameters) {
    let mut parameters = vec![
        ("q", question.text.clone()),
        ("format", "jsonv2".to_owned()),
        ("addressdetails", "1".to_owned()),
        ("limit", "5".to_owned()),
        ("accept-language", question.language.clone()),
    ];
    if !question.countries.is_empty() {
        let countries = question.countries.join(",");
        parameters.push(("countrycodes", countries.to_ascii_lowercase()));
    }
    if let Some(near) = question.near {
        // Longitude, latitude of two corners. Not bounded: it only prefers.
        let (latitude, longitude) = (near.latitude(), near.longitude());
        let corners = [
            longitude - AROUND,
            latitude - AROUND,
            longitude + AROUND,
            latitude + AROUND,
        ];
        parameters.push((
            "viewbox",
            corners.map(|degrees| format!("{degrees:.4}")).join(","),
        ));
    }
    ("/search", parameters)
}

#[derive(Deserialize)]
struct Match {
    lat: String,
    lon: String,
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    addresstype: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    address: Address,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    house_number: Option<String>,
    road: Option<String>,
    pedestrian: Option<String>,
    city: Option<String>,
    town: Option<String>,
    village: Option<String>,
    municipality: Option<String>,
    postcode: Option<String>,
    country_code: Option<String>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    let matches: Vec<serde_json::Value> = serde_json::from_slice(body)?;
    Ok(readable::<Match>(matches).filter_map(place).collect())
}

fn place(found: Match) -> Option<Place> {
    let address = found.address;
    let road = address.road.or(address.pedestrian);
    let locality = address
        .city
        .or(address.town)
        .or(address.village)
        .or(address.municipality);
    let precision = if address.house_number.is_some() {
        Precision::House
    } else if found.category == "highway" || found.addresstype == "road" {
        Precision::Street
    } else if matches!(
        found.addresstype.as_str(),
        "city" | "town" | "village" | "municipality" | "postcode" | "suburb"
    ) {
        Precision::Locality
    } else {
        return None;
    };
    let formatted = line(
        &[address.house_number.as_deref(), road.as_deref()],
        &[
            address
                .postcode
                .as_deref()
                .filter(|_| precision < Precision::Street),
            locality.as_deref(),
        ],
    );
    Some(Place {
        formatted: if formatted.is_empty() {
            found.display_name
        } else {
            formatted
        },
        number: address.house_number,
        postal_code: address.postcode,
        locality,
        country: address.country_code,
        latitude: found.lat.parse().ok()?,
        longitude: found.lon.parse().ok()?,
        precision: Some(precision),
        confidence: 1.0,
    })
}
