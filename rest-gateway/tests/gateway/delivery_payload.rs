//! How a body becomes core's message (specification, "Delivery creation payload").

use std::collections::HashMap;

use proto::{
    AddressDraft, CreateDeliveryRequest, DeliveryDraft, LatLng, Package, TaskDraft, Violation,
    task_draft::Address,
};
use serde_json::{Value, json};

use crate::harness::{Platform, samples::delivery};

/// The request that core receives for a body.
async fn request_of(body: Value) -> CreateDeliveryRequest {
    let platform = Platform::start().await;
    platform.core.will_respond(delivery());

    let reply = platform
        .client
        .post("/api/deliveries", body.to_string())
        .await;

    assert_eq!(reply.status, 201, "{}", reply.text());
    platform.core.received()
}

/// The violations that core receives for a dropoff.
async fn violations_of(dropoff: Value) -> Vec<(String, String)> {
    let request = request_of(json!({ "dropoff": dropoff })).await;
    let violations = request.violations.into_iter();
    violations
        .map(|violation| (violation.field, violation.reason))
        .collect()
}

async fn dropoff_of(dropoff: Value) -> TaskDraft {
    let request = request_of(json!({ "dropoff": dropoff })).await;
    assert_eq!(request.violations, []);
    request.delivery.unwrap().dropoff.unwrap()
}

