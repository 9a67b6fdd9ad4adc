//! Actions on webhooks and their notifications.

use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    CONCURRENT_REQUESTS, assert_one_effect, assert_one_effect_in_bodies, assert_replayed,
    is_replay, post,
};
use crate::harness::{
    ApiClient, Platform, WebhookReceiver,
    assertions::{assert_error, assert_violations, json_ld},
    deliver, iri,
};

/// A URL without a listener.
const UNREACHABLE: &str = "http://127.0.0.1:9/hook";

const EVENT: &str = "delivery.completed";

on_both_databases! {
    /// Also after the webhook changed or was deleted.
    async fn a_repeated_action_gets_the_first_response_and_has_no_effect(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, UNREACHABLE).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        let mut first = Vec::new();
        for (action, body) in actions() {
            first.push(post(&client, &path(action), "k", &body).await);
            platform.advance(SignedDuration::from_mins(1));
        }
        assert_eq!(first[0].json["enabled"], false);
        assert_eq!(first[1].json["enabled"], true);
        assert_eq!(first[2].json["secret"].as_str().unwrap().len(), 44);
        assert_eq!(first[3].json["secretOverlapEndsAt"], json!(null));
        assert_eq!(first[4].json["recovered"], 0);
        let before = client.get(iri(&webhook)).await;

        for ((action, body), first) in actions().into_iter().zip(&first) {
            json_ld(first, 200);
            assert_replayed(first, &post(&client, &path(action), "k", &body).await);
        }

        let after = client.get(iri(&webhook)).await;
        assert_eq!(json_ld(&after, 200), json_ld(&before, 200));
        client.delete(iri(&webhook)).await.expect(204);
        for ((action, body), first) in actions().into_iter().zip(&first) {
            assert_replayed(first, &post(&client, &path(action), "k", &body).await);
            assert_error(&post(&client, &path(action), "other", &body).await, 404);
        }
    }

    /// With another body a key is rejected. Keys of different webhooks and actions are independent.
    async fn a_key_is_scoped_to_one_action_on_one_webhook(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, UNREACHABLE).await;
        let other = client.create_webhook(EVENT, UNREACHABLE).await;
        for (action, body) in actions() {
            let path = |webhook: &Value| format!("{}/{action}", iri(webhook));
            let responses = [
                post(&client, &path(&webhook), "k", &body).await,
                post(&client, &path(&webhook), "K", &body).await,
                post(&client, &path(&other), "k", &body).await,
            ];
            for response in responses {
                json_ld(&response, 200);
                assert!(!is_replay(&response), "{action}");
            }

            let mut changed = body.clone();
            changed["x"] = json!(1);
            let reused = post(&client, &path(&webhook), "k", &changed).await;
            assert_error(&reused, 422);
            assert_eq!(reused.json["code"], "idempotency_key_reused", "{action}");
            let too_long = post(&client, &path(&webhook), &"k".repeat(256), &body).await;
            assert_violations(&too_long, &["Idempotency-Key"]);
        }
    }

    /// Only successful responses are stored.
    async fn a_rejected_action_does_not_use_its_key(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, UNREACHABLE).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        let since = json!({ "since": "2020-04-02T00:00:00Z" });
        client.post(&path("disable"), json!({})).await.expect(200);

        let rejected = post(&client, &path("recover"), "k", &since).await;
        client.post(&path("enable"), json!({})).await.expect(200);
        let recovered = post(&client, &path("recover"), "k", &since).await;

        assert_error(&rejected, 409);
        json_ld(&recovered, 200);
        assert!(!is_replay(&recovered));
    }

    /// Every response has the same secret, which is valid.
    async fn concurrent_rotations_with_one_key_rotate_once(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        let rotate = format!("{}/rotate_secret", iri(&webhook));
        let body = json!({ "overlap": 3600 });

        let responses = join_all((0..CONCURRENT_REQUESTS).map(|_| post(&client, &rotate, "k", &body))).await;

        let rotated = assert_one_effect(&responses, 200);
        assert_eq!(rotated.header("cache-control"), "no-store");
        deliver(&client, &platform.courier().await).await;
        let notification = receiver.next_notification().await;
        assert_eq!(notification.header("webhook-signature").split(' ').count(), 2);
        let secret = rotated.json["secret"].as_str().unwrap();
        assert!(notification.has_standard_signature(secret));
    }

    /// Failed and missed events are enqueued once, however many transactions that takes, and every
    /// response has their number.
    async fn concurrent_recoveries_with_one_key_recover_once(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        receiver.respond_with(500);
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        notification_in_state(&client, &webhook, "failed").await;
        client.post(&path("disable"), json!({})).await.expect(200);
        let missed = deliver(&client, &courier).await;
        client.post(&path("enable"), json!({})).await.expect(200);
        let since = json!({ "since": "2020-04-02T00:00:00Z" });

        let recover = path("recover");
        let responses = join_all((0..CONCURRENT_REQUESTS).map(|_| post(&client, &recover, "k", &since))).await;

        assert_eq!(assert_one_effect(&responses, 200).json["recovered"], 2);
        let mut objects = Vec::new();
        for _ in 0..2 {
            let notification = receiver.next_notification().await.json();
            objects.push(notification["data"]["object"].as_str().unwrap().to_owned());
        }
        objects.sort();
        let mut expected = vec![failed, missed];
        expected.sort();
        assert_eq!(objects, expected);
        // They fail again, and a replay does not resend them.
        let again = post(&client, &recover, "k", &since).await;
        assert_eq!(again.json["recovered"], 2);
        assert!(is_replay(&again));
        let next = deliver(&client, &courier).await;
        assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
        assert!(receiver.received().await.is_empty());
    }

    async fn concurrent_resends_with_one_key_resend_once(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let notification = notification_in_state(&client, &webhook, "delivered").await;
        let resend = format!("{}/resend", iri(&notification));

        let nothing = json!({});
        let responses = join_all((0..CONCURRENT_REQUESTS).map(|_| post(&client, &resend, "k", &nothing))).await;

        let first_response = assert_one_effect(&responses, 200);
        assert_eq!(first_response.json["state"], "pending");
        assert_eq!(receiver.next_notification().await.body, first.body);
        client
            .wait_until(iri(&notification), |read| {
                (read["state"] == "delivered" && read["attemptCount"] == 2).then_some(())
            })
            .await;
        assert_replayed(first_response, &post(&client, &resend, "k", &json!({})).await);
        assert_error(&post(&client, &resend, "k", &json!({ "x": 1 })).await, 422);
        let read = client.get(iri(&notification)).await.expect(200);
        assert_eq!((&read["state"], &read["attemptCount"]), (&json!("delivered"), &json!(2)));
        assert!(receiver.received().await.is_empty());
    }

    /// A key belongs to an API client; the operator's client has no store.
    async fn an_operators_keys_are_separate_from_the_clients(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.client_for(&platform.operator_client, &["admin"]).await;
        let webhook = client.create_webhook(EVENT, UNREACHABLE).await;
        let disable = format!("{}/disable", iri(&webhook));

        let first = post(&operator, &disable, "k", &json!({})).await;
        let again = post(&operator, &disable, "k", &json!({})).await;
        let by_client = post(&client, &disable, "k", &json!({})).await;

        assert_eq!(json_ld(&first, 200)["disabledReason"], "operator");
        assert_replayed(&first, &again);
        json_ld(&by_client, 200);
        assert!(!is_replay(&by_client));
    }
}

