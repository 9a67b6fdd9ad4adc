//! Event numbers have no gaps and no duplicates under concurrent writes.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;

use super::{catch_up, draft, iri, wait_for_number};
use crate::harness::{ApiClient, Database, Platform};

/// The number of deliveries completed concurrently, with three events each.
const DELIVERIES: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_one_core_are_numbered_from_1_to_n() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let board = platform.dispatch_board().await;

    complete_concurrently(std::slice::from_ref(&client), &[board]).await;

    assert_numbered(&client).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_two_cores_are_numbered_from_1_to_n() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let clients = [first.client().await, second.client().await];
    let boards = [first.dispatch_board().await, second.dispatch_board().await];

    complete_concurrently(&clients, &boards).await;

    for client in &clients {
        assert_numbered(client).await;
    }
    Platform::stop_both([first, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_core_takes_over_numbering_when_one_shuts_down() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let (client, board) = (second.client().await, second.dispatch_board().await);
    complete_concurrently(
        std::slice::from_ref(&client),
        &[first.dispatch_board().await],
    )
    .await;
    assert_numbered(&client).await;

    first.stop().await;
    let delivery = client.create_delivery(draft()).await;
    for task in ["pickup", "dropoff"] {
        let done = format!("{}/done", iri(&delivery[task]));
        board.put(&done, json!({})).await.expect(200);
    }

    let last = i64::try_from(3 * DELIVERIES).unwrap();
    wait_for_number(&client, last + 3).await;
    let events = catch_up(&client, last).await;
    let numbered: Vec<_> = events
        .iter()
        .map(|event| (event["number"].as_i64().unwrap(), event["event"].clone()))
        .collect();
    assert_eq!(
        numbered,
        [
            (last + 1, json!("delivery.created")),
            (last + 2, json!("delivery.picked")),
            (last + 3, json!("delivery.completed")),
        ]
    );
    second.stop().await;
}

/// Completes the pickups of many deliveries concurrently, and then their dropoffs, alternating between the
/// cores.
async fn complete_concurrently(clients: &[ApiClient], boards: &[ApiClient]) {
    let created = (0..DELIVERIES).map(|index| {
        let client = &clients[index % clients.len()];
        client.create_delivery(draft())
    });
    let created = join_all(created).await;
    for (task, kind) in ["pickup", "dropoff"].into_iter().enumerate() {
        let completed = created.iter().enumerate().map(|(index, delivery)| {
            let board = &boards[(index + task) % boards.len()];
            let done = format!("{}/done", iri(&delivery[kind]));
            async move { board.put(&done, json!({})).await.expect(200) }
        });
        join_all(completed).await;
    }
}

/// Fails unless the log contains all events of every delivery, numbered from 1 without gaps.
async fn assert_numbered(client: &ApiClient) {
    let count = 3 * DELIVERIES;
    let last = i64::try_from(count).unwrap();
    wait_for_number(client, last).await;

    let events = catch_up(client, 0).await;

    let numbers: Vec<_> = events
        .iter()
        .filter_map(|event| event["number"].as_i64())
        .collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    let distinct: BTreeSet<_> = events
        .iter()
        .map(|event| (event["object"].to_string(), event["event"].to_string()))
        .collect();
    assert_eq!(distinct.len(), count);
}
