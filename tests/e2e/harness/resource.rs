//! Helpers for resources: their IRIs, and deliveries to create and to complete.

use serde_json::{Value, json};

use super::{ApiClient, Courier};

/// The IRI of a resource.
#[track_caller]
pub(crate) fn iri(resource: &Value) -> &str {
    resource["@id"].as_str().unwrap()
}

/// What a shop posts to create a delivery; with a pickup address, so that a store without an address
/// can create it too.
pub(crate) fn draft() -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "2020-04-03 13:00" },
    })
}

/// Creates a delivery and completes both its tasks, which causes two events; returns its IRI.
pub(crate) async fn deliver(client: &ApiClient, courier: &Courier) -> String {
    let delivery = client.create_delivery(draft()).await;
    for task in ["pickup", "dropoff"] {
        courier.complete(iri(&delivery[task])).await;
    }
    iri(&delivery).to_owned()
}
