//! `DELETE /api/deliveries/{id}`: cancelling, allowed while no task is done.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::Code;

use crate::harness::{
    ApiClient, Platform, Response, UNKNOWN_ID, WebhookReceiver,
    assertions::{assert_error, json_ld},
    definitions::TIME_SLOT,
    iri, short_draft as draft,
};

/// How many deliveries are cancelled and started concurrently.
const RACES: usize = 20;

on_both_databases! {
    /// 204, empty; `status` stays, `state` and `cancelledAt` are set on the delivery and both tasks. Again:
    /// 204, unchanged, no second notification.
    async fn a_cancelled_delivery_stays_readable_and_its_event_is_sent_once(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client.create_webhook("delivery.cancelled", receiver.url()).await;
        let delivery = client.create_delivery(draft()).await;
        let path = iri(&delivery);

        platform.advance(SignedDuration::from_mins(5));
        assert_no_content(&client.delete(path).await);
        platform.advance(SignedDuration::from_mins(5));
        assert_no_content(&client.delete(path).await);

        let mut expected = delivery.clone();
        expected["cancelledAt"] = json!("2020-04-02T11:05:00+02:00");
        expected["state"] = json!("cancelled");
        for task in ["pickup", "dropoff"] {
            expected[task]["state"] = json!("CANCELLED");
            expected[task]["cancelledAt"] = expected["cancelledAt"].clone();
            expected[task]["updatedAt"] = expected["cancelledAt"].clone();
        }
        assert_eq!(json_ld(&client.get(path).await, 200), expected);
        let task = json_ld(&client.get(iri(&delivery["pickup"])).await, 200);
        expected["pickup"]["@context"] = json!("/api/contexts/Task");
        assert_eq!(task, expected["pickup"]);
        assert_eq!(receiver.next_notification().await.json(), cancelled(path));
        assert_no_more_notifications(&client, &receiver).await;
    }

    /// Completing a cancelled task is 409 over REST and `FAILED_PRECONDITION` over gRPC, and it
    /// changes nothing.
    async fn a_task_of_a_cancelled_delivery_cannot_be_completed(platform: &Platform) {
        let client = platform.client().await;
        let board = platform.dispatch_board().await;
        let delivery = client.create_delivery(draft()).await;
        assert_no_content(&client.delete(iri(&delivery)).await);
        let before = json_ld(&client.get(iri(&delivery)).await, 200);

        for task in ["pickup", "dropoff"] {
            let done = format!("{}/done", iri(&delivery[task]));
            let rejected = board.put(&done, json!({})).await;
            assert_error(&rejected, 409);
            assert_eq!(rejected.json["code"], "task_state");
            let rejected = platform
                .courier()
                .await
                .try_complete(iri(&delivery[task]))
                .await
                .unwrap_err();
            assert_eq!(rejected.code(), Code::FailedPrecondition);
        }
        assert_eq!(json_ld(&client.get(iri(&delivery)).await, 200), before);
    }

    /// 409, for either task.
    async fn a_delivery_with_a_done_task_cannot_be_cancelled(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;

        for done in [&["pickup"][..], &["dropoff"], &["pickup", "dropoff"]] {
            let delivery = client.create_delivery(draft()).await;
            for task in done {
                courier.complete(iri(&delivery[*task])).await;
            }
            let before = json_ld(&client.get(iri(&delivery)).await, 200);

            let rejected = client.delete(iri(&delivery)).await;
            assert_error(&rejected, 409);
            assert_eq!(rejected.json["code"], "task_state");
            assert_eq!(json_ld(&client.get(iri(&delivery)).await, 200), before);
        }
    }

    /// Another store's delivery is not found; the required scope is `deliveries`.
    async fn a_delivery_is_cancelled_only_by_its_own_store(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;
        let delivery = client.create_delivery(draft()).await;
        let path = iri(&delivery);

        assert_error(&other.delete(path).await, 404);
        assert_error(&tasks_only.delete(path).await, 403);
        assert_error(&platform.anonymous_client().delete(path).await, 401);
        for unknown in [UNKNOWN_ID, "1", "%00"] {
            assert_error(&client.delete(&format!("/api/deliveries/{unknown}")).await, 404);
        }
        assert_eq!(json_ld(&client.get(path).await, 200), delivery);
    }

    /// Also if the dropoff's own window starts later than the slot, and only if the delivery had
    /// booked the slot.
    async fn a_cancelled_delivery_releases_its_booking_once(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let slot = "2020-04-03 12:00-14:00";
        // Created before the slot had a capacity.
        let unbooked = client.create_delivery(in_slot(slot)).await;
        operator.apply_time_slot(&platform.store, &format!("{TIME_SLOT}capacity = 2")).await;
        let mut late = in_slot(slot);
        late["dropoff"]["after"] = json!("2020-04-03 13:00");

        let first = client.create_delivery(late).await;
        let second = client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
        assert_no_content(&client.delete(iri(&unbooked)).await);
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);

        assert_no_content(&client.delete(iri(&first)).await);
        assert_no_content(&client.delete(iri(&first)).await);
        client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
        assert_no_content(&client.delete(iri(&second)).await);
        client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
    }

    async fn a_delivery_is_cancelled_or_started_but_never_both(platform: &Platform) {
        let client = platform.client().await;
        let board = platform.dispatch_board().await;
        race(&client, [&client, &client], [&board, &board]).await;
    }
}

