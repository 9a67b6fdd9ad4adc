//! Contacts at addresses: pickups at the default address, telephone numbers of other countries.

use proto::{AddressDraft, CreateStoreRequest, LatLng};
use serde_json::{Value, json};

use super::{draft, draft_with, dropoff};
use crate::harness::{Mismatches, Platform, assertions::assert_violations};

const SCOPES: [&str; 2] = ["deliveries", "tasks"];

on_both_databases! {
    /// An address object with contact fields, but with neither text nor point, means the default
    /// address with this contact.
    async fn a_pickup_with_a_contact_alone_is_at_the_default_address(platform: &Platform) {
        let client = platform.client().await;
        let default = client.create_delivery(draft()).await["pickup"]["address"].clone();
        let mut mismatches = Mismatches::default();

        for (contact, expected) in [
            (
                json!({
                    "telephone": "06 12 34 56 78", "contactName": "Ada", "description": "Back door",
                    "name": "Stock room", "streetAddress": " ", "latLng": null,
                }),
                json!({
                    "telephone": "+33612345678", "contactName": "Ada", "description": "Back door",
                    "name": "Stock room",
                }),
            ),
            (json!({ "telephone": "+33612345678" }), json!({ "telephone": "+33612345678" })),
            (json!({ "contactName": "Ada" }), json!({ "contactName": "Ada" })),
            (json!({ "description": "Back door" }), json!({ "description": "Back door" })),
            (json!({ "name": "Stock room" }), json!({ "name": "Stock room" })),
        ] {
            let case = contact.to_string();
            let mut body = draft();
            body["pickup"] = json!({ "address": contact });

            let delivery = client.create_delivery(body).await;

            let mut address = default.clone();
            for (member, value) in expected.as_object().unwrap() {
                address[member] = value.clone();
            }
            address["@id"] = delivery["pickup"]["address"]["@id"].clone();
            mismatches.check_eq(&case, &delivery["pickup"]["address"], &address);
            // Another contact is another resource.
            mismatches.check(&case, address["@id"] != default["@id"], &address["@id"]);
            let read = client.get(delivery["@id"].as_str().unwrap()).await.expect(200);
            mismatches.check_eq(case, read, delivery);
        }
        let invisible = json!({ "contactName": "\u{200b}\u{202a}", "name": "\u{feff}", "description": "\u{ad}" });
        for address in [json!({}), json!([]), json!({ "contactName": "", "telephone": false }), invisible] {
            let case = address.to_string();
            let mut body = draft();
            body["pickup"] = json!({ "address": address });
            let delivery = client.create_delivery(body).await;
            mismatches.check_eq(case, &delivery["pickup"]["address"], &default);
        }

        mismatches.assert_none();
    }

    /// The client's default address takes precedence over the store's.
    async fn the_default_address_keeps_the_fields_that_the_pickup_does_not_give(platform: &Platform) {
        let default = AddressDraft {
            street_address: Some("Counter 7".to_owned()),
            lat_lng: Some(LatLng { latitude: 48.85, longitude: 2.35 }),
            contact_name: Some("Zoé".to_owned()),
            telephone: Some("0712345678".to_owned()),
            ..AddressDraft::default()
        };
        let operator = platform.operator().await;
        let credentials = operator
            .create_client_with_address(&platform.store, &SCOPES, Some(default))
            .await;
        let client = platform.client_for(&credentials, &SCOPES).await;
        let mut body = draft();
        body["pickup"] = json!({ "address": { "contactName": "Ada", "telephone": "" } });

        let address = client.create_delivery(body).await["pickup"]["address"].clone();

        assert_eq!(address["streetAddress"], "Counter 7");
        assert_eq!(address["contactName"], "Ada");
        assert_eq!(address["telephone"], "+33712345678");
    }

    /// Never at the default address by mistake: without a default address, with an invalid
    /// contact, or with a part of another postal address.
    async fn a_pickup_that_cannot_be_at_the_default_address_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let pickup_at = |address: Value| json!({ "pickup": { "address": address }, "dropoff": dropoff() });

        for (address, path) in [
            (json!({ "telephone": "abc" }), "pickup.address.telephone"),
            (json!({ "telephone": "0612345678", "latLng": [91, 2] }), "pickup.address.latLng"),
            (json!({ "contactName": "Ada", "postalCode": "69001" }), "pickup.address.streetAddress"),
            (json!({ "addressLocality": "Lyon" }), "pickup.address.streetAddress"),
            (json!({ "addressCountry": "BE" }), "pickup.address.streetAddress"),
        ] {
            for resource in ["/api/deliveries", "/api/deliveries/assert"] {
                let response = client.post(resource, pickup_at(address.clone())).await;
                assert_violations(&response, &[path]);
            }
        }
        let without_default = platform.new_store_client().await;
        for (address, paths) in [
            (json!({ "contactName": "Ada" }), vec!["pickup.address"]),
            (json!({ "telephone": "abc" }), vec!["pickup.address", "pickup.address.telephone"]),
            (json!({ "streetAddress": 5 }), vec!["pickup.address.streetAddress"]),
        ] {
            let response = without_default.post("/api/deliveries", pickup_at(address)).await;
            assert_violations(&response, &paths);
        }
    }

    /// "National format read in the store's country, else the platform's."
    async fn a_national_number_is_read_in_the_stores_country(platform: &Platform) {
        let operator = platform.operator().await;
        // The address's number is in the format of the country in the same request.
        let store = operator
            .create_store_with(CreateStoreRequest {
                display_name: "Bruxelles".to_owned(),
                country_code: Some("BE".to_owned()),
                default_address: Some(AddressDraft {
                    street_address: Some("Rue Neuve 1, 1000 Bruxelles".to_owned()),
                    lat_lng: Some(LatLng { latitude: 50.85, longitude: 4.355 }),
                    telephone: Some("02 212 19 19".to_owned()),
                    ..AddressDraft::default()
                }),
                ..CreateStoreRequest::default()
            })
            .await;
        let credentials = operator.create_client(&store, &SCOPES).await;
        let belgian = platform.client_for(&credentials, &SCOPES).await;
        let french = platform.client().await;
        let at = |telephone: &str, latitude: f64| {
            let mut body = draft_with("dropoff.address.telephone", json!(telephone));
            body["dropoff"]["address"]["latLng"] = json!([latitude, 2.3522]);
            body
        };

        let delivery = belgian.create_delivery(at("0470 12 34 56", 50.8)).await;
        assert_eq!(delivery["dropoff"]["address"]["telephone"], "+32470123456");
        assert_eq!(delivery["pickup"]["address"]["telephone"], "+3222121919");
        let delivery = belgian.create_delivery(at("+33612345678", 50.8)).await;
        assert_eq!(delivery["dropoff"]["address"]["telephone"], "+33612345678");
        let response = french.post("/api/deliveries", at("022121919", 48.85)).await;
        assert_violations(&response, &["dropoff.address.telephone"]);
    }
}
