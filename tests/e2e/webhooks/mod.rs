//! "Webhooks" and "Events": registering, what is told to whom, and how it is signed.

mod clock;
mod enabling;
mod fairness;
mod flags;
mod insight;
mod notifications;
mod registering;
mod retrying;
mod rotating;
mod signatures;
mod testing;

use serde_json::{Value, json};

use crate::harness::{ApiClient, Courier};

/// A delivery with a pickup address of its own, so that any store can create it.
fn order() -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "2020-04-03 13:00" },
    })
}

/// Creates a delivery, completes both its tasks and gives its IRI.
async fn deliver(client: &ApiClient, courier: &Courier) -> String {
    let delivery = client.create_delivery(order()).await;
    for task in ["pickup", "dropoff"] {
        courier.complete(iri(&delivery[task])).await;
    }
    iri(&delivery).to_owned()
}

fn iri(resource: &Value) -> &str {
    resource["@id"].as_str().unwrap()
}

/// The newest notification of a webhook, once so many of its attempts have ended.
async fn once_tried(client: &ApiClient, webhook: &Value, attempts: u32) -> Value {
    let path = format!("{}/notifications", iri(webhook));
    client
        .until(&path, |page| {
            let told = page["hydra:member"].get(0)?;
            (told["attemptCount"] == attempts).then(|| told.clone())
        })
        .await
}
