//! The retry schedule of failed notifications.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{create_proven_webhook, deliver, iri, wait_for_attempts};
use crate::harness::{ApiClient, Platform, WebhookReceiver};

/// The delay before each retry in seconds, without jitter.
const SCHEDULE: [i64; 9] = [
    5,
    5 * 60,
    30 * 60,
    2 * 3600,
    5 * 3600,
    10 * 3600,
    14 * 3600,
    20 * 3600,
    24 * 3600,
];

on_both_databases! {
    /// After a 429 or 503 the delay is the longer of the schedule's and `Retry-After`, up to 24 h.
    /// With other statuses the header is ignored.
    async fn retry_after_of_a_busy_receiver_can_delay_a_retry_but_not_bring_it_forward(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        for (status, retry_after, seconds) in [
            (429, "600", 600),
            (503, "600", 600),
            (429, "1", 5),
            (503, "0", 5),
            (503, "1000000", 24 * 3600),
            (429, "99999999999999999999", 24 * 3600),
            (503, "soon", 5),
            (500, "600", 5),
        ] {
            let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
            receiver.respond_with_header(status, "retry-after", retry_after);
            deliver(&client, &courier).await;
            receiver.next_notification().await;

            let failed = wait_for_attempts(&client, &webhook, 1).await;

            let delay = due(&failed).duration_since(platform.now()).as_secs();
            // Jitter adds up to a tenth.
            let expected = seconds..=seconds + seconds / 10;
            assert!(expected.contains(&delay), "{status} {retry_after}: {delay} s");
            client.delete(iri(&webhook)).await.expect(204);
            // The longest pause of a host that has accepted nothing.
            platform.advance(SignedDuration::from_mins(1));
        }
    }

    async fn a_busy_receiver_is_not_called_before_its_retry_after(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.respond_with_header(503, "retry-after", "1200");
        deliver(&client, &courier).await;
        let first = receiver.next_notification().await;
        wait_for_attempts(&client, &webhook, 1).await;
        receiver.respond_with(204);

        platform.advance(SignedDuration::from_secs(1199));
        let meanwhile = deliver(&client, &courier).await;
        let next = receiver.next_notification().await;
        assert_eq!(next.json()["data"]["object"], meanwhile);
        assert!(receiver.received().await.is_empty());

        platform.advance(SignedDuration::from_secs(121));
        let again = receiver.next_notification().await;
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    }

    /// The second retry is due after 5 minutes and up to a tenth more, 30 s, in whole seconds.
    async fn notifications_that_fail_at_the_same_instant_are_retried_at_different_times(
        platform: &Platform,
    ) {
        let receiver = WebhookReceiver::start().await;
        let (client, courier) = (platform.client().await, platform.courier().await);
        let webhook = create_proven_webhook(&client, &courier, &receiver).await;
        receiver.respond_with(500);
        for _ in 0..16 {
            deliver(&client, &courier).await;
        }
        wait_for_all(&client, &webhook, 1).await;

        platform.advance(SignedDuration::from_secs(6));
        let failed = wait_for_all(&client, &webhook, 2).await;

        assert_eq!(failed.len(), 16);
        let delays: BTreeSet<_> = failed
            .iter()
            .map(|failed| due(failed).duration_since(platform.now()).as_secs())
            .collect();
        assert!(delays.iter().all(|delay| (300..=330).contains(delay)), "{delays:?}");
        // With jitter over the whole 30 s, fewer occur less than once in 10⁹ runs.
        assert!(delays.len() >= 5, "{delays:?}");
    }

    /// Its attempts stay visible too.
    async fn a_notification_that_fails_every_attempt_is_exhausted_and_stays_visible(
        platform: &Platform,
    ) {
        let receiver = WebhookReceiver::start().await;
        receiver.respond_with(500);
        let client = platform.client().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        let delivery = deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let mut ended = vec![platform.now()];
        for (attempts, wait) in (1..).zip(SCHEDULE) {
            let client = platform.client().await;
            let failed = wait_for_attempts(&client, &webhook, attempts).await;
            assert_eq!(failed["state"], "failed");
            let until_due = due(&failed).duration_since(platform.now()).as_secs();
            assert!((wait..=wait + wait / 10).contains(&until_due), "{attempts}: {until_due} s");
            platform.advance(SignedDuration::from_secs(wait + wait / 10 + 1));
            ended.push(platform.now());
            let again = receiver.next_notification().await;
            assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        }

        let client = platform.client().await;
        wait_for_attempts(&client, &webhook, 10).await;
        let path = format!("{}/notifications?state=exhausted", iri(&webhook));
        let page = client.get(&path).await.expect(200);
        let id = first.header("webhook-id");
        let mut expected = json!({
            "@id": format!("/api/notifications/{id}"),
            "@type": "Notification",
            "id": id,
            "webhook": iri(&webhook),
            "event": "delivery.completed",
            "object": delivery,
            "state": "exhausted",
            "attemptCount": 10,
            "nextAttemptAt": null,
            "createdAt": in_paris(ended[0]),
            "finishedAt": in_paris(ended[9]),
        });
        assert_eq!(page["hydra:member"], json!([expected]));
        let mut read = client
            .wait_until(&format!("/api/notifications/{id}"), |read| {
                (read["attempts"].as_array().unwrap().len() == 10).then_some(read)
            })
            .await;
        for attempt in read["attempts"].as_array_mut().unwrap() {
            assert!(attempt["milliseconds"].take().is_u64());
        }
        expected["@context"] = json!("/api/contexts/Notification");
        expected["attempts"] = (1..)
            .zip(ended)
            .map(|(number, ended)| {
                json!({
                    "attemptNumber": number,
                    "endedAt": in_paris(ended),
                    "milliseconds": null,
                    "failure": "status",
                    "statusCode": 500,
                    "answer": "",
                })
            })
            .collect();
        assert_eq!(read, expected);
        platform.advance(SignedDuration::from_hours(48));
        receiver.respond_with(204);
        let next = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
        assert!(receiver.received().await.is_empty(), "it should not be retried");
    }
}

/// The notifications of a webhook, once each has this many attempts.
async fn wait_for_all(client: &ApiClient, webhook: &Value, attempts: u32) -> Vec<Value> {
    let path = format!("{}/notifications?itemsPerPage=100", iri(webhook));
    client
        .wait_until(&path, |mut page| {
            let notifications = page["hydra:member"].as_array_mut().unwrap();
            let is_done = |notification: &Value| notification["attemptCount"] == attempts;
            notifications
                .iter()
                .all(is_done)
                .then(|| std::mem::take(notifications))
        })
        .await
}

/// The time of the next attempt.
fn due(notification: &Value) -> Timestamp {
    let due = notification["nextAttemptAt"].as_str();
    due.unwrap().parse().unwrap()
}

/// A timestamp as in the demo shop's responses.
fn in_paris(instant: Timestamp) -> String {
    let instant = instant.in_tz("Europe/Paris").unwrap();
    instant.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}
