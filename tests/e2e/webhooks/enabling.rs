//! Disabling a webhook for a while, and enabling it again.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri};
use crate::harness::{
    ApiClient, Platform, WebhookReceiver,
    assertions::{assert_error, json_ld},
};

on_both_databases! {
    /// "An event […] goes to every **enabled** webhook": one that is disabled hears of nothing,
    /// not even of what was owed, and after it is enabled of what happens from then on.
    async fn a_disabled_webhook_is_told_nothing_until_it_is_enabled(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let [receiver, kept] = [
            WebhookReceiver::start().await,
            WebhookReceiver::start().await,
        ];
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        client.create_webhook("delivery.completed", kept.url()).await;
        receiver.answer_with(500);
        deliver(&client, &courier).await;
        receiver.next_notification().await;
        kept.next_notification().await;

        act(&client, &webhook, "disable").await;
        receiver.answer_with(204);
        for _ in 0..3 {
            platform.advance(SignedDuration::from_mins(10));
            deliver(&client, &courier).await;
            kept.next_notification().await;
        }
        act(&client, &webhook, "enable").await;
        platform.advance(SignedDuration::from_mins(10));
        let last = deliver(&client, &courier).await;

        let told = receiver.next_notification().await;
        assert_eq!(told.json()["data"]["object"], last);
        assert!(receiver.so_far().await.is_empty());
    }

    /// The webhook says since when and why; what is done twice changes nothing.
    async fn a_webhook_says_since_when_and_why_it_is_disabled(platform: &Platform) {
        let client = platform.client().await;
        let mut enabled = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;
        enabled.as_object_mut().unwrap().remove("secret");
        let mut disabled = enabled.clone();
        disabled["enabled"] = json!(false);
        disabled["disabledAt"] = json!("2020-04-02T11:00:00+02:00");
        disabled["disabledReason"] = json!("client");

        for _ in 0..2 {
            assert_eq!(act(&client, &enabled, "disable").await, disabled);
            assert_eq!(json_ld(&client.get(iri(&enabled)).await, 200), disabled);
            platform.advance(SignedDuration::from_secs(60));
        }
        for _ in 0..2 {
            assert_eq!(act(&client, &enabled, "enable").await, enabled);
            assert_eq!(json_ld(&client.get(iri(&enabled)).await, 200), enabled);
        }
    }

    /// What is on its way when a webhook is disabled is not tried again, even if it is enabled by
    /// the time it fails; and delivered if it does not.
    async fn what_is_on_its_way_to_a_disabled_webhook_is_dropped_or_delivered(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        for (status, state) in [(500, "dropped"), (204, "delivered")] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
            receiver.answer_with(status);
            receiver.hold_answers(true);
            deliver(&client, &courier).await;
            let told = receiver.next_notification().await;
            let notification = format!("/api/notifications/{}", told.header("webhook-id"));

            act(&client, &webhook, "disable").await;
            let dropped = client.get(&notification).await.expect(200);
            assert_eq!((&dropped["state"], &dropped["nextAttemptAt"]), (&json!("dropped"), &Value::Null));
            act(&client, &webhook, "enable").await;
            receiver.hold_answers(false);

            let ended = client
                .until(&notification, |read| {
                    (read["attempts"].get(0).is_some()).then_some(read)
                })
                .await;
            assert_eq!(ended["state"], state);
            assert_eq!(ended["attempts"][0]["statusCode"], status);
            receiver.answer_with(204);
            platform.advance(SignedDuration::from_mins(10));
            let next = deliver(&client, &courier).await;
            assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.so_far().await.is_empty());
            client.delete(iri(&webhook)).await.expect(204);
        }
    }

    /// "The operator is told (event `webhook.disabled` on the internal stream, log, metric)".
    async fn the_log_of_events_has_every_webhook_that_the_platform_disables(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let mut disabled = Vec::new();
        let mut days_later = None;
        for (status, reason) in [(410, "gone"), (500, "failing")] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
            receiver.answer_with(status);
            deliver(&client, &courier).await;
            receiver.next_notification().await;
            if reason == "failing" {
                let failed = format!("{}/notifications?state=failed", iri(&webhook));
                client
                    .until(&failed, |page| page["hydra:member"].get(0).map(|_| ()))
                    .await;
                platform.advance(SignedDuration::from_hours(5 * 24));
                days_later = Some(platform.client().await);
            }
            let read = until_disabled(days_later.as_ref().unwrap_or(&client), &webhook).await;
            assert_eq!(read["disabledReason"], reason);
            disabled.push(iri(&webhook).to_owned());
        }

        let told = days_later
            .unwrap()
            .until("/api/events", |page| {
                let events = page["hydra:member"].as_array().unwrap().iter();
                let told: Vec<_> = events
                    .filter(|event| event["event"] == "webhook.disabled")
                    .map(|event| event["object"].as_str().unwrap().to_owned())
                    .collect();
                (told.len() >= disabled.len()).then_some(told)
            })
            .await;
        assert_eq!(told, disabled);
    }

    /// 410 disables; the shop may enable it again.
    async fn a_webhook_whose_receiver_was_gone_can_be_enabled_again(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.answer_with(410);
        deliver(&client, &courier).await;
        receiver.next_notification().await;
        let read = until_disabled(&client, &webhook).await;
        assert_eq!(read["disabledReason"], "gone");
        receiver.answer_with(204);

        act(&client, &webhook, "enable").await;

        let next = deliver(&client, &courier).await;
        let told = receiver.next_notification().await;
        assert_eq!(told.json()["data"]["object"], next);
    }

    /// "A resource of another store answers 404": whatever is asked of it.
    async fn nobody_else_disables_or_enables_a_webhook(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let operator = platform.operator().await;
        let colleague = operator.create_client(&platform.store, &["tasks"]).await;
        let colleague = platform.client_of(&colleague, &["tasks"]).await;
        let webhook = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;

        for action in ["disable", "enable"] {
            let path = format!("{}/{action}", iri(&webhook));
            for other in [&other, &colleague] {
                assert_error(&other.post(&path, json!({})).await, 404);
            }
            assert_error(&platform.stranger().post(&path, json!({})).await, 401);
            let unknown = format!("/api/webhooks/01932e5c-9f4a-7000-8000-00000000000a/{action}");
            assert_error(&client.post(&unknown, json!({})).await, 404);
        }
        assert_eq!(client.get(iri(&webhook)).await.expect(200)["enabled"], true);
    }
}

async fn act(client: &ApiClient, webhook: &Value, action: &str) -> Value {
    let path = format!("{}/{action}", iri(webhook));
    json_ld(&client.post(&path, json!({})).await, 200)
}

/// The webhook, once the platform has heard that its receiver is gone.
async fn until_disabled(client: &ApiClient, webhook: &Value) -> Value {
    client
        .until(iri(webhook), |read| {
            (read["enabled"] == json!(false)).then_some(read)
        })
        .await
}
