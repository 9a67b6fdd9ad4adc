//! The response to a created delivery ("Delivery", "Task", "POST /api/deliveries").

use delivery::Credentials;
use proto::{AddressDraft, CreateStoreRequest};
use serde_json::{Value, json};

use super::{draft, dropoff};
use crate::harness::{Mismatches, Platform};

on_both_databases! {
    async fn a_delivery_is_created_with_two_open_tasks(platform: &Platform) {
        let client = platform.client().await;

        let draft = json!({
            "pickup": { "address": "24 Rue de la Paix, 75002 Paris", "before": "tomorrow 11:00" },
            "dropoff": {
                "address": {
                    "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                    "description": "Code A1234, third floor",
                    "contactName": "Jane Doe",
                    "telephone": "+33612345678",
                    "latLng": [48.8566, 2.3522],
                },
                "before": "tomorrow 13:00",
            },
        });
        let price = client
            .post("/api/retail_prices/calculate", draft.clone())
            .await
            .expect(200);

        let created = client.post("/api/deliveries", draft).await;

        assert_eq!(created.header("content-type"), "application/ld+json; charset=utf-8");
        let location = created.header("location").to_owned();
        let created = created.expect(201);
        let iri = created["@id"].as_str().unwrap();
        assert!(location == iri || location == client.url(iri), "{location}");
        assert_eq!(client.get(iri).await.expect(200), created);

        let mut body = created;
        for (collection, pointer) in [
            ("deliveries", ""),
            ("tasks", "/pickup"),
            ("tasks", "/dropoff"),
            ("addresses", "/pickup/address"),
            ("addresses", "/dropoff/address"),
        ] {
            hide_ids(&mut body, collection, pointer);
        }
        for whole_number in ["distance", "duration"] {
            let number = body[whole_number].take();
            assert!(number.as_u64().is_some_and(|number| number > 0), "{number}");
        }
        let pickup = &mut body["pickup"]["address"];
        let formatted = pickup["streetAddress"].take();
        assert!(formatted.as_str().unwrap().starts_with("24 Rue de la Paix"), "{formatted}");
        assert_near_paris(&pickup["geo"]);
        for coordinate in ["latitude", "longitude"] {
            pickup["geo"][coordinate].take();
        }
        let tracking_url = body["trackingUrl"].take();
        let pages = format!("{}/t/", platform.base_url);
        assert!(tracking_url.as_str().unwrap().starts_with(&pages), "{tracking_url}");
        assert_eq!(body, expected_delivery(&price));
    }

    async fn a_task_is_returned_as_the_client_described_it(platform: &Platform) {
        let operator = platform.operator().await;
        operator.apply_price_list(&platform.store, PRICE_LIST).await;
        let client = platform.client().await;
        let task = json!({
            "address": {
                "streetAddress": "By the river, under the bridge",
                "latLng": [48.856_613_1, 2.352_222_9],
                "name": "The kiosk",
                "contactName": "Zoë Ünïcödé 🚲",
                "telephone": "0612345678",
                "description": "Line one\nLine two",
                "postalCode": "75004",
                "addressLocality": "Paris",
                "addressCountry": "FR",
            },
            "before": "tomorrow 13:00",
            "after": "tomorrow 12:00",
            "comments": "Ring twice ☎ \"please\" \\ <b>",
            "weight": 1500,
            "packages": [{ "type": "XL", "quantity": 2 }, { "type": "S", "quantity": 1 }],
            "tags": ["cold", "fragile"],
            "metadata": { "order": "42", "été": "oui", "": "" },
        });
        let mut spaced = task.clone();
        spaced["tags"] = json!(" cold  fragile ");

        let created = client
            .create_delivery(json!({ "pickup": task, "dropoff": spaced }))
            .await;

        for kind in ["pickup", "dropoff"] {
            let mut read = client.get(created[kind]["@id"].as_str().unwrap()).await.expect(200);
            read["address"]["@id"].take();
            let address = json!({
                "@id": null,
                "@type": "http://schema.org/Place",
                "geo": {
                    "@type": "GeoCoordinates", "latitude": 48.856_613_1, "longitude": 2.352_222_9,
                },
                "streetAddress": "By the river, under the bridge",
                "telephone": "+33612345678",
                "name": "The kiosk",
                "contactName": "Zoë Ünïcödé 🚲",
                "description": "Line one\nLine two",
                "postalCode": "75004",
                "addressLocality": "Paris",
                "addressCountry": "FR",
            });
            for (member, value) in address.as_object().unwrap() {
                assert_eq!(&read["address"][member], value, "{kind}.address.{member}");
            }
            for (member, value) in [
                ("before", &json!("2020-04-03T13:00:00+02:00")),
                ("after", &json!("2020-04-03T12:00:00+02:00")),
                ("comments", &task["comments"]),
                ("weight", &task["weight"]),
                ("packages", &task["packages"]),
                ("tags", &task["tags"]),
                ("metadata", &task["metadata"]),
            ] {
                assert_eq!(&read[member], value, "{kind}.{member}");
            }
        }

        // "The types shops may send; another is a violation."
        let mut unknown = task;
        unknown["packages"] = json!([{ "type": "XXL", "quantity": 1 }]);
        let rejected = client.post("/api/deliveries", json!({ "dropoff": unknown })).await;
        let mut mismatches = Mismatches::default();
        mismatches.check_violations("an unknown type", &rejected, &["dropoff.packages"]);
        mismatches.assert_none();
    }

    async fn a_pickup_without_an_address_is_at_the_clients_default_address_or_else_the_stores(
        platform: &Platform
    ) {
        let operator = platform.operator().await;
        let at = |text: &str| Some(AddressDraft {
            street_address: Some(text.to_owned()),
            ..AddressDraft::default()
        });
        let with_address = CreateStoreRequest {
            display_name: "A shop".to_owned(),
            default_address: at("45 Rue d'Ulm, 75005 Paris"),
            ..CreateStoreRequest::default()
        };
        let store = operator.create_store_with(with_address).await;
        let bare_store = operator.create_store("A shop without address").await;
        let client_address = at("272 Rue Saint-Honoré, 75001 Paris");
        let cases: [(Credentials, Option<&str>); 4] = [
            (operator.create_client_with_address(&store, &["deliveries"], client_address.clone()).await, Some("272 ")),
            (operator.create_client(&store, &["deliveries"]).await, Some("45 ")),
            (operator.create_client_with_address(&bare_store, &["deliveries"], client_address).await, Some("272 ")),
            (operator.create_client(&bare_store, &["deliveries"]).await, None),
        ];
        let mut mismatches = Mismatches::default();

        for (credentials, expected) in cases {
            let client = platform.client_for(&credentials, &["deliveries"]).await;
            for pickup in [
                None,
                Some(json!(null)),
                Some(json!({})),
                Some(json!({ "address": null })),
                Some(json!({ "before": "tomorrow 11:00" })),
                Some(json!({ "comments": "Ring", "address": null, "timeSlot": "" })),
            ] {
                let case = format!("{expected:?} {pickup:?}");
                let mut body = draft();
                if let Some(pickup) = pickup {
                    body["pickup"] = pickup;
                }
                let response = client.post("/api/deliveries", body).await;
                let Some(prefix) = expected else {
                    mismatches.check_violations(case, &response, &["pickup.address"]);
                    continue;
                };
                mismatches.check_eq(&case, response.status, 201);
                let text = response.json["pickup"]["address"]["streetAddress"].as_str();
                let has_prefix = text.is_some_and(|text| text.starts_with(prefix));
                mismatches.check(case, has_prefix, format!("{text:?}"));
            }
        }
        mismatches.assert_none();

        // "A store without a price list can still create deliveries", given a pickup address.
        let client = platform.new_store_client().await;
        let body = json!({ "pickup": { "address": "24 rue de la paix paris" }, "dropoff": dropoff() });
        let created = client.create_delivery(body).await;
        assert_eq!(created["price"], Value::Null);
    }

    async fn null_members_count_as_absent_and_unknown_members_are_ignored(platform: &Platform) {
        let client = platform.client().await;
        let all_null = json!({
            "after": null, "doneAfter": null, "doneBefore": null, "timeSlot": null,
            "comments": null, "weight": null, "packages": null, "tags": null, "metadata": null,
        });
        let mut with_nulls = draft();
        with_nulls["pickup"] = all_null.clone();
        with_nulls["pickup"]["before"] = json!(null);
        with_nulls["pickup"]["address"] = json!(null);
        for (member, value) in all_null.as_object().unwrap() {
            with_nulls["dropoff"][member] = value.clone();
        }
        with_nulls["dropoff"]["address"] = json!({
            "streetAddress": "48 Rue de Rivoli, 75004 Paris", "latLng": null, "geo": null,
            "name": null, "contactName": null, "telephone": null, "description": null,
            "postalCode": null, "addressLocality": null, "addressCountry": null,
        });
        let mut with_unknown_members = draft();
        with_unknown_members["@context"] = json!("/api/contexts/Delivery");
        with_unknown_members["store"] = json!({ "a": [1, { "b": null }] });
        with_unknown_members["dropoff"]["status"] = json!("DONE");
        with_unknown_members["dropoff"]["type"] = json!(7);
        with_unknown_members["dropoff"]["@id"] = json!("/api/tasks/1");
        with_unknown_members["dropoff"]["address"] = json!({
            "@type": "http://schema.org/Place", "streetAddress": "48 Rue de Rivoli, 75004 Paris",
            "floor": 3, "provider": "ours",
        });

        let plain = client.create_delivery(draft()).await;
        for body in [with_nulls, with_unknown_members] {
            let created = client.create_delivery(body).await;
            for kind in ["pickup", "dropoff"] {
                let [mut actual, mut expected] =
                    [&created, &plain].map(|delivery| delivery[kind].clone());
                for task in [&mut actual, &mut expected] {
                    for volatile in ["@id", "id"] {
                        task[volatile].take();
                    }
                    task["address"]["@id"].take();
                    // Geocoding may keep the client's text in an address object, but replaces an
                    // address that is a string.
                    task["address"]["streetAddress"].take();
                }
                assert_eq!(actual, expected, "{kind}");
            }
        }
    }
}

