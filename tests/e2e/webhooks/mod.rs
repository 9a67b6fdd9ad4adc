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

use serde_json::Value;

use crate::harness::{ApiClient, deliver, iri, order};

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
