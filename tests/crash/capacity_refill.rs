//! Capacity freed by outcomes is filled again with due notifications, of which a receiver that answers well gets more.

use crate::{all_processors, cluster::Cluster, dispatcher::Dispatcher};

/// The capacity that a dispatcher grants its only core, of which each webhook may use an eighth at first.
const CAPACITY: u32 = 256;
const CAPACITY_PER_WEBHOOK: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_successes_are_followed_by_more_due_notifications() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let due = 3 * CAPACITY_PER_WEBHOOK + 4;
    cluster.prepare_backlog(1, due).await;
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.grant(CAPACITY).await;

    let mut received = Vec::new();
    while received.iter().sum::<usize>() < due {
        let delivered = dispatcher.next().await.unwrap().notifications;
        received.push(delivered.len());
        let freed = u32::try_from(delivered.len()).unwrap();
        dispatcher.report(delivered).await.unwrap();
        dispatcher.grant(freed).await;
    }

    // The limit grows by one with each success while a quarter of it is in flight.
    assert_eq!(received, [32, 52, 16]);
    let states = "SELECT string_agg(DISTINCT state, ' ') FROM notifications";
    assert_eq!(cluster.postgres.query(states), "delivered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_recorded_even_if_claiming_more_fails() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    cluster.prepare_backlog(7, 2).await;
    let mut dispatcher = Dispatcher::open(&cluster).await;
    // Each webhook may use an eighth, rounded down: one.
    dispatcher.grant(15).await;
    let claimed = dispatcher.next().await.unwrap().notifications;
    assert_eq!(claimed.len(), 7);
    let postgres = &cluster.postgres;
    // Truncated: a claim cannot read them and fails.
    postgres.sql(r"UPDATE webhooks SET encrypted_retired_secrets = '\x00'");

    dispatcher.report(claimed).await.unwrap();

    let states = "SELECT state, count(*) FROM notifications GROUP BY state ORDER BY state";
    assert_eq!(postgres.query(states), "delivered|7\npending|7");
}
