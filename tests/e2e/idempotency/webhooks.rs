//! What changes webhooks and what they are told.

use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{TWINS, assert_again, assert_one, assert_one_body, is_replay, post};
use crate::harness::{
    ApiClient, Platform, Twin, WebhookReceiver,
    assertions::{assert_error, assert_violations, json_ld},
    deliver, iri,
};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9/hook";

const EVENT: &str = "delivery.completed";

on_both_databases! {
    /// "`Idempotency-Key` on every writing POST": each action has the first answer for good,
    /// whatever became of the webhook since.
    async fn an_action_repeated_has_the_first_answer_and_does_nothing(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, NOWHERE).await;
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
            assert_again(first, &post(&client, &path(action), "k", &body).await);
        }

        let after = client.get(iri(&webhook)).await;
        assert_eq!(json_ld(&after, 200), json_ld(&before, 200));
        client.delete(iri(&webhook)).await.expect(204);
        for ((action, body), first) in actions().into_iter().zip(&first) {
            assert_again(first, &post(&client, &path(action), "k", &body).await);
            assert_error(&post(&client, &path(action), "other", &body).await, 404);
        }
    }

    /// "another body → 422 `idempotency_key_reused`", and another webhook, client or action has
    /// keys of its own.
    async fn a_key_is_for_one_action_on_one_webhook(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, NOWHERE).await;
        let other = client.create_webhook(EVENT, NOWHERE).await;
        for (action, body) in actions() {
            let path = |webhook: &Value| format!("{}/{action}", iri(webhook));
            let answers = [
                post(&client, &path(&webhook), "k", &body).await,
                post(&client, &path(&webhook), "K", &body).await,
                post(&client, &path(&other), "k", &body).await,
            ];
            for answer in answers {
                json_ld(&answer, 200);
                assert!(!is_replay(&answer), "{action}");
            }

            let mut otherwise = body.clone();
            otherwise["x"] = json!(1);
            let reused = post(&client, &path(&webhook), "k", &otherwise).await;
            assert_error(&reused, 422);
            assert_eq!(reused.json["code"], "idempotency_key_reused", "{action}");
            let wrong = post(&client, &path(&webhook), &"k".repeat(256), &body).await;
            assert_violations(&wrong, &["Idempotency-Key"]);
        }
    }

    /// "only successes are kept".
    async fn an_action_that_was_refused_leaves_its_key_free(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client.create_webhook(EVENT, NOWHERE).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        let since = json!({ "since": "2020-04-02T00:00:00Z" });
        client.post(&path("disable"), json!({})).await.expect(200);

        let refused = post(&client, &path("recover"), "k", &since).await;
        client.post(&path("enable"), json!({})).await.expect(200);
        let recovered = post(&client, &path("recover"), "k", &since).await;

        assert_error(&refused, 409);
        json_ld(&recovered, 200);
        assert!(!is_replay(&recovered));
    }

    /// "64 simultaneous requests with one key […] 64 equal answers": one secret, which is good.
    async fn simultaneous_rotations_with_one_key_rotate_once(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        let rotate = format!("{}/rotate_secret", iri(&webhook));
        let body = json!({ "overlap": 3600 });

        let answers = join_all((0..TWINS).map(|_| post(&client, &rotate, "k", &body))).await;

        let rotated = assert_one(&answers, 200);
        assert_eq!(rotated.header("cache-control"), "no-store");
        deliver(&client, &platform.courier().await).await;
        let told = receiver.next_notification().await;
        assert_eq!(told.header("webhook-signature").split(' ').count(), 2);
        let secret = rotated.json["secret"].as_str().unwrap();
        standardwebhooks::Webhook::new(secret)
            .unwrap()
            .verify(&told.body, &told.headers)
            .unwrap();
    }

    /// However many transactions it takes: what failed and what was missed is told once, and
    /// everybody hears how much that was.
    async fn simultaneous_recoveries_with_one_key_recover_once(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        receiver.answer_with(500);
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        until(&client, &webhook, "failed").await;
        client.post(&path("disable"), json!({})).await.expect(200);
        let missed = deliver(&client, &courier).await;
        client.post(&path("enable"), json!({})).await.expect(200);
        let since = json!({ "since": "2020-04-02T00:00:00Z" });

        let recover = path("recover");
        let answers = join_all((0..TWINS).map(|_| post(&client, &recover, "k", &since))).await;

        assert_eq!(assert_one(&answers, 200).json["recovered"], 2);
        let mut told = Vec::new();
        for _ in 0..2 {
            let notification = receiver.next_notification().await.json();
            told.push(notification["data"]["object"].as_str().unwrap().to_owned());
        }
        told.sort();
        let mut expected = vec![failed, missed];
        expected.sort();
        assert_eq!(told, expected);
        // They fail again, and a repetition does not have them sent once more.
        let again = post(&client, &recover, "k", &since).await;
        assert_eq!(again.json["recovered"], 2);
        assert!(is_replay(&again));
        assert!(receiver.so_far().await.is_empty());
    }

    /// A notification is sent once more, not once for each repetition.
    async fn a_notification_is_resent_once_for_a_key(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook(EVENT, receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let notification = until(&client, &webhook, "delivered").await;
        let resend = format!("{}/resend", iri(&notification));

        let nothing = json!({});
        let answers = join_all((0..TWINS).map(|_| post(&client, &resend, "k", &nothing))).await;

        let first_answer = assert_one(&answers, 200);
        assert_eq!(first_answer.json["state"], "pending");
        assert_eq!(receiver.next_notification().await.body, first.body);
        client
            .until(iri(&notification), |read| {
                (read["state"] == "delivered" && read["attemptCount"] == 2).then_some(())
            })
            .await;
        assert_again(first_answer, &post(&client, &resend, "k", &json!({})).await);
        assert_error(&post(&client, &resend, "k", &json!({ "x": 1 })).await, 422);
        let read = client.get(iri(&notification)).await.expect(200);
        assert_eq!((&read["state"], &read["attemptCount"]), (&json!("delivered"), &json!(2)));
        assert!(receiver.so_far().await.is_empty());
    }

    /// Who belongs to no store may repeat too.
    async fn an_operator_has_keys_too(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.client_of(&platform.operator_client, &["admin"]).await;
        let webhook = client.create_webhook(EVENT, NOWHERE).await;
        let disable = format!("{}/disable", iri(&webhook));

        let first = post(&operator, &disable, "k", &json!({})).await;
        let again = post(&operator, &disable, "k", &json!({})).await;
        let clients = post(&client, &disable, "k", &json!({})).await;

        assert_eq!(json_ld(&first, 200)["disabledReason"], "operator");
        assert_again(&first, &again);
        json_ld(&clients, 200);
        assert!(!is_replay(&clients));
    }
}

