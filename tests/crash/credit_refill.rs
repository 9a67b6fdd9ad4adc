//! Capacity freed by outcomes is filled in the transaction that records them.

use crate::{ONE_AT_A_TIME, cluster::Cluster, dispatcher::Dispatcher};

/// The credit that a dispatcher grants its only core, of which each webhook may use an eighth.
const CREDIT: u32 = 256;
const CREDIT_PER_WEBHOOK: usize = 32;

/// A cluster with one core and no dispatcher, and `due` notifications for each of some webhooks.
async fn cluster_with_backlog(webhooks: usize, due: usize) -> Option<Cluster> {
    let mut cluster = Cluster::start().await?;
    let shop = cluster.shop().await;
    for _ in 0..webhooks {
        shop.subscribe("http://127.0.0.1:8000/hook").await;
    }
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.terminate().await;
    }
    cluster.cores[1].terminate().await;
    cluster.postgres.sql(&format!(
        "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
             state, attempts, attempts_at_resend, due_at, created_at)
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, 0, number, number
         FROM webhooks, generate_series(1, {due}) AS number;
         UPDATE webhooks SET was_slow = false, next_due_at = 1"
    ));
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_acknowledges_outcomes_and_dispatches_as_many_due_notifications() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = cluster_with_backlog(1, 3 * CREDIT_PER_WEBHOOK + 4).await else {
        return;
    };
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.report(CREDIT, Vec::new()).await;

    let mut responses = Vec::new();
    for _ in 0..10 {
        let response = dispatcher.next().await.unwrap();
        responses.push((response.acks.len(), response.notifications.len()));
        let delivered = response.notifications;
        if delivered.is_empty() {
            break;
        }
        let credit = u32::try_from(delivered.len()).unwrap();
        dispatcher.report(credit, delivered).await;
    }

    assert_eq!(responses, [(0, 32), (32, 32), (32, 32), (32, 4), (4, 0)]);
    let states = "SELECT string_agg(DISTINCT state, ' ') FROM notifications";
    assert_eq!(cluster.postgres.query(states), "delivered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_recorded_even_if_claiming_more_fails() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = cluster_with_backlog(8, 2).await else {
        return;
    };
    // One for each webhook, and no credit left.
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.report(8, Vec::new()).await;
    let claimed = dispatcher.next().await.unwrap().notifications;
    assert_eq!(claimed.len(), 8);
    let postgres = &cluster.postgres;
    // Truncated: a claim cannot read them and fails.
    postgres.sql(r"UPDATE webhooks SET encrypted_retired_secrets = '\x00'");

    dispatcher.report(8, claimed).await;
    let response = dispatcher.next().await.unwrap();

    let sizes = (response.acks.len(), response.notifications.len());
    assert_eq!(sizes, (8, 0));
    let states = "SELECT state, count(*) FROM notifications GROUP BY state ORDER BY state";
    assert_eq!(postgres.query(states), "delivered|8\npending|8");
}
