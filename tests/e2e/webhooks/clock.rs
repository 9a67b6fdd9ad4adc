//! "Clock jumps of an hour either way: no lease taken early, no retry storm."

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;

use super::{deliver, iri};
use crate::harness::{ApiClient, Platform, WebhookReceiver};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// How many notifications fail together.
const MANY: usize = 10;

on_both_databases! {
    /// What is on its way stays leased, whatever the clock says that decides what is due.
    async fn what_is_on_its_way_is_not_sent_again_when_the_clock_jumps(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let kept = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        client.create_webhook("delivery.completed", kept.url()).await;
        receiver.hold_answers(true);
        let delivery = deliver(&client, &courier).await;
        let first = receiver.next_notification().await;
        kept.next_notification().await;

        for jump in [HOUR, -HOUR] {
            platform.advance(jump);
            // Claimed or born after the jump; that of the receiver that is silent waits.
            let next = deliver(&platform.client().await, &platform.courier().await).await;
            assert_eq!(kept.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.so_far().await.is_empty(), "after {jump:#}");
        }
        receiver.hold_answers(false);
        platform.advance(HOUR);

        let path = format!("{}/notifications?state=delivered", iri(&webhook));
        let told = platform
            .client()
            .await
            .until(&path, |page| {
                let all = page["hydra:member"].as_array().unwrap().clone();
                (all.len() == 3).then_some(all)
            })
            .await;
        let attempts: Vec<_> = told.iter().map(|told| &told["attemptCount"]).collect();
        assert_eq!(attempts, [1, 1, 1]);
        assert!(told.iter().any(|told| told["object"] == delivery));
        let come = receiver.so_far().await;
        assert_eq!(come.len(), 2);
        let first = first.header("webhook-id");
        assert!(come.iter().all(|come| come.header("webhook-id") != first));
    }

    /// Each that is due after the jump is tried once, and is due again by the clock as it is
    /// then; nothing is tried because the clock goes back.
    async fn no_jump_of_the_clock_makes_a_storm_of_retries(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        receiver.answer_with(500);
        for _ in 0..MANY {
            deliver(&client, &courier).await;
        }
        tried(platform, &webhook, 1).await;
        assert_eq!(by_id(&receiver).await, vec![1; MANY]);

        platform.advance(HOUR);
        tried(platform, &webhook, 2).await;
        assert_eq!(by_id(&receiver).await, vec![1; MANY]);

        // They are due in five minutes: not now, and not an hour ago.
        for jump in [SignedDuration::from_mins(4), -HOUR] {
            platform.advance(jump);
            receiver.answer_with(204);
            let next = deliver(&platform.client().await, &platform.courier().await).await;
            assert_eq!(receiver.next_notification().await.json()["data"]["object"], next);
            assert!(receiver.so_far().await.is_empty(), "after {jump:#}");
        }
        platform.advance(HOUR + SignedDuration::from_mins(2));
        assert_eq!(tried(platform, &webhook, 3).await, MANY);
        assert_eq!(by_id(&receiver).await, vec![1; MANY]);
    }
}

/// How often each notification has come since it was last looked.
async fn by_id(receiver: &WebhookReceiver) -> Vec<usize> {
    let mut counts = BTreeMap::<_, usize>::new();
    for come in receiver.so_far().await {
        *counts
            .entry(come.header("webhook-id").to_owned())
            .or_default() += 1;
    }
    counts.into_values().collect()
}

/// Waits until many notifications have been tried so often; how many that are.
async fn tried(platform: &Platform, webhook: &Value, attempts: u64) -> usize {
    let client: ApiClient = platform.client().await;
    let path = format!("{}/notifications?itemsPerPage=100", iri(webhook));
    client
        .until(&path, |page| {
            let all = page["hydra:member"].as_array().unwrap().iter();
            let tried = all.filter(|told| told["attemptCount"] == attempts).count();
            (tried >= MANY).then_some(tried)
        })
        .await
}
