//! Nominatim (`/search`, format `jsonv2`): latitude and longitude are strings.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::protocol::{GeocodeRequest, Parameters, Place, given, valid_members};
use crate::{Precision, tokenizer::address_line};

/// Members of an address that are areas within a town.
const AREAS: &str = "allotments borough city_block city_district croft district farm hamlet \
    isolated_dwelling locality neighbourhood quarter residential subdivision suburb";
/// Members of an address that are areas larger than a town, besides `ISO3166-2-…`.
const REGIONS: &str = "country county province region state state_district";
/// About thirty kilometres, in degrees.
const VIEWBOX_MARGIN: f64 = 0.3;

pub(super) fn parameters(request: &GeocodeRequest) -> (&'static str, Parameters) {
    let mut parameters = vec![
        ("q", request.text.clone()),
        ("format", "jsonv2".to_owned()),
        ("addressdetails", "1".to_owned()),
        ("limit", "5".to_owned()),
        ("accept-language", request.language.clone()),
    ];
    if !request.countries.is_empty() {
        let countries = request.countries.join(",");
        parameters.push(("countrycodes", countries.to_ascii_lowercase()));
    }
    if let Some(near) = request.near {
        // Longitude and latitude of two corners. Not `bounded`: a preference only.
        let (latitude, longitude) = (near.latitude(), near.longitude());
        let corners = [
            longitude - VIEWBOX_MARGIN,
            latitude - VIEWBOX_MARGIN,
            longitude + VIEWBOX_MARGIN,
            latitude + VIEWBOX_MARGIN,
        ];
        parameters.push((
            "viewbox",
            corners.map(|degrees| format!("{degrees:.4}")).join(","),
        ));
    }
    ("/search", parameters)
}

#[derive(Deserialize)]
struct SearchResult {
    lat: String,
    lon: String,
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    addresstype: String,
    #[serde(default)]
    category: String,
    /// `road`, `suburb`, `county` and many others; also names of shops and buildings.
    #[serde(default)]
    address: HashMap<String, Value>,
}

pub(super) fn places(body: &[u8]) -> serde_json::Result<Vec<Place>> {
    let matches: Vec<Value> = serde_json::from_slice(body)?;
    Ok(valid_members::<SearchResult>(matches)
        .filter_map(place)
        .collect())
}

fn place(result: SearchResult) -> Option<Place> {
    let member = |name: &str| Some(result.address.get(name)?.as_str()?.to_owned());
    let (house_number, postcode) = (member("house_number"), member("postcode"));
    let road = member("road").or_else(|| member("pedestrian"));
    // A merged commune is in a town under its former name too.
    let mut areas = given(["city", "town", "village", "municipality"].map(member));
    let locality = areas.first().cloned();
    let mut regions = Vec::new();
    for (member, name) in &result.address {
        let Some(name) = name.as_str() else {
            continue;
        };
        let is_in = |members: &str| members.split(' ').any(|other| other == member);
        if is_in(AREAS) {
            areas.push(name.to_owned());
        } else if is_in(REGIONS) || member.starts_with("ISO3166") {
            regions.push(name.to_owned());
        }
    }
    let precision = if house_number.is_some() {
        Precision::House
    } else if result.category == "highway" || result.addresstype == "road" {
        Precision::Street
    } else if matches!(
        result.addresstype.as_str(),
        "city" | "town" | "village" | "municipality" | "postcode" | "suburb"
    ) {
        Precision::Locality
    } else {
        return None;
    };
    // Only of a house: a street or town may have several.
    let own_postcode = postcode
        .as_deref()
        .filter(|_| precision < Precision::Street);
    let formatted = address_line(
        [house_number.as_deref(), road.as_deref()].map(Option::unwrap_or_default),
        [own_postcode, locality.as_deref()].map(Option::unwrap_or_default),
    );
    Some(Place {
        formatted: if formatted.is_empty() {
            result.display_name
        } else {
            formatted
        },
        number: house_number,
        postal_code: postcode,
        street: road,
        areas,
        regions,
        locality,
        country: member("country_code"),
        latitude: result.lat.parse().ok()?,
        longitude: result.lon.parse().ok()?,
        precision: Some(precision),
        confidence: 1.0,
    })
}
