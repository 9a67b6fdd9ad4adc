//! `delivery webhooks`: list, attempts, resend, recover, rotate-secret, confirm-secret, test,
//! enable, disable.

use serde_json::{Value, json};

use crate::harness::{
    ApiClient, Platform, UNKNOWN_ID, WebhookReceiver, all_in_one::stderr, iri, short_draft,
};

on_both_databases! {
    async fn an_operator_inspects_and_repairs_a_stores_webhooks(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.picked", receiver.url()).await;
        let id = webhook["id"].as_str().unwrap();
        let api_client = client.get("/api/me").await.expect(200);
        let mut expected = json!({
            "id": id,
            "iri": webhook["@id"],
            "client": api_client["id"],
            "event": "delivery.picked",
            "url": receiver.url(),
            "secret_overlap_ends_at": null,
            "enabled": true,
            "disabled_at": null,
            "disabled_reason": null,
            "created_at": "2020-04-02T11:00:00+02:00",
        });
        let store = platform.store.as_str();
        let listed = platform.run_delivery_json(&["webhooks", "list", "--store", store]).await;
        assert_eq!(listed, json!([expected]));
        let printed = platform.run_delivery(&["webhooks", "list", "--store", store]).await;
        assert!(printed.contains(receiver.url()), "{printed}");

        receiver.respond_with(500);
        let delivery = client.create_delivery(short_draft()).await;
        courier.complete(delivery["pickup"]["@id"].as_str().unwrap()).await;
        let first = receiver.next_notification().await;
        wait_for_attempts(&client, &webhook, "failed", 1).await;
        let listed = platform
            .run_delivery_json(&["webhooks", "attempts", id, "--state=failed"])
            .await;
        let failed = &listed[0];
        assert_eq!(failed["id"], first.header("webhook-id"));
        assert_eq!(failed["object"], delivery["@id"]);
        assert_eq!(failed["attempts"][0]["status"], 500);
        let printed = platform.run_delivery(&["webhooks", "attempts", id]).await;
        assert!(printed.contains("  failed  ") && printed.contains("  500\n"), "{printed}");

        let listed = platform.run_delivery_json(&["webhooks", "list", "--failing"]).await;
        assert_eq!(
            listed,
            json!([{
                "id": id,
                "store": store.rsplit('/').next(),
                "event": "delivery.picked",
                "url": receiver.url(),
                "failing_since": "2020-04-02T11:00:00+02:00",
                "last_error": "500",
                "last_attempt_at": "2020-04-02T11:00:00+02:00",
                "disabled_reason": null,
            }])
        );

        receiver.respond_with(204);
        let notification = failed["id"].as_str().unwrap();
        let sent = platform.run_delivery_json(&["webhooks", "resend", notification]).await;
        assert_eq!(sent["id"], failed["id"]);
        assert_eq!(receiver.next_notification().await.body, first.body);
        wait_for_attempts(&client, &webhook, "delivered", 2).await;
        let listed = platform.run_delivery_json(&["webhooks", "list", "--failing"]).await;
        assert_eq!(listed, json!([]));
        let since = "--since=2020-04-02T00:00:00+02:00";
        let recovered = platform.run_delivery_json(&["webhooks", "recover", id, since]).await;
        assert_eq!(
            recovered,
            json!({ "since": "2020-04-02T00:00:00+02:00", "recovered": 0 })
        );

        let rotated = platform.run_delivery_json(&["webhooks", "rotate-secret", id]).await;
        assert_ne!(rotated["secret"], webhook["secret"]);
        assert_eq!(rotated["secret_overlap_ends_at"], "2020-04-03T11:00:00+02:00");
        let iri = webhook["@id"].as_str().unwrap();
        let rotated = platform
            .run_delivery_json(&["webhooks", "rotate-secret", iri, "--overlap=0s"])
            .await;
        assert_eq!(rotated["secret_overlap_ends_at"], json!(null));

        let disabled = platform.run_delivery_json(&["webhooks", "disable", id]).await;
        expected["enabled"] = json!(false);
        expected["disabled_at"] = json!("2020-04-02T11:00:00+02:00");
        expected["disabled_reason"] = json!("operator");
        assert_eq!(disabled, expected);
        assert_eq!(client.get(iri).await.expect(200)["disabledReason"], "operator");
        let enabled = platform.run_delivery_json(&["webhooks", "enable", id]).await;
        assert_eq!(enabled["enabled"], true);
    }

    async fn an_operator_sends_a_test_notification(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.picked", receiver.url()).await;
        let id = webhook["id"].as_str().unwrap();
        receiver.respond_with(503);

        let arguments = ["webhooks", "test", id, "--json"];
        let tested = platform.run_delivery_output(&arguments).await;

        assert_eq!(tested.status.code(), Some(1));
        let failure = "receiver responded with 503 Service Unavailable, not 2xx";
        assert_eq!(stderr(&tested), format!("{failure}\n"));
        let mut test: Value = serde_json::from_slice(&tested.stdout).unwrap();
        let sample = receiver.next_notification().await;
        assert!(sample.is_signed_with(webhook["secret"].as_str().unwrap()));
        for phase in ["dns", "connect", "total"] {
            let took = test[phase].take();
            assert!(took.as_i64() >= Some(0), "{phase}: {took}");
        }
        assert_eq!(
            test,
            json!({
                "webhook": id,
                "url": receiver.url(),
                "webhook_id": sample.header("webhook-id"),
                "event": "delivery.picked",
                "object": "/api/deliveries/00000000-0000-0000-0000-000000000000",
                "delivered": false,
                "failure": "status",
                "failure_detail": failure,
                "dns": null,
                "connect": null,
                "tls": null,
                "tls_version": null,
                "total": null,
                "status": 503,
                "answer": "",
            })
        );
    }

    /// A receiver must not control the operator's terminal.
    async fn a_response_with_control_characters_is_printed_escaped(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.picked", receiver.url()).await;
        let id = webhook["id"].as_str().unwrap();
        receiver.respond_with_body(200, "\x1b[2J\x1b]0;owned\x07\r\n\u{9b}1m\u{202e}é");

        let fields = platform.run_delivery(&["webhooks", "test", id]).await;
        let json = platform.run_delivery(&["webhooks", "test", id, "--json"]).await;

        let escaped = r"\u001b[2J\u001b]0;owned\u0007\u000d\n\u009b1m\u202eé";
        let line = fields.lines().find(|line| line.starts_with("response body"));
        assert_eq!(line, Some(format!("response body  {escaped}").as_str()));
        let is_control = |char: char| char.is_control() && char != '\n';
        assert_eq!(json.find(is_control), None, "{json}");
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["answer"], "\x1b[2J\x1b]0;owned\x07\r\n\u{9b}1m\u{202e}é");
    }

    /// As the client does once its receiver uses the new secret.
    async fn an_operator_confirms_a_secret(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.picked", receiver.url()).await;
        let id = webhook["id"].as_str().unwrap();
        let rotated = platform.run_delivery_json(&["webhooks", "rotate-secret", id]).await;
        assert_ne!(rotated["secret_overlap_ends_at"], Value::Null);
        platform.run_delivery_json(&["webhooks", "test", id]).await;
        let before = receiver.next_notification().await;

        let confirmed = platform.run_delivery_json(&["webhooks", "confirm-secret", id]).await;

        let mut expected = rotated.clone();
        expected.as_object_mut().unwrap().remove("secret");
        expected["secret_overlap_ends_at"] = Value::Null;
        assert_eq!(confirmed, expected);
        platform.run_delivery_json(&["webhooks", "test", id]).await;
        let after = receiver.next_notification().await;
        assert!(before.is_signed_with(webhook["secret"].as_str().unwrap()));
        assert!(after.is_signed_with(rotated["secret"].as_str().unwrap()));
        assert_eq!(after.header("webhook-signature").split(' ').count(), 1);
    }

    async fn invalid_webhook_arguments_are_reported(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.picked", "http://127.0.0.1:9/")
            .await;
        let id = webhook["id"].as_str().unwrap();
        let unknown = UNKNOWN_ID;
        for (status, arguments, expected) in [
            (1, &["webhooks", "list", "--store", unknown][..], "does not exist"),
            (1, &["webhooks", "attempts", unknown], "does not exist"),
            (1, &["webhooks", "resend", unknown], "does not exist"),
            (1, &["webhooks", "rotate-secret", unknown], "does not exist"),
            (1, &["webhooks", "confirm-secret", unknown], "does not exist"),
            (1, &["webhooks", "test", unknown], "does not exist"),
            (1, &["webhooks", "rotate-secret", id, "--overlap=604801s"], "--overlap: "),
            (2, &["webhooks", "attempts", id, "--state=lost"], "--state"),
            (2, &["webhooks", "recover", id, "--since=yesterday"], "--since"),
            (2, &["webhooks", "recover", id], "--since"),
            (2, &["webhooks", "attempts", "7"], "webhooks/<id>"),
        ] {
            let output = platform.run_delivery_output(arguments).await;
            let errors = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
            assert!(errors.contains(expected), "{arguments:?}: {errors}");
        }
    }
}

/// Waits until the only notification of a webhook is in a state, and its attempts are recorded.
async fn wait_for_attempts(client: &ApiClient, webhook: &Value, state: &str, count: usize) {
    let path = format!("{}/notifications?state={state}", iri(webhook));
    let listed = client.wait_until(&path, |page| page["hydra:member"].get(0).cloned());
    let path = iri(&listed.await).to_owned();
    let recorded = |read: Value| read["attempts"].get(count - 1).cloned();
    client.wait_until(&path, recorded).await;
}
