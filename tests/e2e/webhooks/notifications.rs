//! Which webhooks are notified of which events, and retries.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::time::timeout;

use super::{deliver, draft, iri};
use crate::harness::{Notification, Platform, WebhookReceiver};

/// A delay plus this ends just before the retry is due, because jitter only lengthens a delay.
const JUST_BEFORE: SignedDuration = SignedDuration::from_millis(-1);

/// Longer than the first retry delay of 5 s with its jitter.
const RETRY_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// How long to wait for a request after each advance of the clock: a moment first, because the
/// platform may record the failure after the first advance; then far longer than sending takes.
const ARRIVAL_TIMEOUTS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(8),
    Duration::from_secs(8),
];

on_both_databases! {
    /// "An event of a delivery goes to every enabled webhook, for that event, of every client of
    /// its store", and to no other.
    async fn an_event_goes_to_every_webhook_of_its_store_and_to_no_other(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let other_client = operator
            .create_client(&platform.store, &["deliveries"])
            .await;
        let other_client = platform.client_for(&other_client, &["deliveries"]).await;
        let client_of_other_store = platform.new_store_client().await;
        let mut receivers = Vec::new();
        for _ in 0..5 {
            receivers.push(WebhookReceiver::start().await);
        }
        let [own, second, other_clients, others, picked] = receivers.as_slice() else {
            unreachable!("five were started");
        };
        for (client, event, receiver) in [
            (&client, "delivery.completed", own),
            (&client, "delivery.completed", second),
            (&other_client, "delivery.completed", other_clients),
            (&client_of_other_store, "delivery.completed", others),
            (&client, "delivery.picked", picked),
            (&client, "delivery.cancelled", own),
        ] {
            client.create_webhook(event, receiver.url()).await;
        }
        let courier = platform.courier().await;

        let delivery = deliver(&client, &courier).await;
        let other_delivery = deliver(&client_of_other_store, &courier).await;

        let mut ids = Vec::new();
        for receiver in [own, second, other_clients] {
            let notification = receiver.next_notification().await;
            assert_eq!(
                content(&notification),
                (delivery.clone(), "delivery.completed".to_owned())
            );
            ids.push(notification.header("webhook-id").to_owned());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3);
        assert_eq!(
            content(&picked.next_notification().await),
            (delivery, "delivery.picked".to_owned())
        );
        assert_eq!(
            content(&others.next_notification().await),
            (other_delivery, "delivery.completed".to_owned())
        );

        // One more per store: no other notification was in flight before these.
        let last = deliver(&other_client, &courier).await;
        let last_other_delivery = deliver(&client_of_other_store, &courier).await;
        for receiver in [own, second, other_clients, picked] {
            assert_eq!(content(&receiver.next_notification().await).0, last);
        }
        assert_eq!(
            content(&others.next_notification().await).0,
            last_other_delivery
        );
        for receiver in &receivers {
            assert!(receiver.received().await.is_empty());
        }
    }

    /// Not before, and not again with the dropoff.
    async fn delivery_picked_is_sent_when_the_pickup_is_done(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        client
            .create_webhook("delivery.picked", receiver.url())
            .await;
        let first = client.create_delivery(draft()).await;
        let second = client.create_delivery(draft()).await;

        courier.complete(iri(&first["dropoff"])).await;
        courier.complete(iri(&second["pickup"])).await;
        let earliest = receiver.next_notification().await;
        courier.complete(iri(&second["pickup"])).await;
        courier.complete(iri(&second["dropoff"])).await;
        courier.complete(iri(&first["pickup"])).await;
        let next = receiver.next_notification().await;

        assert_eq!(
            content(&earliest),
            (iri(&second).to_owned(), "delivery.picked".to_owned())
        );
        assert_eq!(
            content(&next),
            (iri(&first).to_owned(), "delivery.picked".to_owned())
        );
        assert!(receiver.received().await.is_empty());
    }

    /// "From then on, whenever a subscribed event is triggered": earlier events are not sent.
    async fn a_webhook_is_not_notified_of_events_before_its_registration(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        deliver(&client, &courier).await;
        let delivery = client.create_delivery(draft()).await;
        courier.complete(iri(&delivery["pickup"])).await;
        for event in ["delivery.completed", "delivery.picked"] {
            client.create_webhook(event, receiver.url()).await;
        }

        courier.complete(iri(&delivery["dropoff"])).await;

        let expected = (iri(&delivery).to_owned(), "delivery.completed".to_owned());
        assert_eq!(content(&receiver.next_notification().await), expected);
        assert!(receiver.received().await.is_empty());
    }

    /// Retried on failure after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, jitter
    /// added; `webhook-id` "stable over retries".
    async fn a_failed_notification_is_retried_after_growing_delays(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        receiver.respond_with(500);
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let delays = [
            SignedDuration::from_secs(5),
            SignedDuration::from_mins(5),
            SignedDuration::from_mins(30),
            SignedDuration::from_hours(2),
            SignedDuration::from_hours(5),
            SignedDuration::from_hours(10),
            SignedDuration::from_hours(14),
            SignedDuration::from_hours(20),
            SignedDuration::from_hours(24),
        ];

        for delay in delays {
            assert_no_retry_before(platform, &receiver, delay).await;
            let again = next_retry(platform, delay, &receiver)
                .await
                .expect("the notification should be retried");

            assert_eq!(again.body, first.body, "{delay:#}");
            for header in ["webhook-id", "x-service-signature", "content-type"] {
                assert_eq!(again.header(header), first.header(header), "{delay:#}");
            }
        }
        platform.advance(SignedDuration::from_hours(24 * 30));
        let last = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(content(&receiver.next_notification().await).0, last);
        assert!(receiver.received().await.is_empty());
    }

    /// Every status but 2xx is a failure, redirects included, which are not followed. After a 2xx
    /// nothing is sent again.
    async fn a_2xx_is_a_success_and_any_other_status_a_failure(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;

        for status in [200, 201, 202, 204, 206, 299] {
            receiver.respond_with(status);
            let delivery = deliver(&client, &courier).await;
            assert_eq!(content(&receiver.next_notification().await).0, delivery);
            platform.advance(SignedDuration::from_secs(60));
        }
        let mut not_retried = Vec::new();
        for status in [
            300, 301, 304, 307, 400, 401, 404, 408, 422, 429, 500, 502, 503, 599,
        ] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client
                .create_webhook("delivery.picked", receiver.url())
                .await;
            receiver.respond_with(status);
            let delivery = client.create_delivery(draft()).await;
            courier.complete(iri(&delivery["pickup"])).await;
            let first = receiver.next_notification().await;
            receiver.respond_with(204);
            match next_retry(platform, RETRY_DELAY, &receiver).await {
                Some(again) => assert_eq!(
                    (content(&again), again.header("webhook-id")),
                    (content(&first), first.header("webhook-id")),
                    "{status}"
                ),
                None => not_retried.push(status),
            }
            assert_eq!(client.delete(iri(&webhook)).await.status, 204);
        }
        assert_eq!(not_retried, [0; 0]);
        let last = deliver(&client, &courier).await;
        assert_eq!(content(&receiver.next_notification().await).0, last);
        assert!(receiver.received().await.is_empty());
    }

    /// The target of a redirect is not called.
    async fn a_redirect_and_a_closed_connection_are_failures(platform: &Platform) {
        let target = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;

        for redirect in [Some(301), Some(302), Some(307), Some(308), None] {
            let receiver = WebhookReceiver::start().await;
            match redirect {
                Some(status) => receiver.respond_with_header(status, "location", target.url()),
                None => receiver.close_connections(),
            }
            let webhook = client
                .create_webhook("delivery.completed", receiver.url())
                .await;
            deliver(&client, &courier).await;
            let first = receiver.next_notification().await;
            let again = next_retry(platform, RETRY_DELAY, &receiver).await.unwrap();
            assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
            assert_eq!(client.delete(iri(&webhook)).await.status, 204);
        }

        client
            .create_webhook("delivery.completed", target.url())
            .await;
        let last = deliver(&client, &courier).await;
        assert_eq!(content(&target.next_notification().await).0, last);
        assert!(target.received().await.is_empty());
    }

    /// A 410 disables the webhook.
    async fn a_receiver_that_responds_with_410_gets_no_more_notifications(platform: &Platform) {
        let gone = WebhookReceiver::start().await;
        let other = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        for receiver in [&gone, &other] {
            client
                .create_webhook("delivery.completed", receiver.url())
                .await;
        }
        gone.respond_with(410);
        let first = deliver(&client, &courier).await;
        assert_eq!(content(&gone.next_notification().await).0, first);
        assert_eq!(content(&other.next_notification().await).0, first);

        // The 410 has been recorded long before the last of these.
        let mut last = first.clone();
        for _ in 0..4 {
            let again = gone.received().await;
            assert!(again.iter().all(|again| content(again).0 != first));
            platform.advance(RETRY_DELAY);
            last = deliver(&client, &courier).await;
            assert_eq!(content(&other.next_notification().await).0, last);
        }
        assert!(gone.received().await.is_empty(), "{last}");
        assert!(other.received().await.is_empty());
    }

    /// DELETE removes a webhook and cancels its notifications.
    async fn a_deleted_webhook_gets_no_more_notifications_not_even_pending_ones(platform: &Platform) {
        let deleted = WebhookReceiver::start().await;
        let other = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        let webhook = client
            .create_webhook("delivery.completed", deleted.url())
            .await;
        client
            .create_webhook("delivery.completed", other.url())
            .await;
        deleted.respond_with(500);
        let first = deliver(&client, &courier).await;
        assert_eq!(content(&deleted.next_notification().await).0, first);
        assert_eq!(content(&other.next_notification().await).0, first);

        assert_eq!(client.delete(iri(&webhook)).await.status, 204);

        for _ in 0..3 {
            platform.advance(SignedDuration::from_mins(10));
            let next = deliver(&client, &courier).await;
            assert_eq!(content(&other.next_notification().await).0, next);
        }
        assert!(deleted.received().await.is_empty());
        assert!(other.received().await.is_empty());
    }
}