#[tokio::test]
async fn every_member_of_the_payload_reaches_core() {
    let request = request_of(json!({
        "pickup": {
            "address": "24 Rue de la Paix, Paris",
            "before": "tomorrow 12:00",
            "after": "tomorrow 11:00",
            "unknown": {"member": [1]},
        },
        "dropoff": {
            "address": {
                "@id": "/api/addresses/1",
                "streetAddress": "48 Rue de Rivoli, Paris",
                "description": "2nd floor",
                "contactName": "Zoé",
                "telephone": "+33612345678",
                "latLng": [48.8, 2],
                "name": "Chez Zoé",
                "postalCode": "75004",
                "addressLocality": "Paris",
                "addressCountry": "FR",
            },
            "timeSlot": "2020-04-02 12:00-14:00",
            "comments": "Ring twice",
            "weight": 1500,
            "packages": [{"type": "XL", "quantity": 2}],
            "tags": ["cold", "fragile"],
            "metadata": {"order": "42"},
        },
        "externalReference": "Order 42",
        "retailPrice": "/api/retail_prices/quote",
    }))
    .await;

    let expected = CreateDeliveryRequest {
        delivery: Some(DeliveryDraft {
            pickup: Some(TaskDraft {
                address: Some(Address::AddressText("24 Rue de la Paix, Paris".to_owned())),
                before: Some("tomorrow 12:00".to_owned()),
                after: Some("tomorrow 11:00".to_owned()),
                ..TaskDraft::default()
            }),
            dropoff: Some(TaskDraft {
                address: Some(Address::AddressDraft(AddressDraft {
                    street_address: Some("48 Rue de Rivoli, Paris".to_owned()),
                    lat_lng: Some(LatLng {
                        latitude: 48.8,
                        longitude: 2.0,
                    }),
                    place_name: Some("Chez Zoé".to_owned()),
                    contact_name: Some("Zoé".to_owned()),
                    telephone: Some("+33612345678".to_owned()),
                    description: Some("2nd floor".to_owned()),
                    postal_code: Some("75004".to_owned()),
                    address_locality: Some("Paris".to_owned()),
                    address_country: Some("FR".to_owned()),
                })),
                before: None,
                after: None,
                time_slot: Some("2020-04-02 12:00-14:00".to_owned()),
                comments: Some("Ring twice".to_owned()),
                weight: Some(1500),
                packages: vec![Package {
                    r#type: "XL".to_owned(),
                    quantity: 2,
                }],
                tags: vec!["cold".to_owned(), "fragile".to_owned()],
                metadata: HashMap::from([("order".to_owned(), "42".to_owned())]),
            }),
            external_reference: Some("Order 42".to_owned()),
            retail_price: Some("retail_prices/quote".to_owned()),
        }),
        violations: vec![],
        idempotency: None,
        store: String::new(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn null_is_the_same_as_absent() {
    let dropoff = json!({
        "address": {
            "streetAddress": null, "description": null, "contactName": null, "telephone": null,
            "latLng": null, "geo": null, "name": null, "postalCode": null,
            "addressLocality": null, "addressCountry": null,
        },
        "before": null, "after": null, "doneBefore": null, "doneAfter": null, "timeSlot": null,
        "comments": null, "weight": null, "packages": null, "tags": null, "metadata": {"a": null},
    });

    let request = request_of(json!({
        "pickup": null, "dropoff": dropoff, "externalReference": null, "retailPrice": null,
    }))
    .await;

    assert_eq!(
        request,
        CreateDeliveryRequest {
            delivery: Some(DeliveryDraft {
                pickup: None,
                dropoff: Some(TaskDraft {
                    address: Some(Address::AddressDraft(AddressDraft::default())),
                    ..TaskDraft::default()
                }),
                external_reference: None,
                retail_price: None,
            }),
            violations: vec![],
            idempotency: None,
            store: String::new(),
        }
    );
}

#[tokio::test]
async fn old_member_names_are_read_when_the_new_ones_are_absent() {
    let old = dropoff_of(json!({"doneBefore": "b", "doneAfter": "a", "before": null})).await;
    let both = dropoff_of(json!({"doneBefore": "old", "before": "new"})).await;

    assert_eq!(
        (old.before.as_deref(), old.after.as_deref()),
        (Some("b"), Some("a"))
    );
    assert_eq!(both.before.as_deref(), Some("new"));
}

#[tokio::test]
async fn a_point_is_lat_lng_or_geo() {
    let point = async |address: Value| match dropoff_of(json!({ "address": address })).await.address
    {
        Some(Address::AddressDraft(draft)) => draft.lat_lng,
        other => panic!("{other:?}"),
    };
    let expected = Some(LatLng {
        latitude: 48.5,
        longitude: 2.25,
    });

    assert_eq!(point(json!({"latLng": [48.5, 2.25]})).await, expected);
    assert_eq!(
        point(json!({"geo": {"@type": "GeoCoordinates", "latitude": 48.5, "longitude": 2.25}}))
            .await,
        expected
    );
    assert_eq!(
        point(json!({"latLng": [48.5, 2.25], "geo": {"latitude": 1, "longitude": 1}})).await,
        expected
    );
}

#[tokio::test]
async fn tags_are_an_array_or_a_text_separated_by_spaces() {
    let text = dropoff_of(json!({"tags": " cold  fragile "})).await;
    let array = dropoff_of(json!({"tags": ["very cold"]})).await;

    assert_eq!(text.tags, ["cold", "fragile"]);
    assert_eq!(array.tags, ["very cold"]);
}

#[tokio::test]
async fn an_empty_array_is_an_empty_object_and_false_is_no_telephone() {
    let request = request_of(json!({
        "pickup": [],
        "dropoff": {"address": {"telephone": false}, "metadata": [], "weight": 500.0},
    }))
    .await;

    let delivery = request.delivery.unwrap();
    assert_eq!(delivery.pickup, Some(TaskDraft::default()));
    assert_eq!(
        delivery.dropoff,
        Some(TaskDraft {
            address: Some(Address::AddressDraft(AddressDraft::default())),
            weight: Some(500),
            ..TaskDraft::default()
        })
    );
    assert_eq!(request.violations, []);
}

#[tokio::test]
async fn every_member_of_the_wrong_type_is_reported_to_core() {
    let wrong = |field: &str| (format!("dropoff.{field}"), "WRONG_TYPE".to_owned());

    for (dropoff, fields) in [
        (json!({"address": 5}), vec!["address"]),
        (json!({"address": [1]}), vec!["address"]),
        (json!({"before": 5}), vec!["before"]),
        (json!({"doneBefore": false}), vec!["before"]),
        (json!({"doneAfter": []}), vec!["after"]),
        (json!({"timeSlot": {}}), vec!["time_slot"]),
        (json!({"comments": 1}), vec!["comments"]),
        (json!({"weight": "500"}), vec!["weight"]),
        (json!({"weight": 0.5}), vec!["weight"]),
        (json!({"packages": {"type": "XL"}}), vec!["packages"]),
        (
            json!({"packages": [1, {"type": 1, "quantity": "2"}]}),
            vec!["packages[0]", "packages[1].type", "packages[1].quantity"],
        ),
        (json!({"tags": 5}), vec!["tags"]),
        (json!({"tags": ["a", 5]}), vec!["tags[1]"]),
        (json!({"metadata": "a"}), vec!["metadata"]),
        (json!({"metadata": {"a": 1, "b": "2"}}), vec!["metadata.a"]),
        (
            json!({"address": {
                "streetAddress": 1, "description": 1, "contactName": 1, "telephone": true,
                "name": 1, "postalCode": 75002, "addressLocality": 1, "addressCountry": 1,
            }}),
            vec![
                "address.street_address",
                "address.place_name",
                "address.contact_name",
                "address.telephone",
                "address.description",
                "address.postal_code",
                "address.address_locality",
                "address.address_country",
            ],
        ),
        (json!({"address": {"latLng": [1]}}), vec!["address.lat_lng"]),
        (
            json!({"address": {"latLng": [1, 2, 3]}}),
            vec!["address.lat_lng"],
        ),
        (
            json!({"address": {"latLng": ["1", "2"]}}),
            vec!["address.lat_lng"],
        ),
        (
            json!({"address": {"latLng": "1,2"}}),
            vec!["address.lat_lng"],
        ),
        (
            json!({"address": {"geo": {"latitude": 1}}}),
            vec!["address.lat_lng"],
        ),
    ] {
        let expected: Vec<_> = fields.into_iter().map(wrong).collect();
        assert_eq!(violations_of(dropoff.clone()).await, expected, "{dropoff}");
    }
}

#[tokio::test]
async fn a_number_that_the_message_cannot_have_is_out_of_range() {
    for (dropoff, field) in [
        (
            json!({"packages": [{"quantity": -1}]}),
            "packages[0].quantity",
        ),
        (
            json!({"packages": [{"quantity": 4_294_967_296_i64}]}),
            "packages[0].quantity",
        ),
        (
            json!({"packages": [{"quantity": 1e30}]}),
            "packages[0].quantity",
        ),
        (json!({"weight": 1e30}), "weight"),
        (json!({"weight": u64::MAX}), "weight"),
    ] {
        let violations = violations_of(dropoff.clone()).await;

        let expected = (format!("dropoff.{field}"), "OUT_OF_RANGE".to_owned());
        assert_eq!(violations, [expected], "{dropoff}");
    }
}

#[tokio::test]
async fn an_absent_quantity_is_reported_as_required() {
    for package in [
        json!({"type": "XL"}),
        json!({"type": "XL", "quantity": null}),
    ] {
        let violations = violations_of(json!({"packages": [package]})).await;

        let expected = (
            "dropoff.packages[0].quantity".to_owned(),
            "REQUIRED".to_owned(),
        );
        assert_eq!(violations, [expected]);
    }
}

#[tokio::test]
async fn pickup_and_dropoff_are_objects() {
    let request = request_of(json!({"pickup": "here", "dropoff": 5})).await;

    let violation = |field: &str, description: &str| Violation {
        field: field.to_owned(),
        description: description.to_owned(),
        reason: "WRONG_TYPE".to_owned(),
    };
    assert_eq!(
        request,
        CreateDeliveryRequest {
            delivery: Some(DeliveryDraft::default()),
            violations: vec![
                violation("pickup", "must be an object, not a string"),
                violation("dropoff", "must be an object, not a number"),
            ],
            idempotency: None,
            store: String::new(),
        }
    );
}
