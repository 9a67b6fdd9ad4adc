//! Numbers without gaps or doubles, whoever does what at the same time.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;

use super::{catch_up, iri, once_numbered, order};
use crate::harness::{ApiClient, Database, Platform, Twin};

/// How many deliveries are completed at once, with two events each.
const DELIVERIES: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_one_core_are_numbered_from_1_to_n() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let board = platform
        .client_of(&platform.operator_client, &["tasks:all"])
        .await;

    complete_at_once(std::slice::from_ref(&client), &[board]).await;

    assert_numbered(&client).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_two_cores_are_numbered_from_1_to_n() {
    let Some([first, second]) = Twin::start_two().await else {
        return;
    };
    let clients = [first.client().await, second.client().await];
    let boards = [first.dispatch_board().await, second.dispatch_board().await];

    complete_at_once(&clients, &boards).await;

    for client in &clients {
        assert_numbered(client).await;
    }
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_core_that_numbers_ends_the_other_goes_on() {
    let Some([first, second]) = Twin::start_two().await else {
        return;
    };
    let (client, board) = (second.client().await, second.dispatch_board().await);
    complete_at_once(
        std::slice::from_ref(&client),
        &[first.dispatch_board().await],
    )
    .await;
    assert_numbered(&client).await;

    first.stop().await;
    let delivery = client.create_delivery(order()).await;
    for task in ["pickup", "dropoff"] {
        let done = format!("{}/done", iri(&delivery[task]));
        board.put(&done, json!({})).await.expect(200);
    }

    let last = i64::try_from(2 * DELIVERIES).unwrap();
    once_numbered(&client, last + 2).await;
    let events = catch_up(&client, last).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| (event["number"].as_i64().unwrap(), event["event"].clone()))
        .collect();
    assert_eq!(
        told,
        [
            (last + 1, json!("delivery.picked")),
            (last + 2, json!("delivery.completed")),
        ]
    );
    second.stop().await;
}

/// Completes the tasks of many deliveries at the same moment, by turns through each of some cores.
async fn complete_at_once(clients: &[ApiClient], boards: &[ApiClient]) {
    let created = (0..DELIVERIES).map(|index| {
        let client = &clients[index % clients.len()];
        client.create_delivery(order())
    });
    let created = join_all(created).await;
    let completed = created.iter().enumerate().flat_map(|(index, delivery)| {
        ["pickup", "dropoff"]
            .into_iter()
            .enumerate()
            .map(move |(task, kind)| {
                let board = boards[(index + task) % boards.len()].clone();
                let done = format!("{}/done", iri(&delivery[kind]));
                async move { board.put(&done, json!({})).await.expect(200) }
            })
    });
    join_all(completed).await;
}

/// Fails unless the log has both events of every delivery, numbered 1, 2, 3 and so on.
async fn assert_numbered(client: &ApiClient) {
    let count = 2 * DELIVERIES;
    let last = i64::try_from(count).unwrap();
    once_numbered(client, last).await;

    let events = catch_up(client, 0).await;

    let numbers: Vec<_> = events
        .iter()
        .filter_map(|event| event["number"].as_i64())
        .collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    let facts: BTreeSet<_> = events
        .iter()
        .map(|event| (event["object"].to_string(), event["event"].to_string()))
        .collect();
    assert_eq!(facts.len(), count);
}
