//! Receivers that take long, and stores with many of them, leave capacity to others.

use std::time::Duration;

use super::counted_receiver::CountedReceiver;
use crate::harness::{ApiClient, Courier, Platform, WebhookReceiver, deliver};

const EVENT: &str = "delivery.completed";

/// How many notifications a dispatcher has in flight at most.
const CAPACITY: usize = 256;

/// Eight receivers, each with the limit of a healthy one, use all of the capacity.
const RECEIVERS: usize = 8;

/// A receiver that takes this long lags.
const RESPONSE_TIME: Duration = Duration::from_millis(1200);

async fn deliver_several(client: &ApiClient, courier: &Courier, count: usize) {
    for _ in 0..count {
        deliver(client, courier).await;
    }
}

/// A shop of another store, with a receiver that has accepted a notification.
async fn other_shop(platform: &Platform, courier: &Courier) -> (ApiClient, WebhookReceiver) {
    let shop = platform.new_store_client().await;
    let receiver = WebhookReceiver::start().await;
    shop.create_webhook(EVENT, receiver.url()).await;
    deliver(&shop, courier).await;
    receiver.next_notification().await;
    (shop, receiver)
}

on_both_databases! {
    async fn eight_receivers_that_take_seconds_leave_capacity_to_one_that_answers(
        platform: &Platform,
    ) {
        let shop = platform.client().await;
        let courier = platform.courier().await;
        let (other, receiver) = other_shop(platform, &courier).await;
        let lagging = CountedReceiver::start_several(RECEIVERS, RESPONSE_TIME).await;
        for lagging in &lagging {
            shop.create_webhook(EVENT, &lagging.url("/lagging")).await;
        }
        deliver(&shop, &courier).await;
        let all = &lagging[0];
        all.wait_for("/lagging", RECEIVERS).await;

        deliver_several(&shop, &courier, 20).await;
        all.wait_for("/lagging", RECEIVERS * 7).await;
        deliver(&other, &courier).await;

        receiver.next_notification().await;
        assert!(all.count("/lagging") < RECEIVERS * 21, "all were sent first");
        // A store may use half of the part of the capacity for lagging receivers, a quarter.
        assert_eq!(all.take_max_open(), CAPACITY / 8);
    }
}
