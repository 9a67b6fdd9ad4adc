//! Rotation of a webhook's secret, with an overlap in which both secrets sign.

use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri};
use crate::harness::{
    ApiClient, Notification, Platform, WebhookReceiver,
    assertions::{assert_violations, json_ld},
};

/// A shop with a webhook and its receiver.
struct Shop<'p> {
    platform: &'p Platform,
    receiver: WebhookReceiver,
    webhook: Value,
}

impl<'p> Shop<'p> {
    async fn open(platform: &'p Platform) -> Self {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        Self {
            webhook: client
                .create_webhook("delivery.completed", receiver.url())
                .await,
            platform,
            receiver,
        }
    }

    /// A client with a new token: tokens expire during the test.
    async fn client(&self) -> ApiClient {
        self.platform.client().await
    }

    fn first_secret(&self) -> String {
        secret(&self.webhook)
    }

    /// Rotates the secret and returns the webhook with the new one.
    async fn rotate(&self, body: Value) -> Value {
        let response = self.post("rotate_secret", body).await;
        assert_eq!(response.header("cache-control"), "no-store");
        json_ld(&response, 200)
    }

    async fn post(&self, action: &str, body: Value) -> crate::harness::Response {
        let path = format!("{}/{action}", iri(&self.webhook));
        self.client().await.post(&path, body).await
    }

    async fn next_notification(&self) -> Notification {
        deliver(&self.client().await, &self.platform.courier().await).await;
        self.receiver.next_notification().await
    }
}

