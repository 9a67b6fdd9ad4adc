//! "Webhooks" and "Events": registration, notifications, signatures.

mod clock;
mod counting_receiver;
mod deleting;
mod dispatcher_requests;
mod dispatcher_streams;
mod enabling;
mod fairness;
mod history;
mod languages;
mod notifications;
mod proven_webhooks;
mod quota;
mod registering;
mod retrying;
mod secret_rotation;
mod settings;
mod shares;
mod signatures;
mod stalled_dispatcher;
mod test_send;

use serde_json::Value;

use crate::harness::{ApiClient, Courier, WebhookReceiver, deliver, draft, iri};

/// Creates a webhook for completed deliveries, whose receiver has accepted a notification of another
/// one: so it gets several at once.
async fn create_proven_webhook(
    client: &ApiClient,
    courier: &Courier,
    receiver: &WebhookReceiver,
) -> Value {
    let event = "delivery.completed";
    let other = client.create_webhook(event, receiver.url()).await;
    deliver(client, courier).await;
    receiver.next_notification().await;
    wait_for_attempts(client, &other, 1).await;
    let webhook = client.create_webhook(event, receiver.url()).await;
    client.delete(iri(&other)).await.expect(204);
    webhook
}

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
