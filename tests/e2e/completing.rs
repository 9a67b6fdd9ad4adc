//! "States and transitions": a task from `TODO` to `DONE`, a delivery completed by its second task.

use std::collections::{BTreeMap, BTreeSet};

use delivery::Settings;
use proto::task::Status as TaskStatus;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::Code;

use crate::harness::{
    ApiClient, Database, Platform, UNKNOWN_ID, WebhookReceiver,
    assertions::{assert_error, json_ld},
    draft, iri, raw, reserve_addr,
};

/// How many deliveries have both tasks completed concurrently.
const RACES: usize = 20;

on_both_databases! {
    /// "The `status` property changes from `TODO` to `DONE`." `PUT /api/tasks/{id}/done`: "body
    /// `{}`; 200 the task, `DONE`; again: 200, unchanged, no second event".
    async fn a_task_is_completed_over_grpc_or_rest_and_repeats_change_nothing(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        client
            .create_webhook("delivery.picked", receiver.url())
            .await;
        let courier = platform.courier().await;
        let board = platform.dispatch_board().await;
        let delivery = client.create_delivery(draft()).await;
        let (pickup, dropoff) = (iri(&delivery["pickup"]), iri(&delivery["dropoff"]));

        let before = json_ld(&client.get(pickup).await, 200);
        platform.advance(jiff::SignedDuration::from_mins(1));
        let completed = courier.complete(pickup).await;
        assert_eq!(format!("/api/{}", completed.name), pickup);
        assert_eq!(completed.status(), TaskStatus::Done);
        let done = json_ld(&client.get(pickup).await, 200);
        assert_eq!(before["status"], "TODO");
        assert_eq!(done, as_done(&before, &done));

        // Repeated over both APIs, later.
        platform.advance(jiff::SignedDuration::from_mins(1));
        assert_eq!(courier.complete(pickup).await, completed);
        assert_eq!(
            json_ld(&board.put(&format!("{pickup}/done"), json!({})).await, 200),
            done
        );

        let before = json_ld(&client.get(dropoff).await, 200);
        let response = board.put(&format!("{dropoff}/done"), json!({})).await;
        let done = json_ld(&response, 200);
        assert_eq!(
            (&before["status"], &done["status"]),
            (&json!("TODO"), &json!("DONE"))
        );
        assert_eq!(done, as_done(&before, &done));
        assert_eq!(json_ld(&client.get(dropoff).await, 200), done);
        platform.advance(jiff::SignedDuration::from_mins(1));
        assert_eq!(
            json_ld(&board.put(&format!("{dropoff}/done"), json!({})).await, 200),
            done
        );
        assert_eq!(courier.complete(dropoff).await.status(), TaskStatus::Done);
        assert_eq!(json_ld(&client.get(dropoff).await, 200), done);

        assert_each_notified_once(
            &[delivery],
            &["delivery.completed", "delivery.picked"],
            &receiver,
        )
        .await;
        assert_no_more_notifications(&client, &board, &receiver).await;
    }

    /// "Either task may be completed first […]. A delivery is completed by its second completed
    /// task, whichever it is, exactly once."
    async fn a_delivery_is_completed_by_its_second_task_in_either_order(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let courier = platform.courier().await;

        for order_of_tasks in [["pickup", "dropoff"], ["dropoff", "pickup"]] {
            let [first, second] = order_of_tasks;
            let other = client.create_delivery(draft()).await;
            let delivery = client.create_delivery(draft()).await;

            courier.complete(iri(&delivery[first])).await;
            courier.complete(iri(&delivery[first])).await;
            assert_eq!(
                statuses(&client, &delivery).await,
                order_of_tasks
                    .map(|task| (task, if task == first { "DONE" } else { "TODO" }))
                    .into()
            );
            // One task does not complete a delivery: the next notification is another delivery's.
            courier.complete(iri(&other[first])).await;
            courier.complete(iri(&other[second])).await;
            let object = receiver.next_notification().await.json()["data"]["object"].clone();
            assert_eq!(object, other["@id"]);

            courier.complete(iri(&delivery[second])).await;
            assert_eq!(
                statuses(&client, &delivery).await,
                [("pickup", "DONE"), ("dropoff", "DONE")].into()
            );
            let object = receiver.next_notification().await.json()["data"]["object"].clone();
            assert_eq!(object, delivery["@id"]);
        }
        assert_no_more_notifications(&client, &platform.dispatch_board().await, &receiver).await;
    }

    async fn an_unknown_task_is_not_found_and_only_put_completes_a_task(platform: &Platform) {
        let client = platform.client().await;
        let board = platform.dispatch_board().await;
        let courier = platform.courier().await;
        let delivery = client.create_delivery(draft()).await;
        let done = format!("{}/done", iri(&delivery["pickup"]));

        let delivery_id = delivery["id"].as_str().unwrap();
        for unknown in [UNKNOWN_ID, delivery_id, "1", "%00", "%2e%2e", "x"] {
            let response = board
                .put(&format!("/api/tasks/{unknown}/done"), json!({}))
                .await;
            assert_error(&response, 404);
        }
        let unknown = format!("/api/tasks/{UNKNOWN_ID}");
        let rejected = courier.try_complete(&unknown).await.unwrap_err();
        assert_eq!(rejected.code(), Code::NotFound);

        let response = board.get(&done).await;
        assert_error(&response, 405);
        assert_eq!(response.header("allow"), "PUT, OPTIONS");
    }

    /// "Completion of a delivery emits the event `delivery.completed`": one, "exactly once", when
    /// both tasks are completed concurrently, twice each.
    async fn tasks_completed_concurrently_complete_a_delivery_once(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        for event in ["delivery.completed", "delivery.picked"] {
            client.create_webhook(event, receiver.url()).await;
        }
        let board = platform.dispatch_board().await;
        let deliveries = create(&client, RACES).await;

        let mut racing = JoinSet::new();
        for delivery in &deliveries {
            for task in ["pickup", "dropoff", "pickup", "dropoff"] {
                let (board, done) = (board.clone(), format!("{}/done", iri(&delivery[task])));
                racing.spawn(async move { board.put(&done, json!({})).await });
            }
        }
        for response in racing.join_all().await {
            assert_eq!(json_ld(&response, 200)["status"], "DONE");
        }

        assert_each_notified_once(
            &deliveries,
            &["delivery.completed", "delivery.picked"],
            &receiver,
        )
        .await;
        assert_no_more_notifications(&client, &board, &receiver).await;
    }
}

