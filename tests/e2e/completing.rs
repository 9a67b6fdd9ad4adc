//! "States and transitions": a task from `TODO` to `DONE`, a delivery completed by its second.

use std::collections::{BTreeMap, BTreeSet};

use proto::task::Status as TaskStatus;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::Code;

use crate::harness::{
    ApiClient, Platform, Twin, WebhookReceiver,
    assertions::{assert_error, json_ld},
    iri,
};

/// How many deliveries have both their tasks completed at the same instant.
const RACES: usize = 20;

on_both_databases! {
    /// "The `status` property changes from `TODO` to `DONE`." `PUT /api/tasks/{id}/done`: "body
    /// `{}`; 200 the task, `DONE`; again: 200, unchanged, no second event".
    async fn a_task_is_done_over_grpc_or_rest_and_stays_as_it_is(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        client
            .create_webhook("delivery.picked", receiver.url())
            .await;
        let courier = platform.courier().await;
        let board = dispatch_board(platform).await;
        let delivery = client.create_delivery(order()).await;
        let (pickup, dropoff) = (iri(&delivery["pickup"]), iri(&delivery["dropoff"]));

        let before = json_ld(&client.get(pickup).await, 200);
        platform.advance(jiff::SignedDuration::from_mins(1));
        let completed = courier.complete(pickup).await;
        assert_eq!(format!("/api/{}", completed.name), pickup);
        assert_eq!(completed.status(), TaskStatus::Done);
        let done = json_ld(&client.get(pickup).await, 200);
        assert_eq!(before["status"], "TODO");
        assert_eq!(done, changed(&before, &done));

        // Again, both ways, and later.
        platform.advance(jiff::SignedDuration::from_mins(1));
        assert_eq!(courier.complete(pickup).await, completed);
        assert_eq!(
            json_ld(&board.put(&format!("{pickup}/done"), json!({})).await, 200),
            done
        );

        let before = json_ld(&client.get(dropoff).await, 200);
        let answer = board.put(&format!("{dropoff}/done"), json!({})).await;
        let done = json_ld(&answer, 200);
        assert_eq!(
            (&before["status"], &done["status"]),
            (&json!("TODO"), &json!("DONE"))
        );
        assert_eq!(done, changed(&before, &done));
        assert_eq!(json_ld(&client.get(dropoff).await, 200), done);
        platform.advance(jiff::SignedDuration::from_mins(1));
        assert_eq!(
            json_ld(&board.put(&format!("{dropoff}/done"), json!({})).await, 200),
            done
        );
        assert_eq!(courier.complete(dropoff).await.status(), TaskStatus::Done);
        assert_eq!(json_ld(&client.get(dropoff).await, 200), done);

        let mut events = BTreeSet::new();
        for _ in 0..2 {
            let notification = receiver.next_notification().await.json();
            assert_eq!(notification["data"]["object"], delivery["@id"]);
            events.insert(notification["data"]["event"].to_string());
        }
        assert_eq!(
            events,
            BTreeSet::from([
                "\"delivery.completed\"".to_owned(),
                "\"delivery.picked\"".to_owned()
            ])
        );
        assert_nothing_more(&client, &board, &receiver).await;
    }

    /// "Either task may be completed first […]. A delivery is completed by its second completed
    /// task, whichever it is, exactly once."
    async fn a_delivery_is_completed_by_its_second_task_whichever_it_is(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let courier = platform.courier().await;

        for order_of_tasks in [["pickup", "dropoff"], ["dropoff", "pickup"]] {
            let [first, second] = order_of_tasks;
            let other = client.create_delivery(order()).await;
            let delivery = client.create_delivery(order()).await;

            courier.complete(iri(&delivery[first])).await;
            courier.complete(iri(&delivery[first])).await;
            assert_eq!(
                statuses(&client, &delivery).await,
                order_of_tasks
                    .map(|task| (task, if task == first { "DONE" } else { "TODO" }))
                    .into()
            );
            // Another delivery's completion is told first: one task alone completes nothing.
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
        assert_nothing_more(&client, &dispatch_board(platform).await, &receiver).await;
    }

    /// Scope `tasks:all`: "read and complete any task"; `tasks`: "read own tasks".
    async fn a_task_is_completed_by_those_with_the_scope_tasks_all_alone(platform: &Platform) {
        let client = platform.client().await;
        let board = dispatch_board(platform).await;
        let courier = platform.courier().await;
        let delivery = client.create_delivery(order()).await;
        let done = format!("{}/done", iri(&delivery["pickup"]));

        let admin = platform
            .client_of(&platform.operator_client, &["admin"])
            .await;
        for without_scope in [&client, &admin] {
            let refused = without_scope.put(&done, json!({})).await;
            assert_error(&refused, 403);
            assert_eq!(
                refused.header("www-authenticate"),
                r#"Bearer error="insufficient_scope", scope="tasks:all""#
            );
        }
        let refused = platform.stranger().put(&done, json!({})).await;
        assert_error(&refused, 401);
        assert!(refused.header("www-authenticate").starts_with("Bearer"));
        assert_eq!(
            json_ld(&board.get(iri(&delivery["pickup"])).await, 200)["status"],
            "TODO"
        );

        for unknown in ["01932e5c-9f4a-7000-8000-00000000000a", "1", "%2e%2e", "x"] {
            let answer = board
                .put(&format!("/api/tasks/{unknown}/done"), json!({}))
                .await;
            assert_error(&answer, 404);
        }
        let delivery_id = delivery["id"].as_str().unwrap();
        assert_error(
            &board
                .put(&format!("/api/tasks/{delivery_id}/done"), json!({}))
                .await,
            404,
        );
        let unknown = courier
            .try_to_complete("/api/tasks/01932e5c-9f4a-7000-8000-00000000000a")
            .await
            .unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);

        let answer = board.get(&done).await;
        assert_error(&answer, 405);
        assert_eq!(answer.header("allow"), "PUT, OPTIONS");
    }

    /// "Completion of a delivery emits the event `delivery.completed`": one, "exactly once", when
    /// both tasks are completed at the same instant, over gRPC and REST, several times each.
    async fn both_tasks_at_the_same_instant_complete_a_delivery_once(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        for event in ["delivery.completed", "delivery.picked"] {
            client.create_webhook(event, receiver.url()).await;
        }
        let board = dispatch_board(platform).await;
        let deliveries = create(&client, RACES).await;

        let mut racing = JoinSet::new();
        for delivery in &deliveries {
            for task in ["pickup", "dropoff", "pickup", "dropoff"] {
                let (board, done) = (board.clone(), format!("{}/done", iri(&delivery[task])));
                racing.spawn(async move { board.put(&done, json!({})).await });
            }
        }
        for answer in racing.join_all().await {
            assert_eq!(json_ld(&answer, 200)["status"], "DONE");
        }

        assert_told_once(
            &deliveries,
            &["delivery.completed", "delivery.picked"],
            &receiver,
        )
        .await;
        assert_nothing_more(&client, &board, &receiver).await;
    }
}

