//! `Idempotency-Key`: requests to core and replayed responses.

use http::Method;
use proto::{
    CancelDeliveryRequest, ConfirmWebhookSecretRequest, CreateDeliveryRequest,
    CreateWebhookRequest, DisableWebhookRequest, EnableWebhookRequest, Idempotency,
    RecoverWebhookRequest, RecoverWebhookResponse, ResendWebhookNotificationRequest,
    RotateWebhookSecretRequest, Violation, Webhook, WebhookNotification, webhook_notification,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tonic::Code;
use tonic_types::ErrorDetails;

use crate::harness::{
    Client, FakeCore, Gateway, Platform, Reply,
    client::JSON_LD,
    samples::{ID, NOON, core_status, core_status_with, delivery, delivery_json, instant},
};

async fn post(client: &Client, path: &str, keys: &[&str], body: &str) -> Reply {
    let mut request = client
        .request(Method::POST, path)
        .header("content-type", JSON_LD);
    for key in keys {
        request = request.header("idempotency-key", *key);
    }
    client.send(request, body.to_owned()).await
}

fn webhook() -> Webhook {
    Webhook {
        name: format!("webhooks/{ID}"),
        ..Webhook::default()
    }
}

#[tokio::test]
async fn core_receives_the_key_and_a_hash_of_method_url_and_body() {
    let platform = Platform::start().await;
    let unknown = Violation {
        field: "x".to_owned(),
        description: "is unknown; there are no parameters".to_owned(),
        reason: "UNKNOWN_PARAMETER".to_owned(),
    };
    for (path, body, unknown_parameters) in [
        (
            "/api/webhooks",
            "{\"event\": \"delivery.completed\"}",
            vec![],
        ),
        (
            "/api/webhooks",
            "{\"event\":\"delivery.completed\"}",
            vec![],
        ),
        (
            "/api/webhooks?x=1",
            "{\"event\":\"delivery.completed\"}",
            vec![unknown],
        ),
    ] {
        platform.core.will_respond(webhook());

        let reply = post(&platform.client, path, &["order 42"], body).await;

        assert_eq!(reply.status, 201);
        assert_eq!(reply.header("idempotent-replayed"), None);
        assert_eq!(
            platform.core.received::<CreateWebhookRequest>(),
            CreateWebhookRequest {
                event: "delivery.completed".to_owned(),
                url: String::new(),
                violations: unknown_parameters.clone(),
                idempotency: Some(Idempotency {
                    key: "order 42".to_owned(),
                    request_hash: Sha256::digest(format!("POST\n{path}\n{body}")).to_vec(),
                }),
            }
        );
    }
}

#[tokio::test]
async fn a_replayed_response_is_marked_and_otherwise_identical() {
    let platform = Platform::start().await;
    platform.core.will_respond(delivery());
    platform.core.will_replay(delivery());

    let first = post(&platform.client, "/api/deliveries", &["k"], "{}").await;
    let again = post(&platform.client, "/api/deliveries", &["k"], "{}").await;

    assert_eq!(first.status, 201);
    assert_eq!(again.status, first.status);
    assert_eq!(first.json(), delivery_json());
    assert_eq!(first.body, again.body);
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let mut headers = again.headers.clone();
    headers.remove("idempotent-replayed");
    for name in ["x-request-id", "date", "ratelimit"] {
        headers.insert(name, first.headers[name].clone());
    }
    assert_eq!(headers, first.headers);
}

#[tokio::test]
async fn a_malformed_key_is_reported_with_all_other_violations() {
    let platform = Platform::start().await;
    let too_long = "k".repeat(256);
    let wrong = "must be 1 to 255 printable ASCII characters";
    for (keys, message) in [
        (&[""][..], wrong),
        (&["clé"], wrong),
        (&["a\tb"], wrong),
        (&[too_long.as_str()], wrong),
        (&["a", "a"], "must occur only once"),
    ] {
        platform.core.will_return_violations();

        let reply = post(&platform.client, "/api/deliveries", keys, "{\"pickup\": 5}").await;

        assert_eq!(reply.status, 400, "{keys:?}");
        assert_eq!(
            reply.json()["violations"],
            json!([
                {
                    "propertyPath": "Idempotency-Key",
                    "message": message,
                    "code": "invalid_idempotency_key",
                },
                {
                    "propertyPath": "pickup",
                    "message": "must be an object, not a number",
                    "code": "wrong_type",
                },
            ]),
            "{keys:?}"
        );
        let request = platform.core.received::<CreateDeliveryRequest>();
        assert_eq!(request.idempotency, None);
        assert_eq!(
            request.violations[0],
            Violation {
                field: "Idempotency-Key".to_owned(),
                description: message.to_owned(),
                reason: "INVALID_IDEMPOTENCY_KEY".to_owned(),
            }
        );
    }
}

#[tokio::test]
async fn a_key_of_another_request_is_422() {
    let platform = Platform::start().await;
    let reason = "IDEMPOTENCY_KEY_REUSED";
    let status = core_status(Code::FailedPrecondition, reason, "use a new key");
    platform.core.will_fail(status);

    let reply = post(&platform.client, "/api/deliveries", &["k"], "{}").await;

    assert_eq!(reply.status, 422);
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!(
        reply.error(),
        json!({
            "@context": "/api/contexts/Error",
            "@type": "hydra:Error",
            "hydra:title": "An error occurred",
            "hydra:description": "use a new key",
            "type": "https://delivery.example/errors/idempotency_key_reused",
            "title": "Idempotency key used for another request",
            "status": 422,
            "detail": "use a new key",
            "code": "idempotency_key_reused",
            "retryable": false,
        })
    );
}

#[tokio::test]
async fn a_key_of_a_request_in_flight_is_409_with_a_retry_after() {
    let platform = Platform::start().await;
    let details = ErrorDetails::with_retry_info(Some(std::time::Duration::from_secs(1)));
    let reason = "IDEMPOTENCY_KEY_IN_USE";
    let status = core_status_with(Code::Aborted, reason, "still in flight", details);
    platform.core.will_fail(status);

    let reply = post(&platform.client, "/api/deliveries", &["k"], "{}").await;

    assert_eq!(reply.status, 409);
    assert_eq!(reply.header("retry-after"), Some("1"));
    let error = reply.error();
    assert_eq!(error["code"], "idempotency_key_in_use");
    assert_eq!(error["retryable"], true);
}

#[tokio::test]
async fn a_call_with_a_key_and_no_response_is_retried_on_another_core() {
    let (first, second) = (FakeCore::start().await, FakeCore::start().await);
    let gateway = Gateway::start(|config| config.core_url = vec![first.url(), second.url()]);
    let client = Client::new(gateway.addr);
    first.will_panic();
    second.will_replay(delivery());

    let reply = post(&client, "/api/deliveries", &["k"], "{}").await;

    assert_eq!(reply.status, 201);
    assert_eq!(reply.json(), delivery_json());
    assert_eq!(
        first.received::<CreateDeliveryRequest>(),
        second.received::<CreateDeliveryRequest>()
    );
}

#[tokio::test]
async fn webhook_changes_accept_an_idempotency_key() {
    macro_rules! assert_idempotent {
        ($path:expr, $body:expr, $response:expr, $request:ty) => {
            let platform = Platform::start().await;
            let (path, body) = ($path, $body);
            platform.core.will_replay($response);

            let reply = post(&platform.client, &path, &["k"], body).await;
            platform.core.will_fail(core_status(Code::NotFound, "", ""));
            post(&platform.client, &path, &[], body).await;

            assert_eq!(reply.status, 200, "{path}");
            assert_eq!(reply.header("idempotent-replayed"), Some("true"), "{path}");
            let received = platform.core.received::<$request>();
            let hash = Sha256::digest(format!("POST\n{path}\n{body}"));
            let expected = Idempotency {
                key: "k".to_owned(),
                request_hash: hash.to_vec(),
            };
            assert_eq!(received.idempotency, Some(expected), "{path}");
            let without = platform.core.received::<$request>();
            assert_eq!(without.idempotency, None, "{path}");
        };
    }
    let webhook_at = |action: &str| format!("/api/webhooks/{ID}/{action}");
    let since = r#"{"since": "2020-04-02T12:00:00Z"}"#;
    let overlap = r#"{"overlap": 0}"#;
    let recovery = RecoverWebhookResponse {
        since: instant(NOON),
        ..RecoverWebhookResponse::default()
    };
    let notification = WebhookNotification {
        state: webhook_notification::State::Pending.into(),
        create_time: instant(NOON),
        ..WebhookNotification::default()
    };

    assert_idempotent!(webhook_at("enable"), "", webhook(), EnableWebhookRequest);
    assert_idempotent!(webhook_at("enable"), "{}", webhook(), EnableWebhookRequest);
    assert_idempotent!(
        webhook_at("disable"),
        "{}",
        webhook(),
        DisableWebhookRequest
    );
    let confirm = webhook_at("confirm_secret");
    assert_idempotent!(confirm, "{}", webhook(), ConfirmWebhookSecretRequest);
    let rotate = webhook_at("rotate_secret");
    assert_idempotent!(rotate.clone(), "", webhook(), RotateWebhookSecretRequest);
    assert_idempotent!(rotate, overlap, webhook(), RotateWebhookSecretRequest);
    assert_idempotent!(
        webhook_at("recover"),
        since,
        recovery,
        RecoverWebhookRequest
    );
    let resend = format!("/api/notifications/{ID}/resend");
    assert_idempotent!(resend, "{}", notification, ResendWebhookNotificationRequest);
}

#[tokio::test]
async fn a_cancellation_accepts_an_idempotency_key() {
    let platform = Platform::start().await;
    let path = format!("/api/deliveries/{ID}");
    platform.core.will_replay(delivery());

    let request = platform.client.request(Method::DELETE, &path);
    let request = request.header("idempotency-key", "k");
    let reply = platform.client.send(request, "").await;

    assert_eq!((reply.status.as_u16(), reply.text()), (204, ""));
    assert_eq!(reply.header("idempotent-replayed"), Some("true"));
    let expected = CancelDeliveryRequest {
        name: format!("deliveries/{ID}"),
        idempotency: Some(Idempotency {
            key: "k".to_owned(),
            request_hash: Sha256::digest(format!("DELETE\n{path}\n")).to_vec(),
        }),
        ..CancelDeliveryRequest::default()
    };
    assert_eq!(platform.core.received::<CancelDeliveryRequest>(), expected);
}

#[tokio::test]
async fn a_malformed_key_of_a_request_without_body_is_rejected_without_a_call_to_core() {
    let platform = Platform::start().await;
    for action in ["enable", "disable", "confirm_secret"] {
        let path = format!("/api/webhooks/{ID}/{action}");

        let reply = post(&platform.client, &path, &["a", "a"], "{}").await;

        assert_eq!(reply.status, 400, "{action}");
        assert_eq!(
            reply.json()["violations"],
            json!([{
                "propertyPath": "Idempotency-Key",
                "message": "must occur only once",
                "code": "invalid_idempotency_key",
            }]),
            "{action}"
        );
    }
    assert!(!platform.core.has_unread_call());
}
