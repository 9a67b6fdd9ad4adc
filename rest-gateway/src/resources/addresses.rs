//! Addresses in tasks and stores.

use proto::{AddressDraft, LatLng, iri};
use serde::Serialize;
use serde_json::Value;

use crate::{
    body_reader::{Object, ViolationCollector},
    error::Error,
    representation::json_ld::Node,
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the terms are schema.org's")]
pub(super) struct Address {
    #[serde(flatten)]
    node: Node,
    geo: GeoCoordinates,
    street_address: String,
    telephone: Option<String>,
    name: Option<String>,
    contact_name: Option<String>,
    description: Option<String>,
    postal_code: Option<String>,
    address_locality: Option<String>,
    address_country: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type")]
struct GeoCoordinates {
    latitude: f64,
    longitude: f64,
}

impl TryFrom<proto::Address> for Address {
    type Error = Error;

    fn try_from(address: proto::Address) -> Result<Self, Error> {
        let lat_lng = address
            .lat_lng
            .ok_or_else(|| Error::incomplete("an address's location"))?;
        // A preview has no name.
        let iri = (!address.name.is_empty()).then(|| iri::of(&address.name));
        Ok(Self {
            node: Node::with_iri("http://schema.org/Place", iri),
            geo: GeoCoordinates {
                latitude: lat_lng.latitude,
                longitude: lat_lng.longitude,
            },
            street_address: address.street_address,
            telephone: address.telephone,
            name: address.place_name,
            contact_name: address.contact_name,
            description: address.description,
            postal_code: address.postal_code,
            address_locality: address.address_locality,
            address_country: address.address_country,
        })
    }
}

/// Reads an address object.
pub(super) fn read(address: &Object<'_>, violations: &mut ViolationCollector) -> AddressDraft {
    AddressDraft {
        street_address: address.text("streetAddress", "street_address", violations),
        lat_lng: read_location(address, violations),
        place_name: address.text("name", "place_name", violations),
        contact_name: address.text("contactName", "contact_name", violations),
        telephone: match address.get("telephone") {
            // PHP clients send `false` for an empty field.
            Some(Value::Bool(false)) => None,
            _ => address.text("telephone", "telephone", violations),
        },
        description: address.text("description", "description", violations),
        postal_code: address.text("postalCode", "postal_code", violations),
        address_locality: address.text("addressLocality", "address_locality", violations),
        address_country: address.text("addressCountry", "address_country", violations),
    }
}

/// Reads `latLng`, or else `geo`.
fn read_location(address: &Object<'_>, violations: &mut ViolationCollector) -> Option<LatLng> {
    const FIELD: &str = "lat_lng";

    let (point, requirement) = if let Some(value) = address.get("latLng") {
        let numbers = value.as_array().map(Vec::as_slice);
        let point = match numbers {
            Some([latitude, longitude]) => latitude.as_f64().zip(longitude.as_f64()),
            _ => None,
        };
        let requirement = "must be an array of two numbers, latitude then longitude";
        (point, requirement)
    } else {
        let value = address.get("geo")?;
        violations.add_alias(address.path(FIELD), "geo");
        let number = |member: &str| value.get(member).and_then(Value::as_f64);
        let requirement = "must be an object with the numbers `latitude` and `longitude`";
        (number("latitude").zip(number("longitude")), requirement)
    };
    if point.is_none() {
        violations.add(address.path(FIELD), "WRONG_TYPE", requirement);
    }
    point.map(|(latitude, longitude)| LatLng {
        latitude,
        longitude,
    })
}
