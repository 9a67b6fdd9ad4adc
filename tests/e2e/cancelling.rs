//! `DELETE /api/deliveries/{id}`: cancelling, while no task is done.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::Code;

use crate::harness::{
    Answer, ApiClient, Platform, Twin, WebhookReceiver,
    assertions::{assert_error, json_ld},
    iri,
};

/// How many deliveries are cancelled and begun at the same instant.
const RACES: usize = 20;

on_both_databases! {
    /// 204, empty; `status` stays, `cancelledAt` is set on the delivery and both tasks. Again:
    /// 204, unchanged, nobody is told twice.
    async fn a_cancelled_delivery_stays_readable_and_its_cancellation_is_told_once(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client.create_webhook("delivery.cancelled", receiver.url()).await;
        let delivery = client.create_delivery(order()).await;
        let path = iri(&delivery);

        platform.advance(SignedDuration::from_mins(5));
        assert_gone(&client.delete(path).await);
        platform.advance(SignedDuration::from_mins(5));
        assert_gone(&client.delete(path).await);

        let mut expected = delivery.clone();
        expected["cancelledAt"] = json!("2020-04-02T11:05:00+02:00");
        for task in ["pickup", "dropoff"] {
            expected[task]["cancelledAt"] = expected["cancelledAt"].clone();
            expected[task]["updatedAt"] = expected["cancelledAt"].clone();
        }
        assert_eq!(json_ld(&client.get(path).await, 200), expected);
        let task = json_ld(&client.get(iri(&delivery["pickup"])).await, 200);
        expected["pickup"]["@context"] = json!("/api/contexts/Task");
        assert_eq!(task, expected["pickup"]);
        assert_eq!(receiver.next_notification().await.json(), cancelled(path));
        assert_nothing_more(&client, &receiver).await;
    }

    /// "Completing a cancelled task: 409", over REST and gRPC, and it changes nothing.
    async fn a_task_of_a_cancelled_delivery_is_not_completed(platform: &Platform) {
        let client = platform.client().await;
        let board = platform.client_of(&platform.operator_client, &["tasks:all"]).await;
        let delivery = client.create_delivery(order()).await;
        assert_gone(&client.delete(iri(&delivery)).await);
        let before = json_ld(&client.get(iri(&delivery)).await, 200);

        for task in ["pickup", "dropoff"] {
            let done = format!("{}/done", iri(&delivery[task]));
            let refused = board.put(&done, json!({})).await;
            assert_error(&refused, 409);
            assert_eq!(refused.json["code"], "delivery_cancelled");
            let refused = platform
                .courier()
                .await
                .try_to_complete(iri(&delivery[task]))
                .await
                .unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition);
        }
        assert_eq!(json_ld(&client.get(iri(&delivery)).await, 200), before);
    }

    /// "allowed while no task is done, else 409", whichever task it is.
    async fn a_delivery_with_a_done_task_is_not_cancelled(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;

        for done in [&["pickup"][..], &["dropoff"], &["pickup", "dropoff"]] {
            let delivery = client.create_delivery(order()).await;
            for task in done {
                courier.complete(iri(&delivery[*task])).await;
            }
            let before = json_ld(&client.get(iri(&delivery)).await, 200);

            let refused = client.delete(iri(&delivery)).await;
            assert_error(&refused, 409);
            assert_eq!(refused.json["code"], "task_done");
            assert_eq!(json_ld(&client.get(iri(&delivery)).await, 200), before);
        }
    }

    /// Another store's delivery is as good as none; scope `deliveries`.
    async fn a_delivery_is_cancelled_by_its_own_store_alone(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let tasks_alone = platform.client_of(&platform.demo_client, &["tasks"]).await;
        let delivery = client.create_delivery(order()).await;
        let path = iri(&delivery);

        assert_error(&other.delete(path).await, 404);
        assert_error(&tasks_alone.delete(path).await, 403);
        assert_error(&platform.stranger().delete(path).await, 401);
        for unknown in ["01932e5c-9f4a-7000-8000-00000000000a", "1", "%00"] {
            assert_error(&client.delete(&format!("/api/deliveries/{unknown}")).await, 404);
        }
        assert_eq!(json_ld(&client.get(path).await, 200), delivery);
    }

    /// "a booked slot is given back": once, also when the dropoff's own window begins later than
    /// the slot, and not the place of one that took none.
    async fn a_cancelled_delivery_gives_its_place_back_once(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let slot = "2020-04-03 12:00-14:00";
        // Before places are counted.
        let uncounted = client.create_delivery(in_slot(slot)).await;
        operator.apply_time_slot(&platform.store, TWO_PLACES).await;
        let mut late = in_slot(slot);
        late["dropoff"]["after"] = json!("2020-04-03 13:00");

        let first = client.create_delivery(late).await;
        let second = client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
        assert_gone(&client.delete(iri(&uncounted)).await);
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);

        assert_gone(&client.delete(iri(&first)).await);
        assert_gone(&client.delete(iri(&first)).await);
        client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
        assert_gone(&client.delete(iri(&second)).await);
        client.create_delivery(in_slot(slot)).await;
        assert_eq!(client.post("/api/deliveries", in_slot(slot)).await.status, 400);
    }

    async fn a_delivery_is_cancelled_or_begun_but_never_both(platform: &Platform) {
        let client = platform.client().await;
        let board = platform.client_of(&platform.operator_client, &["tasks:all"]).await;
        race(&client, [&client, &client], [&board, &board]).await;
    }
}

