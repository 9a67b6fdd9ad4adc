//! `DELETE /api/webhooks/{id}`: what remains of a webhook's notifications. The API no longer shows
//! them, so the test reads the table.

use serde_json::json;

use super::{create_proven_webhook, deliver, iri, wait_for_attempts};
use crate::harness::{Platform, WebhookReceiver, run_sql};

/// The state of every notification that was not delivered.
const STATES: &str = "SELECT webhook_id, delivery_id, state, finished_at IS NOT NULL
    FROM notifications WHERE state <> 'delivered' ORDER BY webhook_id, delivery_id";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_webhook_cancels_its_notifications_and_no_others() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let client = platform.client().await;
    let courier = platform.courier().await;
    let receiver = WebhookReceiver::start().await;
    let event = "delivery.completed";
    let deleted = create_proven_webhook(&client, &courier, &receiver).await;
    let kept = client.create_webhook(event, receiver.url()).await;
    receiver.respond_with(500);
    let pending = deliver(&client, &courier).await;
    for webhook in [&deleted, &kept] {
        let failed = wait_for_attempts(&client, webhook, 1).await;
        assert_eq!(failed["state"], json!("failed"));
        receiver.next_notification().await;
    }
    receiver.hold_responses(true);
    let in_flight = deliver(&client, &courier).await;
    for _ in [&deleted, &kept] {
        receiver.next_notification().await;
    }

    client.delete(iri(&deleted)).await.expect(204);

    let row = |webhook, delivery: &str, state: &str| {
        let [webhook, delivery] = [iri(webhook), delivery].map(id);
        format!("{webhook}|{delivery}|{state}\n")
    };
    assert_eq!(
        run_sql(&url, STATES).await,
        [
            row(&deleted, &pending, "cancelled|t"),
            row(&deleted, &in_flight, "cancelled|t"),
            row(&kept, &pending, "pending|f"),
            row(&kept, &in_flight, "leased|f"),
        ]
        .concat()
    );
    receiver.hold_responses(false);
    platform.stop().await;
}

/// The id in an IRI.
fn id(iri: &str) -> &str {
    iri.rsplit('/').next().unwrap()
}
