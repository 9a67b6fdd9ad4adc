//! Sample messages of core, and the JSON that the gateway makes of them.

use std::collections::HashMap;

use proto::{Address, Delivery, DistanceSource, LatLng, Package, Price, Task, task};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

pub(crate) const ID: &str = "01932e5c-9f4a-7000-8000-000000000001";

/// 2020-04-02T12:00:00+02:00
pub(crate) const NOON: i64 = 1_585_821_600;

/// An instant with a fraction of a second, which the API does not show.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub(crate) fn instant(seconds: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp {
        seconds,
        nanos: 123_000_000,
    })
}

/// A status with the details that core sends.
pub(crate) fn core_status(code: Code, reason: &str, message: &str) -> Status {
    core_status_with(code, reason, message, ErrorDetails::new())
}

pub(crate) fn core_status_with(
    code: Code,
    reason: &str,
    message: &str,
    mut details: ErrorDetails,
) -> Status {
    let metadata = match code {
        Code::PermissionDenied => HashMap::from([("scope".to_owned(), "tasks:all".to_owned())]),
        _ => HashMap::new(),
    };
    details.set_error_info(reason, proto::ERROR_DOMAIN, metadata);
    Status::with_error_details(code, message, details)
}

pub(crate) fn task(kind: task::Kind) -> Task {
    Task {
        name: format!("tasks/{ID}"),
        delivery: format!("deliveries/{ID}"),
        kind: kind.into(),
        status: task::Status::Todo.into(),
        address: Some(Address {
            name: format!("addresses/{ID}"),
            street_address: "24 Rue de la Paix, 75002 Paris".to_owned(),
            lat_lng: Some(LatLng {
                latitude: 48.869_5,
                longitude: 2.331_2,
            }),
            place_name: Some("Chez Zoé".to_owned()),
            telephone: Some("+33612345678".to_owned()),
            ..Address::default()
        }),
        after: instant(NOON - 900),
        before: instant(NOON),
        comments: String::new(),
        weight: Some(1500),
        packages: vec![Package {
            r#type: "XL".to_owned(),
            quantity: 2,
        }],
        tags: vec!["cold".to_owned()],
        metadata: HashMap::from([("order".to_owned(), "42".to_owned())]),
        time_zone: "Europe/Paris".to_owned(),
        create_time: instant(NOON - 7200),
        update_time: instant(NOON - 3600),
        complete_time: None,
        cancel_time: None,
        state: task::State::Todo.into(),
        state_time: instant(NOON - 7200),
        failure_reason: String::new(),
        ..Task::default()
    }
}

pub(crate) fn task_json(kind: &str) -> Value {
    json!({
        "@id": format!("/api/tasks/{ID}"),
        "@type": "Task",
        "id": ID,
        "type": kind,
        "status": "TODO",
        "state": "TODO",
        "address": {
            "@id": format!("/api/addresses/{ID}"),
            "@type": "http://schema.org/Place",
            "geo": {"@type": "GeoCoordinates", "latitude": 48.8695, "longitude": 2.3312},
            "streetAddress": "24 Rue de la Paix, 75002 Paris",
            "telephone": "+33612345678",
            "name": "Chez Zoé",
            "contactName": null,
            "description": null,
            "postalCode": null,
            "addressLocality": null,
            "addressCountry": null,
        },
        "after": "2020-04-02T11:45:00+02:00",
        "before": "2020-04-02T12:00:00+02:00",
        "doneAfter": "2020-04-02T11:45:00+02:00",
        "doneBefore": "2020-04-02T12:00:00+02:00",
        "comments": "",
        "weight": 1500,
        "packages": [{"type": "XL", "quantity": 2}],
        "tags": ["cold"],
        "metadata": {"order": "42"},
        "createdAt": "2020-04-02T10:00:00+02:00",
        "updatedAt": "2020-04-02T11:00:00+02:00",
        "cancelledAt": null,
    })
}

pub(crate) fn price() -> Price {
    Price {
        net_amount: 416,
        tax_amount: 83,
        currency_code: "EUR".to_owned(),
    }
}

pub(crate) fn delivery() -> Delivery {
    Delivery {
        name: format!("deliveries/{ID}"),
        pickup: Some(task(task::Kind::Pickup)),
        dropoff: Some(task(task::Kind::Dropoff)),
        distance_meters: 1234,
        duration_seconds: 567,
        distance_source: DistanceSource::Osrm.into(),
        price: Some(price()),
        time_zone: "Europe/Paris".to_owned(),
        create_time: instant(NOON),
        cancel_time: None,
        retail_price: "retail_prices/quote".to_owned(),
        external_reference: None,
        warnings: Vec::new(),
        state: proto::delivery::State::Created.into(),
        store: String::new(),
        store_display_name: String::new(),
        tracking_url: String::new(),
    }
}

pub(crate) fn delivery_json() -> Value {
    json!({
        "@context": "/api/contexts/Delivery",
        "@id": format!("/api/deliveries/{ID}"),
        "@type": "http://schema.org/ParcelDelivery",
        "id": ID,
        "state": "created",
        "pickup": task_json("PICKUP"),
        "dropoff": task_json("DROPOFF"),
        "distance": 1234,
        "duration": 567,
        "distanceSource": "osrm",
        "trackingUrl": null,
        "price": {
            "amount": 499,
            "currency": "EUR",
            "tax": {"amount": 83, "included": true},
            "retailPrice": "/api/retail_prices/quote",
        },
        "cancelledAt": null,
        "externalReference": null,
    })
}
