//! When the clock jumps an hour forwards or backwards, no lease expires early and there is no retry
//! storm.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;

use super::{create_proven_webhook, deliver, iri};
use crate::harness::{ApiClient, Platform, WebhookReceiver};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The number of notifications that fail together.
const NOTIFICATIONS: usize = 10;

on_both_databases! {
    /// A clock jump does not expire the lease of a notification in flight.
    async fn a_notification_in_flight_is_not_repeated_when_the_clock_jumps(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let responsive = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        client.create_webhook("delivery.completed", responsive.url()).await;
        receiver.hold_responses(true);
        let delivery = deliver(&client, &courier).await;
        let first = receiver.next_notification().await;
        responsive.next_notification().await;

        for jump in [HOUR, -HOUR] {
            platform.advance(jump);
            // The responsive receiver is notified after the jump; the silent one is not called again.
            let next = deliver(&platform.client().await, &platform.courier().await).await;
            assert_eq!(responsive.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.received().await.is_empty(), "after {jump:#}");
        }
        receiver.hold_responses(false);
        platform.advance(HOUR);

        let path = format!("{}/notifications?state=delivered", iri(&webhook));
        let notifications = platform
            .client()
            .await
            .wait_until(&path, |page| {
                let all = page["hydra:member"].as_array().unwrap().clone();
                (all.len() == 3).then_some(all)
            })
            .await;
        let attempts: Vec<_> = notifications
            .iter()
            .map(|notification| &notification["attemptCount"])
            .collect();
        assert_eq!(attempts, [1, 1, 1]);
        assert!(notifications.iter().any(|notification| notification["object"] == delivery));
        let later = receiver.received().await;
        assert_eq!(later.len(), 2);
        let first = first.header("webhook-id");
        assert!(later.iter().all(|later| later.header("webhook-id") != first));
    }

    /// Each notification due after a jump is attempted once, and its next attempt is scheduled by
    /// the new time. A backward jump causes no attempt.
    async fn a_clock_jump_causes_no_retry_storm(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = create_proven_webhook(&client, &courier, &receiver).await;
        receiver.respond_with(500);
        for _ in 0..NOTIFICATIONS {
            deliver(&client, &courier).await;
        }
        wait_until_attempted(platform, &webhook, 1).await;
        assert_eq!(request_counts(&receiver).await, vec![1; NOTIFICATIONS]);

        platform.advance(HOUR);
        wait_until_attempted(platform, &webhook, 2).await;
        assert_eq!(request_counts(&receiver).await, vec![1; NOTIFICATIONS]);

        // The next attempts are due in five minutes: neither jump makes them due.
        for jump in [SignedDuration::from_mins(4), -HOUR] {
            platform.advance(jump);
            receiver.respond_with(204);
            let next = deliver(&platform.client().await, &platform.courier().await).await;
            assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.received().await.is_empty(), "after {jump:#}");
        }
        platform.advance(HOUR + SignedDuration::from_mins(2));
        assert_eq!(wait_until_attempted(platform, &webhook, 3).await, NOTIFICATIONS);
        assert_eq!(request_counts(&receiver).await, vec![1; NOTIFICATIONS]);
    }
}

/// The number of requests for each notification since the last call.
async fn request_counts(receiver: &WebhookReceiver) -> Vec<usize> {
    let mut counts = BTreeMap::<_, usize>::new();
    for request in receiver.received().await {
        *counts
            .entry(request.header("webhook-id").to_owned())
            .or_default() += 1;
    }
    counts.into_values().collect()
}

/// Waits until [`NOTIFICATIONS`] notifications have this many attempts; returns how many do.
async fn wait_until_attempted(platform: &Platform, webhook: &Value, attempts: u64) -> usize {
    let client: ApiClient = platform.client().await;
    let path = format!("{}/notifications?itemsPerPage=100", iri(webhook));
    client
        .wait_until(&path, |page| {
            let all = page["hydra:member"].as_array().unwrap().iter();
            let count = all.filter(|one| one["attemptCount"] == attempts).count();
            (count >= NOTIFICATIONS).then_some(count)
        })
        .await
}