on_both_databases! {
    /// By default for 24 h. `webhook-signature` has both signatures; `X-…-Signature` is made with
    /// the old secret until the overlap ends.
    async fn both_secrets_sign_until_the_overlap_ends(platform: &Platform) {
        let shop = Shop::open(platform).await;
        let old = shop.first_secret();

        let rotated = shop.rotate(json!({})).await;

        let new = secret(&rotated);
        assert_ne!(new, old);
        let mut expected = shop.webhook.clone();
        expected["secret"] = json!(new);
        expected["secretOverlapEndsAt"] = json!("2020-04-03T11:00:00+02:00");
        assert_eq!(rotated, expected);
        expected.as_object_mut().unwrap().remove("secret");
        let read = json_ld(&shop.client().await.get(iri(&rotated)).await, 200);
        assert_eq!(read, expected, "the secret is shown once");
        assert_signed(&shop.next_notification().await, &[&old, &new]);
        platform.advance(SignedDuration::from_hours(24) - SignedDuration::from_secs(1));
        assert_signed(&shop.next_notification().await, &[&old, &new]);

        platform.advance(SignedDuration::from_secs(1));
        assert_signed(&shop.next_notification().await, &[&new]);
        let read = json_ld(&shop.client().await.get(iri(&rotated)).await, 200);
        assert_eq!(read["secretOverlapEndsAt"], json!(null));
    }

    /// `POST …/confirm_secret` ends the overlap, and may be repeated.
    async fn a_confirmed_secret_signs_alone(platform: &Platform) {
        let shop = Shop::open(platform).await;
        let rotated = shop.rotate(json!({ "overlap": 604_800 })).await;
        assert_eq!(rotated["secretOverlapEndsAt"], "2020-04-09T11:00:00+02:00");
        let mut expected = rotated.clone();
        expected.as_object_mut().unwrap().remove("secret");
        expected["secretOverlapEndsAt"] = json!(null);

        for _ in 0..2 {
            assert_eq!(json_ld(&shop.post("confirm_secret", json!({})).await, 200), expected);
            assert_signed(&shop.next_notification().await, &[&secret(&rotated)]);
        }
    }

    /// An overlap of 0, for a leaked secret.
    async fn without_an_overlap_all_old_secrets_are_invalid_at_once(platform: &Platform) {
        let shop = Shop::open(platform).await;
        let second = shop.rotate(json!({ "overlap": 3600 })).await;

        let third = shop.rotate(json!({ "overlap": 0 })).await;

        assert_eq!(third["secretOverlapEndsAt"], json!(null));
        assert_ne!(secret(&third), secret(&second));
        assert_signed(&shop.next_notification().await, &[&secret(&third)]);
    }

    /// Rotating again during an overlap keeps every secret, for a client whose response was lost and
    /// for one that already uses the second secret.
    async fn after_a_second_rotation_during_an_overlap_every_secret_signs(platform: &Platform) {
        let shop = Shop::open(platform).await;
        let second = shop.rotate(json!({})).await;
        platform.advance(SignedDuration::from_hours(20));

        let third = shop.rotate(json!({})).await;

        assert_eq!(third["secretOverlapEndsAt"], "2020-04-04T07:00:00+02:00");
        let (first, second, third) = (shop.first_secret(), secret(&second), secret(&third));
        platform.advance(SignedDuration::from_hours(23));
        assert_signed(&shop.next_notification().await, &[&first, &second, &third]);
        platform.advance(SignedDuration::from_hours(1));
        assert_signed(&shop.next_notification().await, &[&third]);
    }

    async fn an_overlap_is_a_number_of_seconds_up_to_a_week(platform: &Platform) {
        let shop = Shop::open(platform).await;
        for overlap in [
            json!(-1),
            json!(604_801),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(0.5),
            json!(1e300),
            json!("1 day"),
            json!(true),
            json!([]),
        ] {
            let response = shop.post("rotate_secret", json!({ "overlap": overlap })).await;
            assert_violations(&response, &["overlap"]);
        }
        let invalid = shop.post("rotate_secret", json!([1])).await;
        assert_eq!((invalid.status, invalid.violation_paths()), (400, vec![""]));
        assert_signed(&shop.next_notification().await, &[&shop.first_secret()]);
    }

    async fn secrets_of_concurrent_rotations_all_sign(platform: &Platform) {
        let shop = Shop::open(platform).await;

        let rotated = join_all((0..3).map(|_| shop.rotate(json!({})))).await;

        let notification = shop.next_notification().await;
        assert!(notification.is_signed_with(&shop.first_secret()));
        assert_eq!(count_signatures(&notification), 4);
        for webhook in &rotated {
            assert!(notification.has_standard_signature(&secret(webhook)));
        }
        let (rotated, confirmed) = tokio::join!(
            shop.rotate(json!({})),
            shop.post("confirm_secret", json!({}))
        );
        confirmed.expect(200);
        let notification = shop.next_notification().await;
        assert!(notification.has_standard_signature(&secret(&rotated)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_concurrent_rotations_on_two_cores_all_sign() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let clients = [platforms[0].client().await, platforms[1].client().await];
    let board = platforms[0].dispatch_board().await;
    let receiver = WebhookReceiver::start().await;
    let webhook = clients[0]
        .create_webhook("delivery.completed", receiver.url())
        .await;
    let path = format!("{}/rotate_secret", iri(&webhook));

    let rotated = join_all(clients.iter().map(|client| client.post(&path, json!({})))).await;

    let delivery = clients[0].create_delivery(super::draft()).await;
    for task in ["pickup", "dropoff"] {
        let done = format!("{}/done", iri(&delivery[task]));
        board.put(&done, json!({})).await.expect(200);
    }
    let notification = receiver.next_notification().await;
    assert!(notification.is_signed_with(&secret(&webhook)));
    assert_eq!(count_signatures(&notification), 3);
    for response in rotated {
        let webhook = response.expect(200);
        assert!(notification.has_standard_signature(&secret(&webhook)));
    }
    Platform::stop_both(platforms).await;
}

/// Asserts that the platform signature is made with the first secret, and the Standard Webhooks
/// signatures with exactly these secrets.
#[track_caller]
fn assert_signed(notification: &Notification, secrets: &[&str]) {
    assert!(notification.is_signed_with(secrets[0]));
    assert_eq!(count_signatures(notification), secrets.len());
    for secret in secrets {
        assert!(notification.has_standard_signature(secret));
    }
}

/// The number of signatures, "separated by a space".
fn count_signatures(notification: &Notification) -> usize {
    notification.header("webhook-signature").split(' ').count()
}

fn secret(webhook: &Value) -> String {
    webhook["secret"].as_str().unwrap().to_owned()
}
