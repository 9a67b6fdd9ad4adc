//! Values stored as JSON, because they are read and written as a whole.

use std::collections::BTreeMap;

use domain::{address::Address, coverage::ServiceArea, task::Package};
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct AddressJson(pub Address);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct PackagesJson(pub Vec<Package>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct TagsJson(pub Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct MetadataJson(pub BTreeMap<String, String>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct ServiceAreaJson(pub ServiceArea);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_stored_address_is_read_and_written_unchanged() {
        let id = "01900000-0000-7000-8000-000000000001";
        let short =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 48.5, "longitude": 2.0 });
        let mut full = short.clone();
        for name in [
            "place_name",
            "contact_name",
            "telephone",
            "description",
            "postal_code",
            "locality",
            "country",
        ] {
            full[name] = Value::from(name);
        }
        for stored in [short, full] {
            let address: AddressJson = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(address).unwrap(), stored);
        }

        let nowhere =
            json!({ "id": id, "street_address": "1 Rue A", "latitude": 91.0, "longitude": 2.0 });
        let error = serde_json::from_value::<AddressJson>(nowhere).unwrap_err();
        assert!(error.to_string().contains("latitude 91"), "{error}");
    }

    #[test]
    fn stored_packages_and_service_areas_are_read_and_written_unchanged() {
        let packages = json!([["XL", 2], ["", 1]]);
        let read: PackagesJson = serde_json::from_value(packages.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), packages);
        for area in [
            json!({ "zone": "Town" }),
            json!({ "radius_meters": 5000 }),
            json!({ "center": [48.5, 2.0], "radius_meters": 5000 }),
        ] {
            let read: ServiceAreaJson = serde_json::from_value(area.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), area);
        }
        for area in [
            json!({ "radius_meters": 5 }),
            json!({ "center": [91.0, 2.0], "radius_meters": 5000 }),
        ] {
            assert!(serde_json::from_value::<ServiceAreaJson>(area).is_err());
        }
    }
}