/// The same, each task over a core of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_tasks_at_the_same_instant_on_different_cores_complete_a_delivery_once() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let receiver = WebhookReceiver::start().await;
    let client = twins[0].client().await;
    let boards = [
        twins[0].dispatch_board().await,
        twins[1].dispatch_board().await,
    ];
    twins[1]
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
    for answer in racing.join_all().await {
        assert_eq!(json_ld(&answer, 200)["status"], "DONE");
    }

    assert_told_once(&deliveries, &["delivery.completed"], &receiver).await;
    assert_nothing_more(&client, &boards[1], &receiver).await;
    for twin in twins {
        twin.stop().await;
    }
}

fn order() -> Value {
    json!({
        "pickup": { "address": "44 Rue de Rivoli, 75004 Paris" },
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "2020-04-03 13:00" },
    })
}

/// A program of the platform's own that completes tasks over REST.
async fn dispatch_board(platform: &Platform) -> ApiClient {
    platform
        .client_of(&platform.operator_client, &["tasks:all"])
        .await
}

async fn create(client: &ApiClient, count: usize) -> Vec<Value> {
    let mut creating = JoinSet::new();
    for _ in 0..count {
        let client = client.clone();
        creating.spawn(async move { client.create_delivery(order()).await });
    }
    creating.join_all().await
}

/// The task as it was, but for its status and when it was updated.
fn changed(before: &Value, done: &Value) -> Value {
    let mut expected = before.clone();
    expected["status"] = json!("DONE");
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

/// Each event of each delivery, under one `webhook-id`.
async fn assert_told_once(deliveries: &[Value], events: &[&str], receiver: &WebhookReceiver) {
    let mut ids = BTreeSet::new();
    let mut told = BTreeSet::new();
    for _ in 0..deliveries.len() * events.len() {
        let notification = receiver.next_notification().await;
        let data = notification.json()["data"].clone();
        told.insert((data["object"].to_string(), data["event"].to_string()));
        ids.insert(notification.header("webhook-id").to_owned());
    }
    let owed = deliveries.iter().flat_map(|delivery| {
        events
            .iter()
            .map(|event| (delivery["@id"].to_string(), json!(event).to_string()))
    });
    assert_eq!(told, owed.collect());
    assert_eq!(ids.len(), told.len());
}

/// One delivery more is the next that the receiver hears of.
async fn assert_nothing_more(client: &ApiClient, board: &ApiClient, receiver: &WebhookReceiver) {
    let last = client.create_delivery(order()).await;
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
