//! A host is called at a limited rate until it has accepted a notification.

use futures_util::future::join_all;
use jiff::SignedDuration;

use super::{counting_receiver::CountingReceiver, draft, iri, wait_for_attempts};
use crate::harness::{ApiClient, Courier, Platform, deliver};

const EVENT: &str = "delivery.completed";

/// The most webhooks of a client.
const WEBHOOKS: usize = 100;

/// Creates deliveries and completes them at the same time.
async fn deliver_at_once(client: &ApiClient, courier: &Courier, count: usize) {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(client.create_delivery(draft()).await);
    }
    join_all(deliveries.iter().map(|delivery| async {
        for task in ["pickup", "dropoff"] {
            courier.complete(iri(&delivery[task])).await;
        }
    }))
    .await;
}

async fn create_webhooks(client: &ApiClient, url: &str) {
    for _ in 0..WEBHOOKS {
        client.create_webhook(EVENT, url).await;
    }
}

on_both_databases! {
    /// One shop has webhooks at a path that responds with 500, as a server of somebody else does that
    /// expects no webhooks. Those of another shop at the same host are not delayed.
    async fn a_host_gets_unproven_notifications_at_a_limited_rate_and_proven_ones_at_once(
        platform: &Platform,
    ) {
        let (shop, other) = (platform.client().await, platform.new_store_client().await);
        let courier = platform.courier().await;
        let host = CountingReceiver::start().await;
        other.create_webhook(EVENT, &host.url("/accepting")).await;
        deliver(&other, &courier).await;
        host.wait_for("/accepting", 1).await;
        create_webhooks(&shop, &host.url("/failing")).await;

        deliver_at_once(&shop, &courier, 3).await;

        host.wait_for("/failing", 1).await;
        for step in 1..=50 {
            platform.advance(SignedDuration::from_secs(12));
            deliver(&other, &courier).await;
            host.wait_for("/accepting", 1 + step).await;
            // Four one after the other, then pauses of 3, 6, 12, 24 and 48 s, then of a minute.
            let (count, most) = (host.count("/failing"), 8 + step / 5);
            assert!(count <= most, "{count} requests after {step} steps");
        }
        assert!(host.count("/failing") >= 8, "{}", host.count("/failing"));
    }

    /// The clock is not advanced.
    async fn a_host_that_accepts_its_first_notification_gets_all_others_at_once(
        platform: &Platform,
    ) {
        let shop = platform.client().await;
        let courier = platform.courier().await;
        let (host, proven) = (CountingReceiver::start().await, CountingReceiver::start().await);
        shop.create_webhook(EVENT, &proven.url("/proven")).await;
        deliver(&shop, &courier).await;
        proven.wait_for("/proven", 1).await;
        for path in ["/first", "/second"] {
            shop.create_webhook(EVENT, &host.url(path)).await;
        }
        host.hold_responses(true);

        deliver_at_once(&shop, &courier, 50).await;

        proven.wait_for("/proven", 51).await;
        host.wait_for_any().await;
        assert_eq!(host.count("/first") + host.count("/second"), 1);
        host.hold_responses(false);
        host.wait_for("/first", 50).await;
        host.wait_for("/second", 50).await;
    }

    /// Its DNS name may resolve to another owner's address by then.
    async fn a_host_that_only_fails_for_a_minute_is_called_at_a_limited_rate_again(platform: &Platform) {
        let shop = platform.client().await;
        let courier = platform.courier().await;
        let host = CountingReceiver::start().await;
        let accepting = shop.create_webhook(EVENT, &host.url("/accepting")).await;
        deliver(&shop, &courier).await;
        wait_for_attempts(&shop, &accepting, 1).await;
        let failing = shop.create_webhook(EVENT, &host.url("/failing")).await;
        deliver(&shop, &courier).await;
        wait_for_attempts(&shop, &failing, 1).await;
        for (attempts, wait) in [(2, 6), (3, 360)] {
            platform.advance(SignedDuration::from_secs(wait));
            wait_for_attempts(&shop, &failing, attempts).await;
        }

        deliver_at_once(&shop, &courier, 20).await;

        host.wait_for("/accepting", 22).await;
        // The last failure was the first of an unproven webhook: three more precede a pause.
        host.wait_for("/failing", 6).await;
        assert_eq!(host.count("/failing"), 6);
    }
}
