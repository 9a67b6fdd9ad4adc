//! Places that outcomes have freed: filled again by the transaction that records them.

use crate::{ONE_AT_A_TIME, cluster::Cluster, dispatcher::Dispatcher};

/// What a dispatcher grants its only core: each webhook may have an eighth of it.
const CREDIT: u32 = 256;
const PLACES: usize = 32;

/// A core and a dispatcher of a test's own, to which so many are due of each of some webhooks.
async fn owing(webhooks: usize, each: usize) -> Option<Cluster> {
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
             state, attempts, restarted_after, due_at, created_at)
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, 0, number, number
         FROM webhooks, generate_series(1, {each}) AS number;
         UPDATE webhooks SET was_slow = false, next_due_at = 1"
    ));
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_confirmed_together_with_as_many_more_that_are_due() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = owing(1, 3 * PLACES + 4).await else {
        return;
    };
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.report(CREDIT, Vec::new()).await;

    let mut exchanged = Vec::new();
    loop {
        let response = dispatcher.next().await.unwrap();
        exchanged.push((response.recorded.len(), response.notifications.len()));
        let delivered = response.notifications;
        if delivered.is_empty() {
            break;
        }
        let credit = u32::try_from(delivered.len()).unwrap();
        dispatcher.report(credit, delivered).await;
    }

    assert_eq!(exchanged, [(0, 32), (32, 32), (32, 32), (32, 4), (4, 0)]);
    let states = "SELECT string_agg(DISTINCT state, ' ') FROM notifications";
    assert_eq!(cluster.postgres.query(states), "delivered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_recorded_whatever_keeps_more_from_being_claimed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = owing(8, 2).await else {
        return;
    };
    // A place each, and no credit left.
    let mut dispatcher = Dispatcher::open(&cluster).await;
    dispatcher.report(8, Vec::new()).await;
    let taken = dispatcher.next().await.unwrap().notifications;
    assert_eq!(taken.len(), 8);
    let postgres = &cluster.postgres;
    postgres.sql(r"UPDATE webhooks SET sealed_retired_secrets = '\x00'");

    dispatcher.report(8, taken).await;
    let confirmed = dispatcher.next().await.unwrap();

    let sizes = (confirmed.recorded.len(), confirmed.notifications.len());
    assert_eq!(sizes, (8, 0));
    let states = "SELECT state, count(*) FROM notifications GROUP BY state ORDER BY state";
    assert_eq!(postgres.query(states), "delivered|8\npending|8");
}
