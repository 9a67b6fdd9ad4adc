//! `POST /api/webhooks/{id}/test`: sends a signed sample at once.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::iri;
use crate::harness::{
    ApiClient, Database, Platform, Response, WebhookReceiver,
    assertions::{assert_error, json_ld},
    deliver, run_sql,
};

/// The object of every sample: a delivery that does not exist.
const SAMPLE_DELIVERY: &str = "/api/deliveries/00000000-0000-0000-0000-000000000000";

on_both_databases! {
    /// The sample has the form of a notification, and its signature passes the Standard Webhooks
    /// library.
    async fn a_sample_is_sent_signed_and_its_outcome_reported(platform: &Platform) {
        let client = client_once_connected(platform).await;
        let receiver = WebhookReceiver::start().await;
        let url = receiver.url().replace("127.0.0.1", "localhost");
        let webhook = client.create_webhook("delivery.picked", &url).await;

        let mut test = json_ld(&send_test(&client, &webhook).await, 200);

        let sample = receiver.next_notification().await;
        let body = json!({ "data": { "object": SAMPLE_DELIVERY, "event": "delivery.picked" } });
        assert_eq!(sample.json(), body);
        let secret = webhook["secret"].as_str().unwrap();
        assert!(sample.is_signed_with(secret));
        assert!(sample.has_standard_signature(secret));
        for phase in ["milliseconds", "dnsMilliseconds", "connectMilliseconds"] {
            let duration = test[phase].take();
            assert!(duration.as_f64() >= Some(0.0), "{phase}: {duration}");
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
                "object": SAMPLE_DELIVERY,
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
        assert_error(&client.get(SAMPLE_DELIVERY).await, 404);
        let again = json_ld(&send_test(&client, &webhook).await, 200);
        assert_ne!(again["webhookId"], test["webhookId"], "each sample should have its own id");
    }

    /// The outcome names the phase that failed.
    async fn a_failed_sample_reports_the_phase(platform: &Platform) {
        let client = client_once_connected(platform).await;
        let receiver = WebhookReceiver::start().await;
        receiver.respond_with(503);
        // A TLS handshake with a receiver that speaks plain HTTP.
        let https_url = receiver.url().replace("http:", "https:");
        for (url, failure, status, connected) in [
            (receiver.url(), "status", json!(503), true),
            (&https_url, "tls", Value::Null, true),
            ("http://127.0.0.1:1/", "connect", Value::Null, false),
        ] {
            let webhook = client.create_webhook("delivery.completed", url).await;

            let test = json_ld(&send_test(&client, &webhook).await, 200);

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

    /// It is not retried and changes nothing, even after a 410 or days of failures.
    async fn a_sample_has_no_effect_but_its_report(platform: &Platform) {
        let client = client_once_connected(platform).await;
        let receiver = WebhookReceiver::start().await;
        let mut webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        webhook.as_object_mut().unwrap().remove("secret");
        for status in [500, 410] {
            receiver.respond_with(status);
            let test = send_test(&client, &webhook).await.expect(200);
            assert_eq!((&test["failure"], &test["statusCode"]), (&json!("status"), &json!(status)));
            receiver.next_notification().await;
        }
        let assert_unchanged = async |client: &ApiClient| {
            assert_eq!(client.get(iri(&webhook)).await.expect(200), webhook);
            let path = format!("{}/notifications", iri(&webhook));
            let notifications = client.get(&path).await.expect(200);
            assert_eq!(notifications["hydra:member"], json!([]));
            let events = client.get("/api/events").await.expect(200);
            assert_eq!(events["lastNumber"], 0);
        };
        assert_unchanged(&client).await;
        // Six days without a success.
        platform.advance(SignedDuration::from_hours(6 * 24));
        // The dispatcher's token has expired.
        let client = client_once_connected(platform).await;
        assert_eq!(send_test(&client, &webhook).await.expect(200)["delivered"], false);
        receiver.next_notification().await;
        assert_unchanged(&client).await;
        assert!(receiver.received().await.is_empty());
    }

    /// Before it is enabled again.
    async fn a_disabled_webhook_can_be_tested(platform: &Platform) {
        let client = client_once_connected(platform).await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let disable = format!("{}/disable", iri(&webhook));
        client.post(&disable, json!({})).await.expect(200);

        let test = send_test(&client, &webhook).await.expect(200);

        assert_eq!(test["delivered"], true);
        receiver.next_notification().await;
        assert!(receiver.received().await.is_empty());
    }
}

async fn send_test(client: &ApiClient, webhook: &Value) -> Response {
    client
        .post(&format!("{}/test", iri(webhook)), json!({}))
        .await
}

/// A client of the demo shop, once the dispatcher is connected: it has sent a notification of another
/// store.
async fn client_once_connected(platform: &Platform) -> ApiClient {
    let other = platform.new_store_client().await;
    let unknown = "http://unknown.invalid/";
    let webhook = other.create_webhook("delivery.completed", unknown).await;
    deliver(&other, &platform.courier().await).await;
    let path = format!("{}/notifications?state=failed", iri(&webhook));
    let failed = |page: Value| page["hydra:member"].get(0).cloned();
    other.wait_until(&path, failed).await;
    platform.client().await
}

/// Otherwise a shop could find out which names exist in the platform's network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_cannot_tell_a_denied_host_from_an_unknown_one_but_an_operator_can() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let database_url = database.url.clone().unwrap();
    let platform = Platform::start_with(database, |settings| {
        settings.egress.denied_networks = ["127.0.0.0/8", "::1/128"]
            .map(|network| network.parse().unwrap())
            .into();
    })
    .await;
    let client = client_once_connected(&platform).await;
    let mut outcomes = Vec::new();
    for (url, failure) in [
        ("http://localhost/", "address_refused"),
        ("http://missing.invalid/", "dns"),
    ] {
        let unknown = "http://unknown.invalid/";
        let webhook = client.create_webhook("delivery.completed", unknown).await;
        // Not registered with this URL: registering refuses `localhost` if loopback is denied.
        let set_url = format!("UPDATE webhooks SET url = '{url}' WHERE url = '{unknown}'");
        run_sql(&database_url, &set_url).await;
        let mut test = send_test(&client, &webhook).await.expect(200);
        for member in ["webhook", "url", "webhookId", "milliseconds"] {
            assert!(!test[member].take().is_null(), "{member}");
        }
        outcomes.push(test);
        let id = webhook["id"].as_str().unwrap();
        let tested = platform
            .run_delivery_as(
                &platform.operator_client,
                &["webhooks", "test", id, "--json"],
            )
            .await;
        let tested: Value = serde_json::from_slice(&tested.stdout).unwrap();
        assert_eq!(tested["failure"], failure);
    }
    deliver(&client, &platform.courier().await).await;
    for webhook in client.get("/api/webhooks").await.expect(200)["hydra:member"]
        .as_array()
        .unwrap()
    {
        let path = format!("{}/notifications", iri(webhook));
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let notification = client.wait_until(&path, first).await;
        let failure = |read: Value| read["attempts"][0]["failure"].as_str().map(str::to_owned);
        assert_eq!(client.wait_until(iri(&notification), failure).await, "dns");
    }

    assert_eq!(outcomes[0], outcomes[1]);
    let detail = "the host name has no address on the public internet";
    assert_eq!(
        outcomes[0],
        json!({
            "@context": "/api/contexts/WebhookTest",
            "@type": "WebhookTest",
            "webhook": null,
            "url": null,
            "webhookId": null,
            "event": "delivery.completed",
            "object": SAMPLE_DELIVERY,
            "delivered": false,
            "failure": "dns",
            "failureDetail": detail,
            "dnsMilliseconds": null,
            "connectMilliseconds": null,
            "tlsMilliseconds": null,
            "tlsVersion": null,
            "milliseconds": null,
            "statusCode": null,
            "answer": "",
        })
    );
    platform.stop().await;
}
