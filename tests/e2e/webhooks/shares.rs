//! Receivers that take long, and stores with many of them, leave capacity to others.

use std::time::Duration;

use super::counting_receiver::CountingReceiver;
use crate::harness::{ApiClient, Courier, Platform, WebhookReceiver, deliver};

const EVENT: &str = "delivery.completed";

/// How many notifications a dispatcher has in flight at most.
const CAPACITY: usize = 256;

/// Eight receivers, each with the limit of a healthy one, use all of the capacity.
const RECEIVERS: usize = 8;

/// How many notifications each lagging receiver gets after its first.
const DELIVERIES: usize = 20;

/// A receiver that takes this long lags.
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
    async fn eight_receivers_that_take_seconds_leave_capacity_to_one_that_answers(
        platform: &Platform,
    ) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let (other, receiver) = client_of_another_store(platform, &courier).await;
        let lagging = CountingReceiver::start_several(RECEIVERS, RESPONSE_TIME).await;
        for lagging in &lagging {
            client.create_webhook(EVENT, &lagging.url("/lagging")).await;
        }
        deliver(&client, &courier).await;
        // All count together.
        let all = &lagging[0];
        all.wait_for("/lagging", RECEIVERS).await;

        deliver_several(&client, &courier, DELIVERIES).await;
        // Enough to use their share; most still wait.
        all.wait_for("/lagging", RECEIVERS * 7).await;
        deliver(&other, &courier).await;

        receiver.next_notification().await;
        assert!(all.count("/lagging") < RECEIVERS * (1 + DELIVERIES), "all were sent first");
        // Lagging receivers have a quarter of the capacity, of which one store may use half.
        assert_eq!(all.take_max_open(), CAPACITY / 8);
    }
}