/// The same on two cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_cancelled_or_started_on_two_cores_but_never_both() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let (client, other) = (platforms[0].client().await, platforms[1].client().await);
    let boards = [
        &platforms[0].dispatch_board().await,
        &platforms[1].dispatch_board().await,
    ];
    race(&client, [&client, &other], boards).await;
    Platform::stop_both(platforms).await;
}

/// Concurrently cancels deliveries and completes a task of each, twice each.
async fn race(client: &ApiClient, shops: [&ApiClient; 2], boards: [&ApiClient; 2]) {
    let receiver = WebhookReceiver::start().await;
    for event in ["delivery.cancelled", "delivery.picked"] {
        client.create_webhook(event, receiver.url()).await;
    }
    let mut deliveries = Vec::new();
    for _ in 0..RACES {
        deliveries.push(client.create_delivery(draft()).await);
    }

    let mut racing = JoinSet::new();
    for delivery in &deliveries {
        for (shop, board) in shops.into_iter().zip(boards) {
            let (shop, path) = (shop.clone(), iri(delivery).to_owned());
            racing.spawn(
                async move { (path.clone(), "delivery.cancelled", shop.delete(&path).await) },
            );
            let (board, path) = (board.clone(), iri(delivery).to_owned());
            let done = format!("{}/done", iri(&delivery["pickup"]));
            racing
                .spawn(async move { (path, "delivery.picked", board.put(&done, json!({})).await) });
        }
    }
    let mut succeeded = BTreeMap::new();
    for (path, event, response) in racing.join_all().await {
        if (200..300).contains(&response.status) {
            let previous = succeeded.insert(path.clone(), event);
            assert!(
                previous.is_none_or(|previous| previous == event),
                "{path}: cancelled and started"
            );
        } else {
            assert_error(&response, 409);
        }
    }

    let mut notifications = BTreeMap::new();
    for delivery in &deliveries {
        let read = json_ld(&client.get(iri(delivery)).await, 200);
        let is_cancelled = !read["cancelledAt"].is_null();
        let is_done = read["pickup"]["status"] == "DONE";
        assert_ne!(is_cancelled, is_done, "{read}");
        assert_eq!(
            succeeded[iri(delivery)] == "delivery.cancelled",
            is_cancelled
        );

        let data = receiver.next_notification().await.json()["data"].clone();
        let object = data["object"].as_str().unwrap().to_owned();
        assert_eq!(
            notifications.insert(object.clone(), data),
            None,
            "two notifications for {object}"
        );
    }
    for (path, event) in succeeded {
        assert_eq!(notifications[&path]["event"], event);
    }
    assert_no_more_notifications(client, &receiver).await;
}

/// Checks that the next notification is that of one more cancellation.
async fn assert_no_more_notifications(client: &ApiClient, receiver: &WebhookReceiver) {
    let last = client.create_delivery(draft()).await;
    assert_no_content(&client.delete(iri(&last)).await);
    assert_eq!(
        receiver.next_notification().await.json(),
        cancelled(iri(&last))
    );
    assert!(receiver.received().await.is_empty());
}

fn in_slot(slot: &str) -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "timeSlot": slot } })
}

fn cancelled(path: &str) -> Value {
    json!({ "data": { "object": path, "event": "delivery.cancelled" } })
}

#[track_caller]
fn assert_no_content(response: &Response) {
    let body = String::from_utf8_lossy(&response.body);
    assert_eq!((response.status, body.as_ref()), (204, ""));
}
