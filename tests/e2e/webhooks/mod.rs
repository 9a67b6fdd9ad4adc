//! "Webhooks" and "Events": registration, notifications, signatures.

mod clock;
mod deleting;
mod dispatcher_streams;
mod enabling;
mod fairness;
mod history;
mod notifications;
mod quota;
mod registering;
mod retrying;
mod secret_rotation;
mod settings;
mod signatures;
mod test_send;

use serde_json::Value;

use crate::harness::{ApiClient, deliver, draft, iri};

/// The newest notification of a webhook, once it has this many attempts.
async fn wait_for_attempts(client: &ApiClient, webhook: &Value, attempts: u32) -> Value {
    let path = format!("{}/notifications", iri(webhook));
    client
        .wait_until(&path, |page| {
            let newest = page["hydra:member"].get(0)?;
            (newest["attemptCount"] == attempts).then(|| newest.clone())
        })
        .await
}