/// The same, with the two tasks of a delivery completed on different cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_completed_concurrently_on_two_cores_complete_a_delivery_once() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let receiver = WebhookReceiver::start().await;
    let client = platforms[0].client().await;
    let boards = [
        platforms[0].dispatch_board().await,
        platforms[1].dispatch_board().await,
    ];
    platforms[1]
        .client()
        .await
        .create_webhook("delivery.completed", receiver.url())
        .await;
    let deliveries = create(&client, RACES).await;

    let mut racing = JoinSet::new();
    for delivery in &deliveries {
        for (task, board) in ["pickup", "dropoff"].into_iter().zip(&boards) {
            let (board, done) = (board.clone(), format!("{}/done", iri(&delivery[task])));
            racing.spawn(async move { board.put(&done, json!({})).await });
        }
    }
    for response in racing.join_all().await {
        assert_eq!(json_ld(&response, 200)["status"], "DONE");
    }

    assert_each_notified_once(&deliveries, &["delivery.completed"], &receiver).await;
    assert_no_more_notifications(&client, &boards[1], &receiver).await;
    Platform::stop_both(platforms).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_count_each_task_once_although_it_is_completed_twice() {
    for database in Database::each() {
        let addr = reserve_addr();
        let with_metrics = |settings: &mut Settings| settings.health_listen = Some(addr);
        let platform = Platform::start_with(database, with_metrics).await;
        let (client, courier) = (platform.client().await, platform.courier().await);
        let delivery = client.create_delivery(draft()).await;

        for task in ["pickup", "pickup", "dropoff", "dropoff"] {
            courier.complete(iri(&delivery[task])).await;
        }

        let metrics = raw::metrics(addr).await;
        for line in [
            "delivery_deliveries_completed_total 1",
            r#"delivery_tasks_completed_total{type="pickup"} 1"#,
            r#"delivery_tasks_completed_total{type="dropoff"} 1"#,
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}");
        }
        platform.stop().await;
    }
}

async fn create(client: &ApiClient, count: usize) -> Vec<Value> {
    let mut creating = JoinSet::new();
    for _ in 0..count {
        let client = client.clone();
        creating.spawn(async move { client.create_delivery(draft()).await });
    }
    creating.join_all().await
}

/// The earlier task with the status, the state and `updatedAt` of the completed one.
fn as_done(before: &Value, done: &Value) -> Value {
    let mut expected = before.clone();
    expected["status"] = json!("DONE");
    expected["state"] = json!("DONE");
    expected["updatedAt"] = done["updatedAt"].clone();
    assert_ne!(before["updatedAt"], done["updatedAt"]);
    expected
}

async fn statuses(client: &ApiClient, delivery: &Value) -> BTreeMap<&'static str, &'static str> {
    let mut statuses = BTreeMap::new();
    for kind in ["pickup", "dropoff"] {
        let task = json_ld(&client.get(iri(&delivery[kind])).await, 200);
        let status = if task["status"] == "DONE" {
            "DONE"
        } else {
            "TODO"
        };
        assert_eq!(task["status"], status);
        statuses.insert(kind, status);
    }
    statuses
}

/// Checks that each event of each delivery arrives once, with a distinct `webhook-id`.
async fn assert_each_notified_once(
    deliveries: &[Value],
    events: &[&str],
    receiver: &WebhookReceiver,
) {
    let mut ids = BTreeSet::new();
    let mut notifications = BTreeSet::new();
    for _ in 0..deliveries.len() * events.len() {
        let notification = receiver.next_notification().await;
        notifications.insert(notification.json().to_string());
        ids.insert(notification.header("webhook-id").to_owned());
    }
    let expected = deliveries.iter().flat_map(|delivery| {
        events.iter().map(|event| {
            json!({ "data": { "object": delivery["@id"], "event": event } }).to_string()
        })
    });
    assert_eq!(notifications, expected.collect());
    assert_eq!(ids.len(), notifications.len());
}

/// Checks that the next notifications are those of one more delivery.
async fn assert_no_more_notifications(
    client: &ApiClient,
    board: &ApiClient,
    receiver: &WebhookReceiver,
) {
    let last = client.create_delivery(draft()).await;
    for task in ["dropoff", "pickup"] {
        json_ld(
            &board
                .put(&format!("{}/done", iri(&last[task])), json!({}))
                .await,
            200,
        );
    }
    loop {
        let data = receiver.next_notification().await.json()["data"].clone();
        assert_eq!(data["object"], last["@id"]);
        if data["event"] == "delivery.completed" {
            break;
        }
    }
}
