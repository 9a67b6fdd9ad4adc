//! "Signature": the platform signature and that of Standard Webhooks, over the exact bytes sent.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hyper::HeaderMap;
use sha2::Sha256;

use super::{deliver, draft, iri};
use crate::harness::{Notification, Platform, WebhookReceiver};

on_both_databases! {
    /// "The service sends an HTTP POST to the registered `url`, with the notification as body":
    /// compact, slashes escaped, Content-Type `application/json`, signed both ways.
    async fn a_notification_is_a_signed_post_of_exactly_these_bytes(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let url = format!("{}?shop=1&x=%20y", receiver.url());
        let mut secrets = Vec::new();
        for event in ["delivery.picked", "delivery.completed"] {
            let webhook = client.create_webhook(event, &url).await;
            secrets.push((event, webhook["secret"].as_str().unwrap().to_owned()));
        }
        let delivery = client.create_delivery(draft()).await;
        let id = delivery["id"].as_str().unwrap();

        for ((event, secret), task) in secrets.iter().zip(["pickup", "dropoff"]) {
            courier.complete(iri(&delivery[task])).await;
            let notification = receiver.next_notification().await;

            assert_eq!(
                String::from_utf8_lossy(&notification.body),
                format!(r#"{{"data":{{"object":"\/api\/deliveries\/{id}","event":"{event}"}}}}"#)
            );
            assert_eq!(notification.method, "POST");
            assert_eq!(notification.path, "/hook?shop=1&x=%20y");
            assert_eq!(notification.header("content-type"), "application/json");
            assert_signed(&notification, secret);
        }
    }

    /// "keyed with the webhook's `secret`": each webhook's own.
    async fn each_notification_is_signed_with_its_webhooks_secret_only(platform: &Platform) {
        let client = platform.client().await;
        let receivers = [
            WebhookReceiver::start().await,
            WebhookReceiver::start().await,
        ];
        let mut secrets = Vec::new();
        for receiver in &receivers {
            let webhook = client
                .create_webhook("delivery.completed", receiver.url())
                .await;
            secrets.push(webhook["secret"].as_str().unwrap().to_owned());
        }

        deliver(&client, &platform.courier().await).await;

        let [first, second] = [
            receivers[0].next_notification().await,
            receivers[1].next_notification().await,
        ];
        assert_eq!(first.body, second.body);
        assert_signed(&first, &secrets[0]);
        assert_signed(&second, &secrets[1]);
        assert!(!first.is_signed_with(&secrets[1]) && !second.is_signed_with(&secrets[0]));
        assert!(!first.has_standard_signature(&secrets[1]) && !second.has_standard_signature(&secrets[0]));
    }
}

/// The specification's test vector, against the harness's check.
#[test]
fn the_harness_verifies_the_specifications_test_vector() {
    let mut headers = HeaderMap::new();
    let signature = "S9LMKpq4VBDEGm5umbQx/q4SQMnpX/Wz/719dBBZ3rI=";
    headers.insert("x-service-signature", signature.parse().unwrap());
    let body = br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.picked"}}"#;
    let published = Notification {
        method: "POST".to_owned(),
        path: "/".to_owned(),
        headers,
        body: Bytes::from_static(body),
    };

    assert!(published.is_signed_with("123456"));
    assert!(!published.is_signed_with("123457"));
}

/// Fails unless both signatures are valid, by our own computation and by the Standard Webhooks
/// library.
#[track_caller]
fn assert_signed(notification: &Notification, secret: &str) {
    assert!(notification.is_signed_with(secret));
    assert_eq!(
        notification
            .headers
            .get_all("x-service-signature")
            .iter()
            .count(),
        1
    );

    let id = notification.header("webhook-id");
    let timestamp = notification.header("webhook-timestamp");
    assert!(!id.is_empty() && !id.contains('.'), "{id}");
    timestamp.parse::<u32>().unwrap();
    let body = std::str::from_utf8(&notification.body).unwrap();
    let key = STANDARD.decode(secret).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(notification.header("webhook-signature"), expected);
    assert!(notification.has_standard_signature(secret));

    let mut altered = notification.clone();
    altered.body = Bytes::from(body.replace("delivery.", "delivery,"));
    assert!(!altered.is_signed_with(secret) && !altered.has_standard_signature(secret));
}
