//! `POST /api/webhooks/{id}/test`: a signed sample, now.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::iri;
use crate::harness::{
    Answer, ApiClient, Platform, WebhookReceiver,
    assertions::{assert_error, json_ld},
};

/// What every sample is about: a delivery that never is.
const NO_DELIVERY: &str = "/api/deliveries/00000000-0000-0000-0000-000000000000";

on_both_databases! {
    /// "Sends a signed sample now and reports DNS, TLS, status, time": of the same form as what
    /// it is a sample of, and verified by others' code.
    async fn a_sample_is_sent_signed_and_its_fate_told(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let url = receiver.url().replace("127.0.0.1", "localhost");
        let webhook = client.create_webhook("delivery.picked", &url).await;

        let mut test = json_ld(&run(&client, &webhook).await, 200);

        let sample = receiver.next_notification().await;
        let body = json!({ "data": { "object": NO_DELIVERY, "event": "delivery.picked" } });
        assert_eq!(sample.json(), body);
        let secret = webhook["secret"].as_str().unwrap();
        assert!(sample.is_signed_with(secret));
        standardwebhooks::Webhook::new(secret)
            .unwrap()
            .verify(&sample.body, &sample.headers)
            .unwrap();
        for phase in ["milliseconds", "dnsMilliseconds", "connectMilliseconds"] {
            let took = test[phase].take();
            assert!(took.as_f64() >= Some(0.0), "{phase}: {took}");
        }
        assert_eq!(
            test,
            json!({
                "@context": "/api/contexts/WebhookTest",
                "@type": "WebhookTest",
                "webhook": iri(&webhook),
                "url": url,
                "webhookId": sample.header("webhook-id"),
                "event": "delivery.picked",
                "object": NO_DELIVERY,
                "delivered": true,
                "failure": null,
                "failureDetail": null,
                "dnsMilliseconds": null,
                "connectMilliseconds": null,
                "tlsMilliseconds": null,
                "tlsVersion": null,
                "milliseconds": null,
                "statusCode": 204,
                "answer": "",
            })
        );
        assert_error(&client.get(NO_DELIVERY).await, 404);
        let again = json_ld(&run(&client, &webhook).await, 200);
        assert_ne!(again["webhookId"], test["webhookId"], "no receiver takes it for a repeat");
    }

    /// How far it came, and why no farther.
    async fn a_sample_that_fails_says_where(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        receiver.answer_with(503);
        let plain = receiver.url().replace("http:", "https:");
        for (url, failure, status, connected) in [
            (receiver.url(), "status", json!(503), true),
            (&plain, "tls", Value::Null, true),
            ("http://127.0.0.1:1/", "connect", Value::Null, false),
        ] {
            let webhook = client.create_webhook("delivery.completed", url).await;

            let test = json_ld(&run(&client, &webhook).await, 200);

            assert_eq!(
                [&test["delivered"], &test["failure"], &test["statusCode"]],
                [&json!(false), &json!(failure), &status]
            );
            assert!(test["dnsMilliseconds"].is_number(), "{test}");
            assert_eq!(test["connectMilliseconds"].is_number(), connected, "{test}");
            assert_eq!(test["tlsMilliseconds"], Value::Null);
            assert!(test["failureDetail"].as_str().is_some_and(|detail| !detail.is_empty()), "{test}");
        }
    }

    /// "It is no notification": nothing is owed or tried again, and nothing is noted, neither of
    /// 410 nor of the days.
    async fn nothing_comes_of_a_sample_but_its_report(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let mut webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        webhook.as_object_mut().unwrap().remove("secret");
        for status in [500, 410] {
            receiver.answer_with(status);
            let test = run(&client, &webhook).await.expect(200);
            assert_eq!((&test["failure"], &test["statusCode"]), (&json!("status"), &json!(status)));
            receiver.next_notification().await;
        }
        let unchanged = async |client: &ApiClient| {
            assert_eq!(client.get(iri(&webhook)).await.expect(200), webhook);
            let path = format!("{}/notifications", iri(&webhook));
            let told = client.get(&path).await.expect(200);
            assert_eq!(told["hydra:member"], json!([]));
            let events = client.get("/api/events").await.expect(200);
            assert_eq!(events["lastNumber"], 0);
        };
        unchanged(&client).await;
        // Days in which nothing has succeeded.
        platform.advance(SignedDuration::from_hours(6 * 24));
        let client = platform.client().await;
        assert_eq!(run(&client, &webhook).await.expect(200)["delivered"], false);
        receiver.next_notification().await;
        unchanged(&client).await;
        assert!(receiver.so_far().await.is_empty());
    }

    /// One that is disabled is tried before it is enabled again. "A resource of another store
    /// answers 404": nobody else's is tried.
    async fn a_webhook_is_tried_by_its_own_client_whether_or_not_it_is_enabled(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let operator = platform.operator().await;
        let colleague = operator.create_client(&platform.store, &["tasks"]).await;
        let colleague = platform.client_of(&colleague, &["tasks"]).await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let disable = format!("{}/disable", iri(&webhook));
        client.post(&disable, json!({})).await.expect(200);

        let test = run(&client, &webhook).await.expect(200);

        assert_eq!(test["delivered"], true);
        receiver.next_notification().await;
        for other in [&other, &colleague] {
            assert_error(&run(other, &webhook).await, 404);
        }
        assert_error(&run(&platform.stranger(), &webhook).await, 401);
        client.delete(iri(&webhook)).await.expect(204);
        assert_error(&run(&client, &webhook).await, 404);
        assert!(receiver.so_far().await.is_empty());
    }
}

async fn run(client: &ApiClient, webhook: &Value) -> Answer {
    let path = format!("{}/test", iri(webhook));
    client.post(&path, json!({})).await
}
