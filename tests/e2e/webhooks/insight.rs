//! Looking at what a webhook was told, and having it told again.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{deliver, iri, order};
use crate::harness::{
    ApiClient, Platform, WebhookReceiver,
    assertions::{assert_error, assert_violations, json_ld},
};

on_both_databases! {
    /// "List own notifications and attempts": who was told what, when, how it was answered and
    /// when it is tried again.
    async fn a_failed_notification_says_why_and_when_it_is_tried_again(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.answer_with(503);
        let delivery = deliver(&client, &platform.courier().await).await;
        let told = receiver.next_notification().await;

        let mut listed = only(&client, &webhook, "failed").await;

        let id = told.header("webhook-id");
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
        let took = read["attempts"][0]["milliseconds"].take();
        assert!(took.as_i64() >= Some(0), "{took}");
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

    /// By state, with pages like those of deliveries.
    async fn notifications_are_listed_by_state_newest_first_and_in_pages(platform: &Platform) {
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
        receiver.answer_with(500);
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        only(&client, &webhook, "failed").await;
        until_all(&client, &webhook, "delivered", 3).await;
        delivered.reverse();

        let path = format!("{}/notifications", iri(&webhook));
        let first = json_ld(&client.get(&format!("{path}?state=delivered&itemsPerPage=2")).await, 200);
        assert_eq!(objects(&first), delivered[..2]);
        assert_eq!(first["@id"], path);
        assert_eq!(first["@context"], "/api/contexts/Notification");
        let next = first["hydra:view"]["hydra:next"].as_str().unwrap();
        let second = json_ld(&client.get(next).await, 200);
        assert_eq!(objects(&second), delivered[2..]);
        assert!(second["hydra:view"].get("hydra:next").is_none());
        let back = second["hydra:view"]["hydra:previous"].as_str().unwrap();
        assert_eq!(objects(&client.get(back).await.expect(200)), delivered[..2]);
        for state in ["pending", "given_up", "dropped"] {
            let none = client.get(&format!("{path}?state={state}")).await.expect(200);
            assert_eq!(objects(&none), [""; 0], "{state}");
        }
        let both = client.get(&format!("{path}?state=delivered&state=failed")).await.expect(200);
        assert_eq!(objects(&both).len(), 4);
        assert_eq!(objects(&client.get(&path).await.expect(200))[0], failed);

        let wrong = client.get(&format!("{path}?state=lost&itemsPerPage=0&cursor=x")).await;
        assert_violations(&wrong, &["cursor", "itemsPerPage", "state"]);
        let message = wrong.json["violations"].to_string();
        for known in ["pending", "failed", "delivered", "given_up", "dropped"] {
            assert!(message.contains(known), "{message}");
        }
    }

    /// "Resend one": at once, whatever became of it, under the same `webhook-id`.
    async fn a_notification_is_sent_again_at_once(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let delivered = only(&client, &webhook, "delivered").await;
        assert_eq!(delivered["nextAttemptAt"], json!(null));

        let resend = format!("{}/resend", iri(&delivered));
        let answer = json_ld(&client.post(&resend, json!({})).await, 200);

        let again = receiver.next_notification().await;
        assert_eq!(again.body, first.body);
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(answer["id"], first.header("webhook-id"));
        let read = with_attempts(&client, &delivered, 2).await;
        assert_eq!((&read["state"], &read["attemptCount"]), (&json!("delivered"), &json!(2)));
    }

    /// One that is sent again has the whole schedule before it.
    async fn a_notification_sent_again_in_vain_is_tried_from_the_start(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.answer_with(500);
        deliver(&client, &platform.courier().await).await;
        receiver.next_notification().await;
        only(&client, &webhook, "failed").await;
        platform.advance(SignedDuration::from_secs(6));
        receiver.next_notification().await;
        let failed = attempted(&client, &webhook, 2).await;
        let due = |notification: &Value| notification["nextAttemptAt"].as_str().unwrap().to_owned();
        assert!(due(&failed).starts_with("2020-04-02T11:05:"), "{failed}");

        let resend = format!("{}/resend", iri(&failed));
        client.post(&resend, json!({})).await.expect(200);
        receiver.next_notification().await;

        let failed = attempted(&client, &webhook, 3).await;
        assert!(due(&failed).starts_with("2020-04-02T11:00:1"), "{failed}");
    }

    /// "Recover all failed since a time", and what happened while the webhook was disabled: each
    /// once, and at once: numbered or not.
    async fn a_shop_recovers_what_failed_and_what_it_missed(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let act = async |action: &str, body: Value| {
            let path = format!("{}/{action}", iri(&webhook));
            client.post(&path, body).await
        };
        receiver.answer_with(500);
        let too_early = deliver(&client, &courier).await;
        receiver.next_notification().await;
        only(&client, &webhook, "failed").await;
        platform.advance(SignedDuration::from_secs(1));
        let since = "2020-04-02T11:00:01+02:00";
        let failed = deliver(&client, &courier).await;
        receiver.next_notification().await;
        until_all(&client, &webhook, "failed", 2).await;
        act("disable", json!({})).await.expect(200);
        let refused = act("recover", json!({ "since": since })).await;
        assert_error(&refused, 409);
        assert_eq!(refused.json["code"], "webhook_disabled");
        let missed = deliver(&client, &courier).await;
        let picked = client.create_delivery(order()).await;
        courier.complete(iri(&picked["pickup"])).await;
        receiver.answer_with(204);
        act("enable", json!({})).await.expect(200);

        let recovered = json_ld(&act("recover", json!({ "since": since })).await, 200);

        assert_eq!(
            recovered,
            json!({
                "@context": "/api/contexts/WebhookRecovery",
                "@type": "WebhookRecovery",
                "since": since,
                "recovered": 2,
            })
        );
        let mut told = vec![object(&receiver).await, object(&receiver).await];
        told.sort();
        let mut expected = vec![failed, missed];
        expected.sort();
        assert_eq!(told, expected);
        until_all(&client, &webhook, "delivered", 2).await;
        let again = act("recover", json!({ "since": since })).await.expect(200);
        assert_eq!(again["recovered"], 0);
        let all = act("recover", json!({ "since": "2020-04-02T00:00:00Z" })).await.expect(200);
        assert_eq!(all["recovered"], 1);
        assert_eq!(object(&receiver).await, too_early);
        assert!(receiver.so_far().await.is_empty());
    }

    async fn a_recovery_begins_at_an_instant(platform: &Platform) {
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
        // An offset of 9 minutes and 21 seconds can't be written.
        for (since, written) in [
            ("0165-06-25T01:03:06Z", "0165-06-25T01:03:06+00:00"),
            ("0000-01-01t00:00:00z", "0000-01-01T00:00:00+00:00"),
            ("2020-04-02T09:00:00.5Z", "2020-04-02T11:00:00+02:00"),
        ] {
            let recovered = client.post(&recover, json!({ "since": since })).await;
            assert_eq!(json_ld(&recovered, 200)["since"], written);
        }
    }

    /// "A resource of another store answers 404": whatever is asked of it.
    async fn nobody_else_looks_at_notifications(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let operator = platform.operator().await;
        let colleague = operator.create_client(&platform.store, &["tasks"]).await;
        let colleague = platform.client_of(&colleague, &["tasks"]).await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&client, &platform.courier().await).await;
        let notification = only(&client, &webhook, "delivered").await;
        let list = format!("{}/notifications", iri(&webhook));
        let recover = format!("{}/recover", iri(&webhook));
        let since = json!({ "since": "2020-04-02T00:00:00Z" });
        let resend = format!("{}/resend", iri(&notification));

        for other in [&other, &colleague] {
            assert_error(&other.get(&list).await, 404);
            assert_error(&other.post(&recover, since.clone()).await, 404);
            assert_error(&other.get(iri(&notification)).await, 404);
            assert_error(&other.post(&resend, json!({})).await, 404);
        }
        let stranger = platform.stranger();
        assert_error(&stranger.get(&list).await, 401);
        assert_error(&stranger.get(iri(&notification)).await, 401);
        let unknown = "/api/notifications/01932e5c-9f4a-7000-8000-00000000000a";
        assert_error(&client.get(unknown).await, 404);
        client.delete(iri(&webhook)).await.expect(204);
        assert_error(&client.get(iri(&notification)).await, 404);
    }
}

