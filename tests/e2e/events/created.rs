//! `delivery.created`: in the event log and to subscribers, once for each delivery.

use serde_json::{Value, json};

use super::{catch_up, draft, iri, wait_for_number};
use crate::harness::{ApiClient, Platform, WebhookReceiver};

on_both_databases! {
    async fn a_subscriber_is_notified_of_each_delivery_of_its_store(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let receiver = WebhookReceiver::start().await;
        client.create_webhook("delivery.created", receiver.url()).await;

        let of_other = other.create_delivery(draft()).await;
        let mut expected = Vec::new();
        for _ in 0..3 {
            let delivery = client.create_delivery(draft()).await;
            expected.push(json!({ "data": { "object": iri(&delivery), "event": "delivery.created" } }));
        }

        let mut notified = Vec::new();
        for _ in 0..3 {
            notified.push(receiver.next_notification().await.json());
        }
        notified.sort_by_key(|body| body["data"]["object"].to_string());
        assert_eq!(notified, expected);
        wait_for_number(&other, 1).await;
        assert_eq!(created(&other).await, [iri(&of_other)]);
        assert_eq!(receiver.received().await.len(), 0);
    }

    async fn a_repeated_create_is_one_event(platform: &Platform) {
        let client = platform.client().await;
        let create = async || client.post_with_key("/api/deliveries", "basket-77", &draft()).await.expect(201);

        let first = create().await;
        assert_eq!(create().await, first);
        let refused = client.post("/api/deliveries", json!({})).await;
        assert_eq!(refused.status, 400);
        let second = client.create_delivery(draft()).await;
        wait_for_number(&client, 2).await;

        assert_eq!(created(&client).await, [iri(&first), iri(&second)]);
    }

    /// A webhook hears of what is created while it is enabled.
    async fn a_disabled_webhook_is_not_notified(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client.create_webhook("delivery.created", receiver.url()).await;
        let action = |name: &str| format!("{}/{name}", iri(&webhook));
        client.post(&action("disable"), json!({})).await.expect(200);
        client.create_delivery(draft()).await;
        wait_for_number(&client, 1).await;

        client.post(&action("enable"), json!({})).await.expect(200);
        let delivery = client.create_delivery(draft()).await;

        let notified = receiver.next_notification().await.json();
        assert_eq!(notified["data"]["object"], delivery["@id"]);
    }
}

/// Creates that arrive at two cores at once, and at once with changes of what they created.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_a_creation_comes_before_the_others_of_its_delivery() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let clients = [first.client().await, second.client().await];
    let receiver = WebhookReceiver::start().await;
    clients[0]
        .create_webhook("delivery.created", receiver.url())
        .await;

    let create_and_cancel = async |index: usize| {
        let delivery = clients[index % 2].create_delivery(draft()).await;
        let cancelled = clients[(index + 1) % 2].delete(iri(&delivery)).await;
        cancelled.expect(204);
        iri(&delivery).to_owned()
    };
    let mut deliveries = futures_util::future::join_all((0..40).map(create_and_cancel)).await;
    wait_for_number(&clients[0], 80).await;

    let log = catch_up(&clients[0], 0).await;
    for delivery in &deliveries {
        let events = log.iter().filter(|event| event["object"] == **delivery);
        let events: Vec<_> = events
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        assert_eq!(events, ["delivery.created", "delivery.cancelled"]);
    }
    let mut notified = Vec::new();
    for _ in &deliveries {
        let body = receiver.next_notification().await.json();
        notified.push(body["data"]["object"].as_str().unwrap().to_owned());
    }
    deliveries.sort_unstable();
    notified.sort_unstable();
    assert_eq!(notified, deliveries);
    Platform::stop_both([first, second]).await;
}

/// The deliveries whose creation is in the log.
async fn created(client: &ApiClient) -> Vec<Value> {
    let events = catch_up(client, 0).await.into_iter();
    let created = events.filter(|event| event["event"] == "delivery.created");
    created.map(|event| event["object"].clone()).collect()
}
