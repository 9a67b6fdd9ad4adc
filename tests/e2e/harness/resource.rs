//! Helpers for resources in responses.

use serde_json::{Value, json};

use super::{ApiClient, Courier};

/// The IRI of a resource.
#[track_caller]
pub(crate) fn iri(resource: &Value) -> &str {
    resource["@id"].as_str().unwrap()
}

/// A delivery with a pickup address, so that a store without an address can create it too.
pub(crate) fn order() -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "2020-04-03 13:00" },
    })
}

/// Creates a delivery and completes both its tasks, which causes two events; returns its IRI.
pub(crate) async fn deliver(client: &ApiClient, courier: &Courier) -> String {
    let delivery = client.create_delivery(order()).await;
    for task in ["pickup", "dropoff"] {
        courier.complete(iri(&delivery[task])).await;
    }
    iri(&delivery).to_owned()
}
