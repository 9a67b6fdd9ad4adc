//! What is told to whom, once or again.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::time::timeout;

use super::{deliver, iri, order};
use crate::harness::{AwkwardReceiver, Notification, Platform, WebhookReceiver};

/// A millisecond less than a wait, so that it is not over; jitter only adds to it.
const ALMOST: SignedDuration = SignedDuration::from_millis(-1);

/// The first wait, with room for jitter.
const WAIT: SignedDuration = SignedDuration::from_secs(10);

/// How long an arrival is awaited after each step of time: a moment, for a failure may have been
/// heard of too late for the first step; then far beyond what sending takes.
const PATIENCE: [Duration; 3] = [
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
        let colleague = operator
            .create_client(&platform.store, &["deliveries"])
            .await;
        let colleague = platform.client_of(&colleague, &["deliveries"]).await;
        let other_shop = platform.client_of_a_new_store().await;
        let mut receivers = Vec::new();
        for _ in 0..5 {
            receivers.push(WebhookReceiver::start().await);
        }
        let [own, second, colleagues, others, picked] = receivers.as_slice() else {
            unreachable!("five were started");
        };
        for (client, event, receiver) in [
            (&client, "delivery.completed", own),
            (&client, "delivery.completed", second),
            (&colleague, "delivery.completed", colleagues),
            (&other_shop, "delivery.completed", others),
            (&client, "delivery.picked", picked),
            (&client, "delivery.cancelled", own),
        ] {
            client.create_webhook(event, receiver.url()).await;
        }
        let courier = platform.courier().await;

        let delivery = deliver(&client, &courier).await;
        let of_the_other_shop = deliver(&other_shop, &courier).await;

        let mut ids = Vec::new();
        for receiver in [own, second, colleagues] {
            let notification = receiver.next_notification().await;
            assert_eq!(
                told(&notification),
                (delivery.clone(), "delivery.completed".to_owned())
            );
            ids.push(notification.header("webhook-id").to_owned());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3);
        assert_eq!(
            told(&picked.next_notification().await),
            (delivery, "delivery.picked".to_owned())
        );
        assert_eq!(
            told(&others.next_notification().await),
            (of_the_other_shop, "delivery.completed".to_owned())
        );

        // One more of each shop: nothing else was on its way before these.
        let last = deliver(&colleague, &courier).await;
        let last_of_the_other_shop = deliver(&other_shop, &courier).await;
        for receiver in [own, second, colleagues, picked] {
            assert_eq!(told(&receiver.next_notification().await).0, last);
        }
        assert_eq!(
            told(&others.next_notification().await).0,
            last_of_the_other_shop
        );
        for receiver in &receivers {
            assert!(receiver.so_far().await.is_empty());
        }
    }

    /// "Events: […] `delivery.picked` (pickup done)": when the pickup is done, not before, and
    /// not again with the dropoff.
    async fn a_pickup_is_told_when_it_is_done(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        client
            .create_webhook("delivery.picked", receiver.url())
            .await;
        let first = client.create_delivery(order()).await;
        let second = client.create_delivery(order()).await;

        courier.complete(iri(&first["dropoff"])).await;
        courier.complete(iri(&second["pickup"])).await;
        let earliest = receiver.next_notification().await;
        courier.complete(iri(&second["pickup"])).await;
        courier.complete(iri(&second["dropoff"])).await;
        courier.complete(iri(&first["pickup"])).await;
        let next = receiver.next_notification().await;

        assert_eq!(
            told(&earliest),
            (iri(&second).to_owned(), "delivery.picked".to_owned())
        );
        assert_eq!(
            told(&next),
            (iri(&first).to_owned(), "delivery.picked".to_owned())
        );
        assert!(receiver.so_far().await.is_empty());
    }

    /// "From then on, whenever a subscribed event is triggered": what happened before is not told.
    async fn what_happened_before_a_webhook_was_registered_is_not_told_to_it(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        deliver(&client, &courier).await;
        let delivery = client.create_delivery(order()).await;
        courier.complete(iri(&delivery["pickup"])).await;
        for event in ["delivery.completed", "delivery.picked"] {
            client.create_webhook(event, receiver.url()).await;
        }

        courier.complete(iri(&delivery["dropoff"])).await;

        let expected = (iri(&delivery).to_owned(), "delivery.completed".to_owned());
        assert_eq!(told(&receiver.next_notification().await), expected);
        assert!(receiver.so_far().await.is_empty());
    }

    /// Retried on failure after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, jitter
    /// added; `webhook-id` "stable over retries".
    async fn a_failed_notification_is_sent_again_after_growing_waits(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        receiver.answer_with(500);
        deliver(&client, &platform.courier().await).await;
        let first = receiver.next_notification().await;
        let waits = [
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

        for wait in waits {
            assert_quiet_before(platform, &receiver, wait).await;
            let again = sent_again(platform, wait, receiver.next_notification())
                .await
                .expect("it is sent again");

            assert_eq!(again.body, first.body, "{wait:#}");
            for header in ["webhook-id", "x-service-signature", "content-type"] {
                assert_eq!(again.header(header), first.header(header), "{wait:#}");
            }
        }
        platform.advance(SignedDuration::from_hours(24 * 30));
        let last = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(told(&receiver.next_notification().await).0, last);
        assert!(receiver.so_far().await.is_empty());
    }

    /// Whatever is not 2xx is a failure, a redirection too, which is not followed; after 2xx
    /// nothing is sent again.
    async fn any_2xx_ends_it_and_anything_else_is_a_failure(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;

        for received in [200, 201, 202, 204, 206, 299] {
            receiver.answer_with(received);
            let delivery = deliver(&client, &courier).await;
            assert_eq!(told(&receiver.next_notification().await).0, delivery);
            platform.advance(SignedDuration::from_secs(60));
        }
        let mut not_retried = Vec::new();
        for failed in [
            300, 301, 304, 307, 400, 401, 404, 408, 422, 429, 500, 502, 503, 599,
        ] {
            let receiver = WebhookReceiver::start().await;
            let webhook = client
                .create_webhook("delivery.picked", receiver.url())
                .await;
            receiver.answer_with(failed);
            let delivery = client.create_delivery(order()).await;
            courier.complete(iri(&delivery["pickup"])).await;
            let first = receiver.next_notification().await;
            receiver.answer_with(204);
            match sent_again(platform, WAIT, receiver.next_notification()).await {
                Some(again) => assert_eq!(
                    (told(&again), again.header("webhook-id")),
                    (told(&first), first.header("webhook-id")),
                    "{failed}"
                ),
                None => not_retried.push(failed),
            }
            assert_eq!(client.delete(iri(&webhook)).await.status, 204);
        }
        assert_eq!(not_retried, [0; 0]);
        let last = deliver(&client, &courier).await;
        assert_eq!(told(&receiver.next_notification().await).0, last);
        assert!(receiver.so_far().await.is_empty());
    }

    /// A redirection is a failure, and where it leads is not called; so is a connection that
    /// breaks off.
    async fn a_redirection_is_a_failure_and_so_is_a_broken_connection(platform: &Platform) {
        let elsewhere = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;

        for receiver in [
            AwkwardReceiver::redirecting(301, elsewhere.url()).await,
            AwkwardReceiver::redirecting(302, elsewhere.url()).await,
            AwkwardReceiver::redirecting(307, elsewhere.url()).await,
            AwkwardReceiver::redirecting(308, elsewhere.url()).await,
            AwkwardReceiver::hanging_up().await,
        ] {
            let webhook = client
                .create_webhook("delivery.completed", receiver.url())
                .await;
            deliver(&client, &courier).await;
            let first = receiver.next_id().await;
            let again = sent_again(platform, WAIT, receiver.next_id()).await;
            assert_eq!(again, Some(first));
            assert_eq!(client.delete(iri(&webhook)).await.status, 204);
        }

        client
            .create_webhook("delivery.completed", elsewhere.url())
            .await;
        let last = deliver(&client, &courier).await;
        assert_eq!(told(&elsewhere.next_notification().await).0, last);
        assert!(elsewhere.so_far().await.is_empty());
    }

    /// 410: the receiver is gone, and its webhook disabled. "An event […] goes to every
    /// **enabled** webhook".
    async fn a_receiver_that_answers_that_it_is_gone_is_told_nothing_more(platform: &Platform) {
        let gone = WebhookReceiver::start().await;
        let kept = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        for receiver in [&gone, &kept] {
            client
                .create_webhook("delivery.completed", receiver.url())
                .await;
        }
        gone.answer_with(410);
        let first = deliver(&client, &courier).await;
        assert_eq!(told(&gone.next_notification().await).0, first);
        assert_eq!(told(&kept.next_notification().await).0, first);

        // By the last of these it has long been heard of.
        let mut last = first.clone();
        for _ in 0..4 {
            let again = gone.so_far().await;
            assert!(again.iter().all(|again| told(again).0 != first));
            platform.advance(WAIT);
            last = deliver(&client, &courier).await;
            assert_eq!(told(&kept.next_notification().await).0, last);
        }
        assert!(gone.so_far().await.is_empty(), "{last}");
        assert!(kept.so_far().await.is_empty());
    }

    /// DELETE ends a webhook; "what is owed to it is dropped".
    async fn a_deleted_webhook_is_told_nothing_more_not_even_what_is_owed(platform: &Platform) {
        let deleted = WebhookReceiver::start().await;
        let kept = WebhookReceiver::start().await;
        let client = platform.client().await;
        let courier = platform.courier().await;
        let webhook = client
            .create_webhook("delivery.completed", deleted.url())
            .await;
        client
            .create_webhook("delivery.completed", kept.url())
            .await;
        deleted.answer_with(500);
        let first = deliver(&client, &courier).await;
        assert_eq!(told(&deleted.next_notification().await).0, first);
        assert_eq!(told(&kept.next_notification().await).0, first);

        assert_eq!(client.delete(iri(&webhook)).await.status, 204);

        for _ in 0..3 {
            platform.advance(SignedDuration::from_mins(10));
            let next = deliver(&client, &courier).await;
            assert_eq!(told(&kept.next_notification().await).0, next);
        }
        assert!(deleted.so_far().await.is_empty());
        assert!(kept.so_far().await.is_empty());
    }
}

