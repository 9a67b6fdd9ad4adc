//! Helpers for resources: their IRIs, deliveries to create and to complete, prices.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ApiClient, Courier};

/// The id of no resource.
pub(crate) const UNKNOWN_ID: &str = "01932e5c-9f4a-7000-8000-00000000000a";

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

/// The smallest valid draft, of a store with an address.
pub(crate) fn short_draft() -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" } })
}

/// Waits until the calculated price of a draft is `amount`; the timeout allows for a busy machine.
pub(crate) async fn wait_for_price(client: &ApiClient, draft: &Value, amount: i64) {
    let polling = async { while client.calculate(draft).await != amount {} };
    tokio::time::timeout(Duration::from_secs(30), polling)
        .await
        .unwrap_or_else(|_| panic!("the price did not become {amount} within 30 s"));
}

/// Creates a delivery and completes both its tasks, which causes two events; returns its IRI.
pub(crate) async fn deliver(client: &ApiClient, courier: &Courier) -> String {
    let delivery = client.create_delivery(draft()).await;
    for task in ["pickup", "dropoff"] {
        courier.complete(iri(&delivery[task])).await;
    }
    iri(&delivery).to_owned()
}
