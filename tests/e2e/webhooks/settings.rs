//! The operator's settings: how long a webhook may fail without a success, and how long
//! notifications are retained.

use std::time::Duration;

use delivery::Settings;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri, wait_for_attempts};
use crate::harness::{ApiClient, Database, Platform, WebhookReceiver};

/// A platform with adjusted settings on each available database.
async fn platforms(adjust: fn(&mut Settings)) -> Vec<Platform> {
    let mut platforms = Vec::new();
    for database in Database::each() {
        platforms.push(Platform::start_with(database, adjust).await);
    }
    platforms
}

fn retain_for_a_day(settings: &mut Settings) {
    settings.webhooks.notification_retention = Duration::from_hours(24);
}

/// The default is 5 days.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_disabled_once_it_has_only_failed_for_the_configured_time() {
    for platform in
        platforms(|settings| settings.webhooks.webhook_disable_after = Duration::from_hours(48))
            .await
    {
        let receiver = WebhookReceiver::start().await;
        receiver.respond_with(500);
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        deliver(&client, &platform.courier().await).await;
        let mut states = Vec::new();
        for (attempts, hours) in (1..).zip([0, 47, 1]) {
            platform.advance(SignedDuration::from_hours(hours));
            let client = platform.client().await;
            wait_for_attempts(&client, &webhook, attempts).await;
            let read = client.get(iri(&webhook)).await.expect(200);
            states.push((read["enabled"].clone(), read["disabledReason"].clone()));
        }
        let enabled = (Value::Bool(true), Value::Null);
        let disabled = (Value::Bool(false), "failing".into());
        assert_eq!(states, [enabled.clone(), enabled, disabled]);
        platform.stop().await;
    }
}

/// Pending notifications stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_notification_is_removed_after_the_configured_time() {
    for platform in platforms(retain_for_a_day).await {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        deliver(&client, &platform.courier().await).await;
        let finished = receiver.next_notification().await;
        let finished = format!("/api/notifications/{}", finished.header("webhook-id"));
        client
            .wait_until(&finished, |read| {
                (read["state"] == "delivered").then_some(())
            })
            .await;
        // Due only after the end of the test.
        receiver.respond_with_header(503, "retry-after", "86400");
        platform.advance(SignedDuration::from_hours(2));
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        let pending = receiver.next_notification().await;
        let pending = format!("/api/notifications/{}", pending.header("webhook-id"));
        wait_for_attempts(&client, &webhook, 1).await;

        platform.advance(SignedDuration::from_hours(21));
        let client = platform.client().await;
        client.get(&finished).await.expect(200);
        platform.advance(SignedDuration::from_hours(1) + SignedDuration::from_secs(1));

        let client = platform.client().await;
        let path = format!("{}/notifications", iri(&webhook));
        let retained = client
            .wait_until(&path, |page| {
                let retained = page["hydra:member"].as_array().unwrap().clone();
                (retained.len() == 1).then_some(retained)
            })
            .await;
        assert_eq!(retained[0]["@id"], pending);
        assert_eq!(client.get(&finished).await.status, 404);
        platform.stop().await;
    }
}

/// Retention applies to finished notifications: older failed ones are still recovered, and so are the
/// events that a disabled webhook missed. Each is enqueued once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_notifications_and_missed_events_older_than_the_retention_are_recovered() {
    for platform in platforms(retain_for_a_day).await {
        let receiver = WebhookReceiver::start().await;
        receiver.respond_with_header(503, "retry-after", "86400");
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let path = |of: &str| format!("{}/{of}", iri(&webhook));
        let since = || json!({ "since": "2020-04-01T00:00:00Z" });
        let wait_for_count = async |client: &ApiClient, count: usize| {
            let all = |page: Value| {
                let members = page["hydra:member"].as_array().unwrap();
                (members.len() == count).then_some(())
            };
            client.wait_until(&path("notifications"), all).await;
        };
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        wait_for_attempts(&client, &webhook, 1).await;
        // Makes the second attempt due, but not the third.
        platform.advance(SignedDuration::from_hours(48));
        receiver.next_notification().await;
        let client = platform.client().await;
        wait_for_attempts(&client, &webhook, 2).await;
        receiver.respond_with(204);

        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 1, "the failed one");
        receiver.next_notification().await;
        wait_for_attempts(&client, &webhook, 3).await;

        client.post(&path("disable"), json!({})).await.expect(200);
        platform.advance(SignedDuration::from_mins(1));
        let client = platform.client().await;
        let missed = deliver(&client, &platform.courier().await).await;
        platform.advance(SignedDuration::from_hours(48));
        let client = platform.client().await;
        client.post(&path("enable"), json!({})).await.expect(200);
        wait_for_count(&client, 0).await;
        platform.advance(SignedDuration::from_mins(1));
        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 1, "the missed one");
        let notification = receiver.next_notification().await.json();
        assert_eq!(notification["data"]["object"], missed);
        wait_for_attempts(&client, &webhook, 1).await;

        platform.advance(SignedDuration::from_hours(25));
        let client = platform.client().await;
        wait_for_count(&client, 0).await;
        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 0, "it was already enqueued");
        assert!(receiver.received().await.is_empty());
        platform.stop().await;
    }
}

/// Only the notification shows that an event was sent. Events from just before a webhook was disabled
/// are therefore not recovered once their notifications are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sent_event_is_not_recovered_once_its_notification_is_removed() {
    for platform in platforms(retain_for_a_day).await {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let path = |of: &str| format!("{}/{of}", iri(&webhook));
        platform.advance(SignedDuration::from_secs(1));
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        wait_for_attempts(&client, &webhook, 1).await;
        platform.advance(SignedDuration::from_secs(1));
        for action in ["disable", "enable"] {
            client.post(&path(action), json!({})).await.expect(200);
        }

        platform.advance(SignedDuration::from_hours(24));
        let client = platform.client().await;
        client
            .wait_until(&path("notifications"), |page| {
                let members = page["hydra:member"].as_array().unwrap();
                members.is_empty().then_some(())
            })
            .await;
        let since = json!({ "since": "2020-04-01T00:00:00Z" });
        let recovered = client.post(&path("recover"), since).await.expect(200);

        assert_eq!(recovered["recovered"], 0);
        assert!(receiver.received().await.is_empty());
        platform.stop().await;
    }
}
