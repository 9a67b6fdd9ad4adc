//! Lists the notifications of a webhook, resends one, recovers failed and missed ones.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, draft, iri};
use crate::harness::{
    ApiClient, Platform, WebhookReceiver,
    assertions::{assert_error, assert_violations, json_ld},
};

on_both_databases! {
    /// With event, time and outcome.
    async fn a_failed_notification_shows_the_failure_and_the_next_attempt(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.respond_with(503);
        let delivery = deliver(&client, &platform.courier().await).await;
        let request = receiver.next_notification().await;

        let mut listed = wait_for_one(&client, &webhook, "failed").await;

        let id = request.header("webhook-id");
        let next = listed["nextAttemptAt"].take();
        assert!(next.as_str().unwrap().starts_with("2020-04-02T11:00:0"), "{next}");
        let mut expected = json!({
            "@id": format!("/api/notifications/{id}"),
            "@type": "Notification",
            "id": id,
            "webhook": iri(&webhook),
            "event": "delivery.completed",
            "object": delivery,
            "state": "failed",
            "attemptCount": 1,
            "nextAttemptAt": null,
            "createdAt": "2020-04-02T11:00:00+02:00",
            "finishedAt": null,
        });
        assert_eq!(listed, expected);

        let mut read = with_attempts(&client, &listed, 1).await;
        let duration = read["attempts"][0]["milliseconds"].take();
        assert!(duration.as_i64() >= Some(0), "{duration}");
        expected["@context"] = json!("/api/contexts/Notification");
        expected["nextAttemptAt"] = next;
        expected["attempts"] = json!([{
            "attemptNumber": 1,
            "endedAt": "2020-04-02T11:00:00+02:00",
            "milliseconds": null,
            "failure": "status",
            "statusCode": 503,
            "answer": "",
        }]);
        assert_eq!(read, expected);
    }

    /// Filtered by state, paginated like deliveries.
    async fn notifications_are_listed_by_state_newest_first_in_pages(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let mut delivered = Vec::new();
        for _ in 0..3 {
            delivered.push(deliver(&client, &courier).await);
            receiver.next_notification().await;
            platform.advance(SignedDuration::from_secs(1));
        }
        receiver.respond_with(500);
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        wait_for_one(&client, &webhook, "failed").await;
        wait_for_count(&client, &webhook, "delivered", 3).await;
        delivered.reverse();

        let path = format!("{}/notifications", iri(&webhook));
        let first = json_ld(&client.get(&format!("{path}?state=delivered&itemsPerPage=2")).await, 200);
        assert_eq!(objects(&first), delivered[..2]);
        assert_eq!(first["@id"], path);
        assert_eq!(first["@context"], "/api/contexts/Notification");
        assert_eq!(
            first["hydra:search"],
            json!({
                "@type": "hydra:IriTemplate",
                "hydra:template": format!("{path}{{?state*}}"),
                "hydra:variableRepresentation": "BasicRepresentation",
                "hydra:mapping": [
                    { "@type": "IriTemplateMapping", "variable": "state", "property": "state", "required": false },
                ],
            })
        );
        let next = first["hydra:view"]["hydra:next"].as_str().unwrap();
        let second = json_ld(&client.get(next).await, 200);
        assert_eq!(objects(&second), delivered[2..]);
        assert!(second["hydra:view"].get("hydra:next").is_none());
        let back = second["hydra:view"]["hydra:previous"].as_str().unwrap();
        assert_eq!(objects(&client.get(back).await.expect(200)), delivered[..2]);
        for state in ["pending", "exhausted", "cancelled"] {
            let none = client.get(&format!("{path}?state={state}")).await.expect(200);
            assert_eq!(objects(&none), [""; 0], "{state}");
        }
        let both = client.get(&format!("{path}?state=delivered&state=failed")).await.expect(200);
        assert_eq!(objects(&both).len(), 4);
        assert_eq!(objects(&client.get(&path).await.expect(200))[0], failed);

        let invalid = client.get(&format!("{path}?state=lost&itemsPerPage=0&cursor=x")).await;
        assert_violations(&invalid, &["cursor", "itemsPerPage", "state"]);
        let message = invalid.json["violations"].to_string();
        for known in ["pending", "failed", "delivered", "exhausted", "cancelled"] {
            assert!(message.contains(known), "{message}");
        }
    }

    async fn a_state_may_be_repeated_as_often_as_fits_into_a_request(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let delivered = deliver(&client, &platform.courier().await).await;
        wait_for_one(&client, &webhook, "delivered").await;
        let path = format!("{}/notifications", iri(&webhook));

        let repeated = "&state=delivered&state=failed".repeat(1200);
        let page = client.get(&format!("{path}?itemsPerPage=2{repeated}")).await;

        let page = json_ld(&page, 200);
        assert_eq!(objects(&page), [delivered]);
        let view = &page["hydra:view"]["hydra:first"];
        assert_eq!(*view, format!("{path}?state=delivered&state=failed&itemsPerPage=2"));
        let unknown: Vec<_> = (0..1200).map(|number| format!("state=lost{number}")).collect();
        let invalid = client.get(&format!("{path}?cursor=x&{}", unknown.join("&"))).await;
        assert_violations(&invalid, &["cursor", "state"]);
    }

    /// Also after it was delivered, under the same `webhook-id`.
    async fn a_notification_is_resent_at_once(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let delivered = wait_for_one(&client, &webhook, "delivered").await;
        assert_eq!(delivered["nextAttemptAt"], json!(null));

        let resend = format!("{}/resend", iri(&delivered));
        let response = json_ld(&client.post(&resend, json!({})).await, 200);

        let again = receiver.next_notification().await;
        assert_eq!(again.body, first.body);
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(response["id"], first.header("webhook-id"));
        let read = with_attempts(&client, &delivered, 2).await;
        assert_eq!((&read["state"], &read["attemptCount"]), (&json!("delivered"), &json!(2)));
    }

    async fn a_notification_is_attempted_100_times_at_most(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        let delivered = wait_for_one(&client, &webhook, "delivered").await;
        let resend = format!("{}/resend", iri(&delivered));
        for count in 2..=100 {
            client.post(&resend, json!({})).await.expect(200);
            receiver.next_notification().await;
            with_attempts(&client, &delivered, count).await;
        }

        let rejected = client.post(&resend, json!({})).await;

        assert_error(&rejected, 409);
        let error = &rejected.json;
        assert_eq!(error["code"], "too_many_attempts");
        assert_eq!(error["detail"], "the notification has been attempted 100 times or more");
    }

    /// Resending restarts the retry schedule.
    async fn a_resent_notification_that_fails_is_retried_from_the_start_of_the_schedule(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.respond_with(500);
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        wait_for_one(&client, &webhook, "failed").await;
        platform.advance(SignedDuration::from_secs(6));
        receiver.next_notification().await;
        let failed = wait_for_failed_attempts(&client, &webhook, 2).await;
        let due = |notification: &Value| notification["nextAttemptAt"].as_str().unwrap().to_owned();
        assert!(due(&failed).starts_with("2020-04-02T11:05:"), "{failed}");

        let resend = format!("{}/resend", iri(&failed));
        client.post(&resend, json!({})).await.expect(200);
        receiver.next_notification().await;

        let failed = wait_for_failed_attempts(&client, &webhook, 3).await;
        assert!(due(&failed).starts_with("2020-04-02T11:00:1"), "{failed}");
    }

    /// Those that failed since a time, and the events missed while the webhook was disabled: each
    /// once, at once, whether numbered yet or not.
    async fn a_shop_recovers_failed_and_missed_notifications(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let post_action = async |action: &str, body: Value| {
            let path = format!("{}/{action}", iri(&webhook));
            client.post(&path, body).await
        };
        receiver.respond_with(500);
        let too_early = deliver(&client, &courier).await;
        receiver.next_notification().await;
        wait_for_one(&client, &webhook, "failed").await;
        platform.advance(SignedDuration::from_secs(1));
        let since = "2020-04-02T11:00:01+02:00";
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        wait_for_count(&client, &webhook, "failed", 2).await;
        post_action("disable", json!({})).await.expect(200);
        let rejected = post_action("recover", json!({ "since": since })).await;
        assert_error(&rejected, 409);
        assert_eq!(rejected.json["code"], "webhook_disabled");
        let missed = deliver(&client, &courier).await;
        let picked = client.create_delivery(draft()).await;
        courier.complete(iri(&picked["pickup"])).await;
        receiver.respond_with(204);
        post_action("enable", json!({})).await.expect(200);

        let recovered = json_ld(&post_action("recover", json!({ "since": since })).await, 200);

        assert_eq!(
            recovered,
            json!({
                "@context": "/api/contexts/WebhookRecovery",
                "@type": "WebhookRecovery",
                "since": since,
                "recovered": 2,
            })
        );
        let mut recovered_objects = vec![next_object(&receiver).await, next_object(&receiver).await];
        recovered_objects.sort();
        let mut expected = vec![failed, missed];
        expected.sort();
        assert_eq!(recovered_objects, expected);
        wait_for_count(&client, &webhook, "delivered", 2).await;
        let again = post_action("recover", json!({ "since": since })).await.expect(200);
        assert_eq!(again["recovered"], 0);
        let all = post_action("recover", json!({ "since": "2020-04-02T00:00:00Z" })).await.expect(200);
        assert_eq!(all["recovered"], 1);
        assert_eq!(next_object(&receiver).await, too_early);
        assert!(receiver.received().await.is_empty());
    }

    async fn since_is_a_timestamp_with_an_offset(platform: &Platform) {
        let client = platform.client().await;
        let webhook = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;
        let recover = format!("{}/recover", iri(&webhook));
        for body in [
            json!({}),
            json!({ "since": null }),
            json!({ "since": 1_585_821_600 }),
            json!({ "since": "yesterday" }),
            json!({ "since": "2020-04-02" }),
            json!({ "since": "2020-04-02T12:00:00" }),
            json!({ "since": "-000001-12-31T23:59:59Z" }),
            json!({ "since": "9999-12-31T23:59:59Z" }),
        ] {
            assert_violations(&client.post(&recover, body).await, &["since"]);
        }
        // An offset with seconds (Paris before 1911: 9 min 21 s) is written as UTC.
        for (since, written) in [
            ("0165-06-25T01:03:06Z", "0165-06-25T01:03:06+00:00"),
            ("0000-01-01t00:00:00z", "0000-01-01T00:00:00+00:00"),
            ("2020-04-02T09:00:00.5Z", "2020-04-02T11:00:00+02:00"),
        ] {
            let recovered = client.post(&recover, json!({ "since": since })).await;
            assert_eq!(json_ld(&recovered, 200)["since"], written);
        }
    }
}