/// Two cores share nothing but PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_rotations_at_two_cores_rotate_once() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let clients = [twins[0].client().await, twins[1].client().await];
    let webhook = clients[0].create_webhook(EVENT, NOWHERE).await;
    let rotate = format!("{}/rotate_secret", iri(&webhook));
    let recover = format!("{}/recover", iri(&webhook));
    let (nothing, since) = (json!({}), json!({ "since": "2020-04-02T00:00:00Z" }));

    let rotated = (0..TWINS).map(|turn| post(&clients[turn % 2], &rotate, "k", &nothing));
    assert_one_body(&join_all(rotated).await, 200);
    let recovered = (0..TWINS).map(|turn| post(&clients[turn % 2], &recover, "k", &since));
    assert_one_body(&join_all(recovered).await, 200);

    for twin in twins {
        twin.stop().await;
    }
}

/// What can be done to a webhook, in an order in which each does something, and with what.
fn actions() -> [(&'static str, Value); 5] {
    [
        ("disable", json!({})),
        ("enable", json!({})),
        ("rotate_secret", json!({ "overlap": 3600 })),
        ("confirm_secret", json!({})),
        ("recover", json!({ "since": "2020-04-02T00:00:00Z" })),
    ]
}

/// The one notification of a webhook, once it is in a state.
async fn until(client: &ApiClient, webhook: &Value, state: &str) -> Value {
    let path = format!("{}/notifications?state={state}", iri(webhook));
    client
        .until(&path, |page| page["hydra:member"].get(0).cloned())
        .await
}