/// The same, over two cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_cancelled_or_begun_on_different_cores_but_never_both() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let (client, other) = (twins[0].client().await, twins[1].client().await);
    let boards = [
        &twins[0].dispatch_board().await,
        &twins[1].dispatch_board().await,
    ];
    race(&client, [&client, &other], boards).await;
    for twin in twins {
        twin.stop().await;
    }
}

/// Cancels deliveries and completes a task of each at the same instant, twice each.
async fn race(client: &ApiClient, shops: [&ApiClient; 2], boards: [&ApiClient; 2]) {
    let receiver = WebhookReceiver::start().await;
    for event in ["delivery.cancelled", "delivery.picked"] {
        client.create_webhook(event, receiver.url()).await;
    }
    let mut deliveries = Vec::new();
    for _ in 0..RACES {
        deliveries.push(client.create_delivery(order()).await);
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
    let mut happened = BTreeMap::new();
    for (path, event, answer) in racing.join_all().await {
        if (200..300).contains(&answer.status) {
            let known = happened.insert(path.clone(), event);
            assert!(known.is_none_or(|known| known == event), "{path}: both");
        } else {
            assert_error(&answer, 409);
        }
    }

    let mut told = BTreeMap::new();
    for delivery in &deliveries {
        let read = json_ld(&client.get(iri(delivery)).await, 200);
        let is_cancelled = !read["cancelledAt"].is_null();
        let is_done = read["pickup"]["status"] == "DONE";
        assert_ne!(is_cancelled, is_done, "{read}");
        assert_eq!(
            happened[iri(delivery)] == "delivery.cancelled",
            is_cancelled
        );

        let data = receiver.next_notification().await.json()["data"].clone();
        let object = data["object"].as_str().unwrap().to_owned();
        assert_eq!(
            told.insert(object.clone(), data),
            None,
            "{object} was told twice"
        );
    }
    for (path, event) in happened {
        assert_eq!(told[&path]["event"], event);
    }
    assert_nothing_more(client, &receiver).await;
}

/// One cancellation more is the next that the receiver hears of.
async fn assert_nothing_more(client: &ApiClient, receiver: &WebhookReceiver) {
    let last = client.create_delivery(order()).await;
    assert_gone(&client.delete(iri(&last)).await);
    assert_eq!(
        receiver.next_notification().await.json(),
        cancelled(iri(&last))
    );
    assert!(receiver.so_far().await.is_empty());
}

const TWO_PLACES: &str = r#"
    name = "Tour"
    opening_hours = ["Mo-Su 12:00-14:00"]
    interval = "2 days"
    capacity = 2
"#;

fn order() -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "before": "tomorrow 13:00" } })
}

fn in_slot(slot: &str) -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "timeSlot": slot } })
}

fn cancelled(path: &str) -> Value {
    json!({ "data": { "object": path, "event": "delivery.cancelled" } })
}

#[track_caller]
fn assert_gone(answer: &Answer) {
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!((answer.status, body.as_ref()), (204, ""));
}
