//! `/api/webhooks` (specification, "Webhook").

use http::Method;
use proto::{
    CreateWebhookRequest, DeleteWebhookRequest, DeleteWebhookResponse, GetWebhookRequest,
    Violation, Webhook,
};
use serde_json::json;

use crate::harness::{
    PUBLIC_URL, Platform,
    samples::{ID, NOON, instant},
};

fn webhook(secret: &str) -> Webhook {
    Webhook {
        name: format!("webhooks/{ID}"),
        event: "delivery.completed".to_owned(),
        url: "https://shop.example/hook".to_owned(),
        secret: secret.to_owned(),
        create_time: instant(NOON),
    }
}

#[tokio::test]
async fn a_created_webhook_shows_its_secret() {
    let platform = Platform::start().await;
    platform.core.will_answer(webhook("c2VjcmV0"));

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
async fn what_is_wrong_with_a_webhook_is_left_to_core_to_add_to() {
    let platform = Platform::start().await;
    platform.core.will_answer(webhook(""));

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
                description: "must be a text, not an array".to_owned(),
                reason: "WRONG_TYPE".to_owned(),
            }],
            idempotency: None,
        }
    );
}

#[tokio::test]
async fn a_webhook_is_read_without_secret() {
    let platform = Platform::start().await;
    platform.core.will_answer(webhook(""));

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
    platform.core.will_answer(DeleteWebhookResponse {});

    let path = format!("/api/webhooks/{ID}");
    let reply = platform.client.method(Method::DELETE, &path).await;

    assert_eq!((reply.status.as_u16(), reply.text()), (204, ""));
    assert_eq!(reply.header("content-type"), None);
    assert_eq!(
        platform.core.received::<DeleteWebhookRequest>().name,
        format!("webhooks/{ID}")
    );
}