/// The notifications of a webhook in a state, once there are `count`.
async fn wait_for_count(
    client: &ApiClient,
    webhook: &Value,
    state: &str,
    count: usize,
) -> Vec<Value> {
    let path = format!("{}/notifications?state={state}", iri(webhook));
    client
        .wait_until(&path, |page| {
            let members = page["hydra:member"].as_array().unwrap();
            (members.len() == count).then(|| members.clone())
        })
        .await
}

/// The only notification of a webhook in a state, once there is one.
async fn wait_for_one(client: &ApiClient, webhook: &Value, state: &str) -> Value {
    wait_for_count(client, webhook, state, 1).await.remove(0)
}

/// The only notification of a webhook, once `count` attempts have failed.
async fn wait_for_failed_attempts(client: &ApiClient, webhook: &Value, count: u32) -> Value {
    let path = format!("{}/notifications?state=failed", iri(webhook));
    client
        .wait_until(&path, |page| {
            let member = page["hydra:member"].get(0)?;
            (member["attemptCount"] == count).then(|| member.clone())
        })
        .await
}

/// A notification, once `count` attempts are recorded.
async fn with_attempts(client: &ApiClient, notification: &Value, count: usize) -> Value {
    client
        .wait_until(iri(notification), |read| {
            let attempts = read["attempts"].as_array().unwrap();
            (attempts.len() == count).then(|| read.clone())
        })
        .await
}

fn objects(page: &Value) -> Vec<&str> {
    page["hydra:member"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["object"].as_str().unwrap())
        .collect()
}

/// The object's IRI in the next notification.
async fn next_object(receiver: &WebhookReceiver) -> String {
    let notification = receiver.next_notification().await.json();
    notification["data"]["object"].as_str().unwrap().to_owned()
}
