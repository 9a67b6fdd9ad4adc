//! Capacity freed by outcomes is filled again with due notifications.

use crate::{all_processors, cluster::Cluster, dispatcher::Dispatcher};

/// The capacity that a dispatcher grants its only core, of which each webhook may use an eighth.
const CAPACITY: u32 = 256;
const CAPACITY_PER_WEBHOOK: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_outcomes_are_followed_by_as_many_due_notifications() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    cluster
        .prepare_backlog(1, 3 * CAPACITY_PER_WEBHOOK + 4)
        .await;
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.grant(CAPACITY).await;

    let mut received = Vec::new();
    for _ in 0..4 {
        let delivered = dispatcher.next().await.unwrap().notifications;
        received.push(delivered.len());
        let freed = u32::try_from(delivered.len()).unwrap();
        dispatcher.report(delivered).await.unwrap();
        dispatcher.grant(freed).await;
    }

    assert_eq!(received, [32, 32, 32, 4]);
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
