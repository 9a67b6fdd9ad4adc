//! Receivers that take long, and stores with many of them, leave capacity to others.

use std::time::Duration;

use serde_json::json;

use super::{counting_receiver::CountingReceiver, iri};
use crate::harness::{ApiClient, Courier, Platform, WebhookReceiver, deliver};

const EVENT: &str = "delivery.completed";

/// How many notifications a dispatcher has in flight at most.
const CAPACITY: usize = 256;

/// Slow receivers get one notification at a time: more of them than the share of a store.
const RECEIVERS: usize = 40;

/// How many notifications each slow receiver gets after its first.
const DELIVERIES: usize = 4;

/// A receiver that takes this long is slow.
const RESPONSE_TIME: Duration = Duration::from_millis(1200);

async fn deliver_several(client: &ApiClient, courier: &Courier, count: usize) {
    for _ in 0..count {
        deliver(client, courier).await;
    }
}

/// An API client of another store, and its receiver, which has accepted a notification.
async fn client_of_another_store(
    platform: &Platform,
    courier: &Courier,
) -> (ApiClient, WebhookReceiver) {
    let client = platform.new_store_client().await;
    let receiver = WebhookReceiver::start().await;
    client.create_webhook(EVENT, receiver.url()).await;
    deliver(&client, courier).await;
    receiver.next_notification().await;
    (client, receiver)
}

on_both_databases! {
    async fn forty_receivers_that_take_seconds_leave_capacity_to_one_that_answers(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let (other, receiver) = client_of_another_store(platform, &courier).await;
        let slow = CountingReceiver::start_several(RECEIVERS, RESPONSE_TIME).await;
        for slow in &slow {
            client.create_webhook(EVENT, &slow.url("/slow")).await;
        }
        deliver(&client, &courier).await;
        // All count together.
        let all = &slow[0];
        all.wait_for("/slow", RECEIVERS).await;

        deliver_several(&client, &courier, DELIVERIES).await;
        // Enough to use their share; most still wait.
        all.wait_for("/slow", RECEIVERS * 3).await;
        deliver(&other, &courier).await;

        receiver.next_notification().await;
        assert!(all.count("/slow") < RECEIVERS * (1 + DELIVERIES), "all were sent first");
        // Slow receivers have a quarter of the capacity, of which one store may use half.
        assert_eq!(all.take_max_open(), CAPACITY / 8);
    }

    /// At first it gets 32 at once. Each answer lets one more be in flight.
    async fn a_receiver_that_answers_well_gets_more_notifications_at_once(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = CountingReceiver::start_several(1, Duration::from_millis(300)).await.remove(0);
        let webhook = client.create_webhook(EVENT, &receiver.url("/hook")).await;
        deliver(&client, &courier).await;
        receiver.wait_for("/hook", 1).await;
        let path = |action: &str| format!("{}/{action}", iri(&webhook));
        client.post(&path("disable"), json!({})).await.expect(200);
        deliver_several(&client, &courier, 75).await;
        client.post(&path("enable"), json!({})).await.expect(200);

        let since = json!({ "since": "2020-04-02T00:00:00Z" });
        client.post(&path("recover"), since).await.expect(200);

        // The first 32 are answered, the others are not.
        receiver.wait_for("/hook", 1 + 32 + 1).await;
        receiver.hold_responses(true);
        receiver.wait_for("/hook", 1 + 75).await;
        assert!(receiver.take_max_open() > 32);
        receiver.hold_responses(false);
    }
}