/// What a notification says: of which resource, which event.
#[track_caller]
fn told(notification: &Notification) -> (String, String) {
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

/// Fails if what has just failed comes again before a wait is over: what is sent meanwhile to the
/// same receiver is the next to come.
async fn assert_quiet_before(
    platform: &Platform,
    receiver: &WebhookReceiver,
    wait: SignedDuration,
) {
    receiver.answer_with(204);
    for pause in [SignedDuration::ZERO, wait + ALMOST] {
        platform.advance(pause);
        let meanwhile = deliver(&platform.client().await, &platform.courier().await).await;
        let next = receiver.next_notification().await;
        assert_eq!(told(&next).0, meanwhile, "before {wait:#}");
    }
    receiver.answer_with(500);
}

/// What arrives once a wait is over. A wait begins when the platform hears of the failure, which
/// may be after this receiver has heard of the attempt: so time passes in up to three steps.
/// `None` if nothing has arrived by then.
async fn sent_again<T>(
    platform: &Platform,
    wait: SignedDuration,
    arrival: impl Future<Output = T>,
) -> Option<T> {
    let mut arrival = std::pin::pin!(arrival);
    for patience in PATIENCE {
        platform.advance(wait);
        if let Ok(arrived) = timeout(patience, &mut arrival).await {
            return Some(arrived);
        }
    }
    None
}
