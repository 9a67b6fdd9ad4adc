//! Disabling and enabling a webhook.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri};
use crate::harness::{
    ApiClient, Platform, WebhookReceiver,
    all_in_one::stderr,
    assertions::{assert_error, json_ld},
};

on_both_databases! {
    /// "An event […] goes to every **enabled** webhook": a disabled one gets no notification, its
    /// pending ones are cancelled, and once enabled it gets those of later events.
    async fn a_disabled_webhook_is_not_notified_until_it_is_enabled(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let [receiver, other_receiver] = [
            WebhookReceiver::start().await,
            WebhookReceiver::start().await,
        ];
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        client.create_webhook("delivery.completed", other_receiver.url()).await;
        receiver.respond_with(500);
        deliver(&client, &courier).await;
        receiver.next_notification().await;
        other_receiver.next_notification().await;

        post_action(&client, &webhook, "disable").await;
        receiver.respond_with(204);
        for _ in 0..3 {
            platform.advance(SignedDuration::from_mins(10));
            deliver(&client, &courier).await;
            other_receiver.next_notification().await;
        }
        post_action(&client, &webhook, "enable").await;
        platform.advance(SignedDuration::from_mins(10));
        let last = deliver(&client, &courier).await;

        let notification = receiver.next_notification().await;
        assert_eq!(notification.json()["data"]["object"], last);
        assert!(receiver.received().await.is_empty());
    }

    /// The webhook shows time and reason; repeating the action changes nothing.
    async fn a_disabled_webhook_shows_time_and_reason(platform: &Platform) {
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
            assert_eq!(post_action(&client, &enabled, "disable").await, disabled);
            assert_eq!(json_ld(&client.get(iri(&enabled)).await, 200), disabled);
            platform.advance(SignedDuration::from_secs(60));
        }
        for _ in 0..2 {
            assert_eq!(post_action(&client, &enabled, "enable").await, enabled);
            assert_eq!(json_ld(&client.get(iri(&enabled)).await, 200), enabled);
        }
    }

    /// A notification in flight when its webhook is disabled is not retried, even if the webhook is
    /// enabled before the attempt fails. If the attempt succeeds, it is delivered.
    async fn a_notification_in_flight_to_a_disabled_webhook_is_cancelled_or_delivered(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        for (status, state) in [(500, "cancelled"), (204, "delivered")] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
            receiver.respond_with(status);
            receiver.hold_responses(true);
            deliver(&client, &courier).await;
            let request = receiver.next_notification().await;
            let notification = format!("/api/notifications/{}", request.header("webhook-id"));

            post_action(&client, &webhook, "disable").await;
            let cancelled = client.get(&notification).await.expect(200);
            assert_eq!((&cancelled["state"], &cancelled["nextAttemptAt"]), (&json!("cancelled"), &Value::Null));
            post_action(&client, &webhook, "enable").await;
            receiver.hold_responses(false);

            let ended = client
                .wait_until(&notification, |read| {
                    (read["attempts"].get(0).is_some()).then_some(read)
                })
                .await;
            assert_eq!(ended["state"], state);
            assert_eq!(ended["attempts"][0]["statusCode"], status);
            receiver.respond_with(204);
            platform.advance(SignedDuration::from_mins(10));
            let next = deliver(&client, &courier).await;
            assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.received().await.is_empty());
            client.delete(iri(&webhook)).await.expect(204);
        }
    }

    /// As the event `webhook.disabled`.
    async fn the_event_log_contains_every_webhook_that_the_platform_disables(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let mut disabled = Vec::new();
        let mut later_client = None;
        for (status, reason) in [(410, "gone"), (500, "failing")] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
            receiver.respond_with(status);
            deliver(&client, &courier).await;
            receiver.next_notification().await;
            if reason == "failing" {
                let failed = format!("{}/notifications?state=failed", iri(&webhook));
                client
                    .wait_until(&failed, |page| page["hydra:member"].get(0).map(|_| ()))
                    .await;
                platform.advance(SignedDuration::from_hours(5 * 24));
                // The token of `client` has expired.
                later_client = Some(platform.client().await);
            }
            let read = wait_until_disabled(later_client.as_ref().unwrap_or(&client), &webhook).await;
            assert_eq!(read["disabledReason"], reason);
            disabled.push(iri(&webhook).to_owned());
        }

        let logged = later_client
            .unwrap()
            .wait_until("/api/events", |page| {
                let events = page["hydra:member"].as_array().unwrap().iter();
                let logged: Vec<_> = events
                    .filter(|event| event["event"] == "webhook.disabled")
                    .map(|event| event["object"].as_str().unwrap().to_owned())
                    .collect();
                (logged.len() >= disabled.len()).then_some(logged)
            })
            .await;
        assert_eq!(logged, disabled);
    }

    /// A 410 disables a webhook; the shop may enable it again.
    async fn a_webhook_whose_receiver_was_gone_can_be_enabled_again(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.respond_with(410);
        deliver(&client, &courier).await;
        receiver.next_notification().await;
        let read = wait_until_disabled(&client, &webhook).await;
        assert_eq!(read["disabledReason"], "gone");
        receiver.respond_with(204);

        post_action(&client, &webhook, "enable").await;

        let next = deliver(&client, &courier).await;
        let notification = receiver.next_notification().await;
        assert_eq!(notification.json()["data"]["object"], next);
    }

    /// To keep a client from creating another webhook, the operator disables the client.
    async fn a_client_cannot_enable_a_webhook_that_the_operator_disabled(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;
        let id = webhook["id"].as_str().unwrap();
        let operator = async |action| platform.run_delivery_json(&["webhooks", action, id]).await;

        // Also if the client disabled it first, or disables it again.
        post_action(&client, &webhook, "disable").await;
        assert_eq!(operator("disable").await["disabled_reason"], "operator");
        post_action(&client, &webhook, "disable").await;
        let enable = format!("{}/enable", iri(&webhook));
        let rejected = client.post(&enable, json!({})).await;
        assert_error(&rejected, 409);
        assert_eq!(
            rejected.json["detail"],
            "the platform's operator disabled the webhook; only the operator can enable it"
        );
        assert_eq!(rejected.json["code"], "webhook_disabled_by_operator");
        let read = client.get(iri(&webhook)).await.expect(200);
        assert_eq!(read["disabledReason"], "operator");

        assert_eq!(operator("enable").await["disabled_reason"], Value::Null);
        post_action(&client, &webhook, "disable").await;
        assert_eq!(post_action(&client, &webhook, "enable").await["enabled"], true);
    }

    /// The receivers of a leaked client get no notification after the client is disabled; those of
    /// the store's other clients do.
    async fn the_webhooks_of_a_disabled_client_are_disabled_with_it(platform: &Platform) {
        let operator = platform.operator().await;
        let leaked = operator.create_client(&platform.store, &["tasks"]).await;
        let leaked_client = platform.client_for(&leaked, &["tasks"]).await;
        let (client, courier) = (platform.client().await, platform.courier().await);
        let [leaked_receiver, receiver] = [
            WebhookReceiver::start().await,
            WebhookReceiver::start().await,
        ];
        leaked_receiver.respond_with(500);
        let webhook = leaked_client
            .create_webhook("delivery.completed", leaked_receiver.url())
            .await;
        let disabled = leaked_client
            .create_webhook("delivery.completed", leaked_receiver.url())
            .await;
        post_action(&leaked_client, &disabled, "disable").await;
        client.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&client, &courier).await;
        leaked_receiver.next_notification().await;
        receiver.next_notification().await;

        let name = operator.client_name(&leaked).await;
        let disable = ["clients", "disable", name.trim_start_matches("api_apps/")];
        let printed = platform.run_delivery_json(&disable).await;
        assert_eq!(printed["disabled_webhooks"], 1);
        assert_eq!(platform.run_delivery_json(&disable).await["disabled_webhooks"], 0);

        for _ in 0..3 {
            platform.advance(SignedDuration::from_mins(10));
            let delivery = deliver(&client, &courier).await;
            let notification = receiver.next_notification().await;
            assert_eq!(notification.json()["data"]["object"], delivery);
        }
        assert!(leaked_receiver.received().await.is_empty());
        let id = webhook["id"].as_str().unwrap();
        let enable = ["webhooks", "enable", id];
        let rejected = platform.run_delivery_output(&enable).await;
        assert_eq!(
            stderr(&rejected),
            "the webhook's client is disabled; create a webhook with another client\n"
        );
        let store = platform.store.trim_start_matches("stores/");
        let listed = platform
            .run_delivery_json(&["webhooks", "list", "--store", store])
            .await;
        let reasons: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| &webhook["disabled_reason"])
            .collect();
        assert_eq!(reasons, [&json!("operator"), &json!("client"), &Value::Null]);
    }
}

/// A core accepts a token for up to a minute after its client was disabled at another core.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_another_core_disabled_creates_no_webhook() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let client = platforms[1].client().await;
    client.get("/api/webhooks").await.expect(200);

    let operator = platforms[0].operator().await;
    operator.disable_client(&platforms[0].demo_client).await;
    client.get("/api/webhooks").await.expect(200);
    let draft = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/" });
    let rejected = client.post("/api/webhooks", draft).await;

    assert_error(&rejected, 401);
    Platform::stop_both(platforms).await;
}

async fn post_action(client: &ApiClient, webhook: &Value, action: &str) -> Value {
    let path = format!("{}/{action}", iri(webhook));
    json_ld(&client.post(&path, json!({})).await, 200)
}

/// The webhook, once the platform has disabled it.
async fn wait_until_disabled(client: &ApiClient, webhook: &Value) -> Value {
    client
        .wait_until(iri(webhook), |read| {
            (read["enabled"] == json!(false)).then_some(read)
        })
        .await
}