/// The object and event of a notification.
#[track_caller]
fn content(notification: &Notification) -> (String, String) {
    let body = notification.json();
    let [object, event] = ["object", "event"].map(|member| {
        let text = body["data"][member].as_str();
        text.unwrap().to_owned()
    });
    assert_eq!(
        body,
        json!({ "data": { "object": object, "event": event } })
    );
    (object, event)
}

/// Fails if a failed notification is retried before its delay is over: the next request to the same
/// receiver must be that of a delivery completed meanwhile.
async fn assert_no_retry_before(
    platform: &Platform,
    receiver: &WebhookReceiver,
    delay: SignedDuration,
) {
    receiver.respond_with(204);
    for pause in [SignedDuration::ZERO, delay + JUST_BEFORE] {
        platform.advance(pause);
        let meanwhile = deliver(&platform.client().await, &platform.courier().await).await;
        let next = receiver.next_notification().await;
        assert_eq!(content(&next).0, meanwhile, "before {delay:#}");
    }
    receiver.respond_with(500);
}

/// The request that arrives once a delay is over; `None` if there is none. The delay begins when the
/// platform records the failure, which may be after the receiver got the attempt: so the clock is
/// advanced up to three times.
async fn next_retry(
    platform: &Platform,
    delay: SignedDuration,
    receiver: &WebhookReceiver,
) -> Option<Notification> {
    let mut arrival = std::pin::pin!(receiver.next_notification());
    for arrival_timeout in ARRIVAL_TIMEOUTS {
        platform.advance(delay);
        if let Ok(arrived) = timeout(arrival_timeout, &mut arrival).await {
            return Some(arrived);
        }
    }
    None
}
