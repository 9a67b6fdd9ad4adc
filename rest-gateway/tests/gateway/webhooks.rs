//! `/api/webhooks` (specification, "Webhook").

use http::Method;
use proto::{
    CreateWebhookRequest, DeleteWebhookRequest, DeleteWebhookResponse, DisableWebhookRequest,
    GetWebhookRequest, RotateWebhookSecretRequest, Violation, Webhook, webhook::DisabledReason,
};
use serde_json::json;

use crate::harness::{
    PUBLIC_URL, Platform,
    samples::{ID, NOON, instant},
};

/// [`NOON`] in the time zone of the shop.
const NOON_IN_PARIS: &str = "2020-04-02T12:00:00+02:00";

fn webhook(secret: &str) -> Webhook {
    Webhook {
        name: format!("webhooks/{ID}"),
        event: "delivery.completed".to_owned(),
        url: "https://shop.example/hook".to_owned(),
        secret: secret.to_owned(),
        create_time: instant(NOON),
        time_zone: "Europe/Paris".to_owned(),
        ..Webhook::default()
    }
}

#[tokio::test]
async fn a_created_webhook_shows_its_secret() {
    let platform = Platform::start().await;
    platform.core.will_respond(webhook("c2VjcmV0"));

    let body = json!({"event": "delivery.completed", "url": "https://shop.example/hook", "x": 1});
    let reply = platform
        .client
        .post("/api/webhooks", body.to_string())
        .await;

    assert_eq!(reply.status, 201);
    assert_eq!(
        reply.header("location"),
        Some(format!("{PUBLIC_URL}/api/webhooks/{ID}").as_str())
    );
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/Webhook",
            "@id": format!("/api/webhooks/{ID}"),
            "@type": "Webhook",
            "id": ID,
            "url": "https://shop.example/hook",
            "event": "delivery.completed",
            "secret": "c2VjcmV0",
            "secretOverlapEndsAt": null,
            "enabled": true,
            "disabledAt": null,
            "disabledReason": null,
            "warnings": [{
                "propertyPath": "x",
                "message": "is ignored: there is no such member",
                "code": "unknown_member",
            }],
        })
    );
    assert_eq!(
        platform.core.received::<CreateWebhookRequest>(),
        CreateWebhookRequest {
            event: "delivery.completed".to_owned(),
            url: "https://shop.example/hook".to_owned(),
            violations: vec![],
            idempotency: None,
        }
    );
}

#[tokio::test]
async fn violations_of_a_webhook_are_sent_to_core() {
    let platform = Platform::start().await;
    platform.core.will_respond(webhook(""));

    platform
        .client
        .post(
            "/api/webhooks",
            r#"{"event": ["delivery.completed"], "url": null}"#,
        )
        .await;

    assert_eq!(
        platform.core.received::<CreateWebhookRequest>(),
        CreateWebhookRequest {
            event: String::new(),
            url: String::new(),
            violations: vec![Violation {
                field: "event".to_owned(),
                description: "must be a string, not an array".to_owned(),
                reason: "WRONG_TYPE".to_owned(),
            }],
            idempotency: None,
        }
    );
}

#[tokio::test]
async fn a_webhook_is_returned_without_its_secret() {
    let platform = Platform::start().await;
    platform.core.will_respond(webhook(""));

    let reply = platform.client.get(&format!("/api/webhooks/{ID}")).await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/Webhook",
            "@id": format!("/api/webhooks/{ID}"),
            "@type": "Webhook",
            "id": ID,
            "url": "https://shop.example/hook",
            "event": "delivery.completed",
            "secretOverlapEndsAt": null,
            "enabled": true,
            "disabledAt": null,
            "disabledReason": null,
        })
    );
    assert_eq!(
        platform.core.received::<GetWebhookRequest>().name,
        format!("webhooks/{ID}")
    );
}

#[tokio::test]
async fn a_deleted_webhook_is_204_without_body() {
    let platform = Platform::start().await;
    platform.core.will_respond(DeleteWebhookResponse {});

    let path = format!("/api/webhooks/{ID}");
    let reply = platform.client.method(Method::DELETE, &path).await;

    assert_eq!((reply.status.as_u16(), reply.text()), (204, ""));
    assert_eq!(reply.header("content-type"), None);
    assert_eq!(
        platform.core.received::<DeleteWebhookRequest>().name,
        format!("webhooks/{ID}")
    );
}

#[tokio::test]
async fn a_rotation_returns_the_new_secret_and_the_end_of_the_overlap() {
    let platform = Platform::start().await;
    platform.core.will_respond(Webhook {
        overlap_end_time: instant(NOON),
        ..webhook("c2VjcmV0")
    });

    let path = format!("/api/webhooks/{ID}/rotate_secret");
    let reply = platform.client.post(&path, r#"{"overlap": 3600.0}"#).await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let shown = reply.json();
    assert_eq!(shown["secret"], "c2VjcmV0");
    assert_eq!(shown["secretOverlapEndsAt"], NOON_IN_PARIS);
    assert_eq!(
        platform.core.received::<RotateWebhookSecretRequest>(),
        RotateWebhookSecretRequest {
            name: format!("webhooks/{ID}"),
            overlap_seconds: Some(3600),
            violations: vec![],
            idempotency: None,
        }
    );
}

#[tokio::test]
async fn the_body_of_a_rotation_is_optional_and_validated() {
    let platform = Platform::start().await;
    let path = format!("/api/webhooks/{ID}/rotate_secret");
    for (body, violations) in [
        ("", vec![]),
        ("{}", vec![]),
        (
            r#"{"overlap": "1 day"}"#,
            vec![Violation {
                field: "overlap_seconds".to_owned(),
                description: "must be a whole number, not a string".to_owned(),
                reason: "WRONG_TYPE".to_owned(),
            }],
        ),
    ] {
        platform.core.will_respond(webhook("c2VjcmV0"));

        platform.client.post(&path, body).await;

        assert_eq!(
            platform.core.received::<RotateWebhookSecretRequest>(),
            RotateWebhookSecretRequest {
                name: format!("webhooks/{ID}"),
                overlap_seconds: None,
                violations,
                idempotency: None,
            },
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_disabled_webhook_shows_since_when_and_why() {
    let platform = Platform::start().await;
    for (reason, expected) in [
        (DisabledReason::Client, "client"),
        (DisabledReason::Operator, "operator"),
        (DisabledReason::Gone, "gone"),
        (DisabledReason::Failing, "failing"),
    ] {
        platform.core.will_respond(Webhook {
            disable_time: instant(NOON),
            disabled_reason: reason.into(),
            ..webhook("")
        });

        let path = format!("/api/webhooks/{ID}/disable");
        let reply = platform.client.post(&path, "").await;

        assert_eq!(reply.status, 200);
        let shown = reply.json();
        assert_eq!(shown["enabled"], false);
        assert_eq!(shown["disabledAt"], NOON_IN_PARIS);
        assert_eq!(shown["disabledReason"], expected);
        assert_eq!(
            platform.core.received::<DisableWebhookRequest>().name,
            format!("webhooks/{ID}")
        );
    }
}