const PRICE_LIST: &str = r#"
currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "first"

[packages]
S = { volume = 1 }
XL = { volume = 8 }

[[rule]]
name = "All"
when = "distance >= 0.0"
price = 499
"#;

/// The delivery of the first test, with null for every value that differs between runs.
fn expected_delivery(price: &Value) -> Value {
    let moment = "2020-04-02T11:00:00+02:00";
    json!({
        "@context": "/api/contexts/Delivery",
        "@type": "http://schema.org/ParcelDelivery",
        "@id": null,
        "id": null,
        "state": "created",
        "pickup": {
            "@id": null,
            "@type": "Task",
            "id": null,
            "type": "PICKUP",
            "status": "TODO",
            "state": "TODO",
            "address": {
                "@id": null,
                "@type": "http://schema.org/Place",
                "geo": { "@type": "GeoCoordinates", "latitude": null, "longitude": null },
                "streetAddress": null,
                "telephone": null,
                "name": null,
                "contactName": null,
                "description": null,
                "postalCode": "75002",
                "addressLocality": "Paris",
                "addressCountry": "FR",
            },
            "after": "2020-04-03T10:45:00+02:00",
            "before": "2020-04-03T11:00:00+02:00",
            "doneAfter": "2020-04-03T10:45:00+02:00",
            "doneBefore": "2020-04-03T11:00:00+02:00",
            "comments": "",
            "weight": null,
            "packages": [],
            "tags": [],
            "metadata": {},
            "createdAt": moment,
            "updatedAt": moment,
            "cancelledAt": null,
        },
        "dropoff": {
            "@id": null,
            "@type": "Task",
            "id": null,
            "type": "DROPOFF",
            "status": "TODO",
            "state": "TODO",
            "address": {
                "@id": null,
                "@type": "http://schema.org/Place",
                "geo": {
                    "@type": "GeoCoordinates", "latitude": 48.8566, "longitude": 2.3522,
                },
                "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                "telephone": "+33612345678",
                "name": null,
                "contactName": "Jane Doe",
                "description": "Code A1234, third floor",
                "postalCode": null,
                "addressLocality": null,
                "addressCountry": null,
            },
            "after": "2020-04-03T12:45:00+02:00",
            "before": "2020-04-03T13:00:00+02:00",
            "doneAfter": "2020-04-03T12:45:00+02:00",
            "doneBefore": "2020-04-03T13:00:00+02:00",
            "comments": "",
            "weight": null,
            "packages": [],
            "tags": [],
            "metadata": {},
            "createdAt": moment,
            "updatedAt": moment,
            "cancelledAt": null,
        },
        "distance": null,
        "duration": null,
        "distanceSource": "straight_line",
        "price": {
            "amount": price["amount"], "currency": "EUR", "tax": price["tax"],
            "retailPrice": null,
        },
        "trackingUrl": null,
        "cancelledAt": null,
        "externalReference": null,
    })
}

/// Replaces `@id` and `id` by null after checking that they name the same UUID in this collection.
fn hide_ids(body: &mut Value, collection: &str, pointer: &str) {
    let resource = body.pointer_mut(pointer).unwrap();
    let iri = resource["@id"].take();
    let id = iri
        .as_str()
        .and_then(|iri| iri.strip_prefix(&format!("/api/{collection}/")))
        .unwrap();
    let uuid: uuid::Uuid = id.parse().unwrap();
    assert_eq!((uuid.get_version_num(), uuid.to_string().as_str()), (7, id));
    if let Some(text) = resource.get_mut("id") {
        assert_eq!(text.take(), id);
    }
}

fn assert_near_paris(geo: &Value) {
    let near = |coordinate: &str, center: f64| {
        let value = geo[coordinate].as_f64().unwrap();
        assert!((value - center).abs() < 0.2, "{geo}");
    };
    near("latitude", 48.86);
    near("longitude", 2.34);
}