/// Two cores that share only PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_actions_on_two_cores_take_effect_once() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let clients = [platforms[0].client().await, platforms[1].client().await];
    let webhook = clients[0].create_webhook(EVENT, UNREACHABLE).await;
    let rotate = format!("{}/rotate_secret", iri(&webhook));
    let recover = format!("{}/recover", iri(&webhook));
    let (nothing, since) = (json!({}), json!({ "since": "2020-04-02T00:00:00Z" }));

    let rotated =
        (0..CONCURRENT_REQUESTS).map(|index| post(&clients[index % 2], &rotate, "k", &nothing));
    assert_one_effect_in_bodies(&join_all(rotated).await, 200);
    let recovered =
        (0..CONCURRENT_REQUESTS).map(|index| post(&clients[index % 2], &recover, "k", &since));
    assert_one_effect_in_bodies(&join_all(recovered).await, 200);

    Platform::stop_both(platforms).await;
}

/// Actions on a webhook with their bodies, in an order in which each succeeds.
fn actions() -> [(&'static str, Value); 5] {
    [
        ("disable", json!({})),
        ("enable", json!({})),
        ("rotate_secret", json!({ "overlap": 3600 })),
        ("confirm_secret", json!({})),
        ("recover", json!({ "since": "2020-04-02T00:00:00Z" })),
    ]
}

/// Waits for the only notification of a webhook to reach a state and returns it.
async fn notification_in_state(client: &ApiClient, webhook: &Value, state: &str) -> Value {
    let path = format!("{}/notifications?state={state}", iri(webhook));
    client
        .wait_until(&path, |page| page["hydra:member"].get(0).cloned())
        .await
}