/// The notifications of a webhook in a state, once there are so many.
async fn until_all(client: &ApiClient, webhook: &Value, state: &str, count: usize) -> Vec<Value> {
    let path = format!("{}/notifications?state={state}", iri(webhook));
    client
        .until(&path, |page| {
            let members = page["hydra:member"].as_array().unwrap();
            (members.len() == count).then(|| members.clone())
        })
        .await
}

/// The one notification of a webhook in a state, once it is in it.
async fn only(client: &ApiClient, webhook: &Value, state: &str) -> Value {
    until_all(client, webhook, state, 1).await.remove(0)
}

/// The one notification of a webhook, once so many attempts have failed.
async fn attempted(client: &ApiClient, webhook: &Value, count: u32) -> Value {
    let path = format!("{}/notifications?state=failed", iri(webhook));
    client
        .until(&path, |page| {
            let member = page["hydra:member"].get(0)?;
            (member["attemptCount"] == count).then(|| member.clone())
        })
        .await
}

/// A notification, once so many attempts are written down.
async fn with_attempts(client: &ApiClient, notification: &Value, count: usize) -> Value {
    client
        .until(iri(notification), |read| {
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

/// The IRI that the next notification tells of.
async fn object(receiver: &WebhookReceiver) -> String {
    let told = receiver.next_notification().await.json();
    told["data"]["object"].as_str().unwrap().to_owned()
}
