//! What an operator sets: how long a webhook may only fail, and what has ended is kept.

use delivery::Settings;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri, once_tried};
use crate::harness::{ApiClient, Database, Platform, WebhookReceiver};

/// A platform on each database there is, with settings of its own.
async fn platforms(adjust: fn(&mut Settings)) -> Vec<Platform> {
    let mut platforms = Vec::new();
    for database in std::iter::once(Database::sqlite()).chain(Database::postgres()) {
        platforms.push(Platform::start_with(database, adjust).await);
    }
    platforms
}

/// "Auto-disable when a webhook has only failed for 5 days (configurable)".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_disabled_once_it_has_only_failed_for_as_long_as_is_set() {
    for platform in platforms(|settings| settings.webhooks.webhook_disable_after = 2).await {
        let receiver = WebhookReceiver::start().await;
        receiver.answer_with(500);
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        deliver(&client, &platform.courier().await).await;
        let mut is_enabled = Vec::new();
        for (attempts, hours) in (1..).zip([0, 47, 1]) {
            platform.advance(SignedDuration::from_hours(hours));
            let client = platform.client().await;
            once_tried(&client, &webhook, attempts).await;
            let read = client.get(iri(&webhook)).await.expect(200);
            is_enabled.push((read["enabled"].clone(), read["disabledReason"].clone()));
        }
        let yes = (Value::Bool(true), Value::Null);
        let no = (Value::Bool(false), "failing".into());
        assert_eq!(is_enabled, [yes.clone(), yes, no]);
        platform.stop().await;
    }
}

/// "Finished notifications and attempts are removed by state and age": what is still owed stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_is_removed_once_it_was_kept_for_as_long_as_is_set() {
    for platform in platforms(|settings| settings.webhooks.notification_retention = 1).await {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        deliver(&client, &platform.courier().await).await;
        let ended = receiver.next_notification().await;
        let ended = format!("/api/notifications/{}", ended.header("webhook-id"));
        client
            .until(&ended, |read| (read["state"] == "delivered").then_some(()))
            .await;
        // Due again after so long that it is not tried meanwhile.
        receiver.ask_to_come_again(503, "86400");
        platform.advance(SignedDuration::from_hours(2));
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        let owed = receiver.next_notification().await;
        let owed = format!("/api/notifications/{}", owed.header("webhook-id"));
        once_tried(&client, &webhook, 1).await;

        platform.advance(SignedDuration::from_hours(21));
        let client = platform.client().await;
        client.get(&ended).await.expect(200);
        platform.advance(SignedDuration::from_hours(1) + SignedDuration::from_secs(1));

        let client = platform.client().await;
        let path = format!("{}/notifications", iri(&webhook));
        let kept = client
            .until(&path, |page| {
                let kept = page["hydra:member"].as_array().unwrap().clone();
                (kept.len() == 1).then_some(kept)
            })
            .await;
        assert_eq!(kept[0]["@id"], owed);
        assert_eq!(client.get(&ended).await.status, 404);
        platform.stop().await;
    }
}

/// What is kept is what has ended: what failed longer ago is there still, and so is the log of
/// what a disabled webhook surely was not told of. That is owed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_or_was_missed_is_recovered_longer_ago_than_what_has_ended_is_kept() {
    for platform in platforms(|settings| settings.webhooks.notification_retention = 1).await {
        let receiver = WebhookReceiver::start().await;
        receiver.ask_to_come_again(503, "86400");
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let path = |of: &str| format!("{}/{of}", iri(&webhook));
        let since = || json!({ "since": "2020-04-01T00:00:00Z" });
        let kept = async |client: &ApiClient, count: usize| {
            let all = |page: Value| {
                let kept = page["hydra:member"].as_array().unwrap().len();
                (kept == count).then_some(())
            };
            client.until(&path("notifications"), all).await;
        };
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        once_tried(&client, &webhook, 1).await;
        // Due again within so long, and then once more.
        platform.advance(SignedDuration::from_hours(48));
        receiver.next_notification().await;
        let client = platform.client().await;
        once_tried(&client, &webhook, 2).await;
        receiver.answer_with(204);

        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 1, "it failed");
        receiver.next_notification().await;
        once_tried(&client, &webhook, 3).await;

        client.post(&path("disable"), json!({})).await.expect(200);
        platform.advance(SignedDuration::from_mins(1));
        let client = platform.client().await;
        let missed = deliver(&client, &platform.courier().await).await;
        platform.advance(SignedDuration::from_hours(48));
        let client = platform.client().await;
        client.post(&path("enable"), json!({})).await.expect(200);
        kept(&client, 0).await;
        platform.advance(SignedDuration::from_mins(1));
        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 1, "it was missed");
        let told = receiver.next_notification().await.json();
        assert_eq!(told["data"]["object"], missed);
        once_tried(&client, &webhook, 1).await;

        platform.advance(SignedDuration::from_hours(25));
        let client = platform.client().await;
        kept(&client, 0).await;
        let recovered = client.post(&path("recover"), since()).await.expect(200);
        assert_eq!(recovered["recovered"], 0, "it was owed");
        assert!(receiver.so_far().await.is_empty());
        platform.stop().await;
    }
}

/// Only its notification tells that an event was told, also one of just before a webhook was
/// disabled: where those are removed, such are left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_is_not_recovered_once_its_notification_is_removed() {
    for platform in platforms(|settings| settings.webhooks.notification_retention = 1).await {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let path = |of: &str| format!("{}/{of}", iri(&webhook));
        platform.advance(SignedDuration::from_secs(1));
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        once_tried(&client, &webhook, 1).await;
        platform.advance(SignedDuration::from_secs(1));
        for action in ["disable", "enable"] {
            client.post(&path(action), json!({})).await.expect(200);
        }

        platform.advance(SignedDuration::from_hours(24));
        let client = platform.client().await;
        client
            .until(&path("notifications"), |page| {
                let kept = page["hydra:member"].as_array().unwrap();
                kept.is_empty().then_some(())
            })
            .await;
        let since = json!({ "since": "2020-04-01T00:00:00Z" });
        let recovered = client.post(&path("recover"), since).await.expect(200);

        assert_eq!(recovered["recovered"], 0);
        assert!(receiver.so_far().await.is_empty());
        platform.stop().await;
    }
}
