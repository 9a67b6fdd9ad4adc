//! Transactions that fail by conflicts are retried, invisibly to clients.

use crate::{
    caller::iri,
    checker::{self, RECOVERY_TIMEOUT},
    cluster::Cluster,
    counting_receiver::{CountingReceiver, Received},
    load::Load,
    one_processor,
    postgres::Postgres,
};

/// The number of creators, and of completers. Each completer completes both tasks of a delivery at
/// the same instant.
const WORKERS: usize = 6;

/// The number of successful requests.
const REQUESTS: u64 = 240;

/// `SQLSTATE` 40001, provoked by the strictest isolation level.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialization_failures_are_retried() {
    let _processor = one_processor().await;
    let settings = "-c default_transaction_isolation=serializable";
    let Some(postgres) = Postgres::start_with(settings) else {
        return;
    };
    let url = postgres.url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let shop = cluster.shop().await;
    let receiver = CountingReceiver::subscribed(&shop).await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);

    load.wait_for_successes(REQUESTS).await;
    let (acknowledged, failures) = load.finish().await;

    let query = |statement: &str| cluster.postgres.query(statement);
    let figures = checker::verify(&acknowledged, &shop, &receiver, query, RECOVERY_TIMEOUT).await;
    let conflicts = cluster.postgres.count_logged("could not serialize access");
    crate::report(&format!(
        "serializable: {conflicts} transactions failed and were retried; failed requests: {}; {figures}",
        failures.len()
    ));
    assert!(conflicts > 0, "no transaction conflicted");
    // A request whose retries fail for ten seconds gets a retryable error.
    assert!(10 * failures.len() < conflicts, "{failures:#?}");
    for failure in &failures {
        assert!(failure.is_retryable(), "{failure}");
    }
    figures.assert_nothing_lost();
}

/// `SQLSTATE` 40P01: another session has locked a task and waits for its delivery, while core has
/// locked the delivery and waits for the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_victim_of_a_deadlock_is_retried() {
    let _processor = one_processor().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;
    let delivery = shop.create_delivery().await.unwrap();
    board.complete(iri(&delivery["pickup"])).await.unwrap();

    let id = delivery["id"].as_str().unwrap();
    // The session with the longer deadlock timeout is not the victim.
    let session = cluster.postgres.session(&format!(
        "SET deadlock_timeout = '30s';
         BEGIN;
         SELECT 'locked' FROM tasks WHERE delivery_id = '{id}' FOR UPDATE;
         DO $$ BEGIN
             WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted) LOOP
                 PERFORM pg_sleep(0.01);
             END LOOP;
         END $$;
         SELECT 'both' FROM deliveries WHERE id = '{id}' FOR UPDATE;
         COMMIT;"
    ));
    session.wait_for("locked").await;
    let done = board.complete(iri(&delivery["dropoff"])).await.unwrap();
    session.wait_for("both").await;

    assert_eq!(done["status"], "DONE");
    assert_eq!(cluster.postgres.count_logged("deadlock detected"), 1);
    // The notification of a later delivery shows that this one causes no second notification.
    let later = shop.create_delivery().await.unwrap();
    board.complete_delivery(&later).await;
    let expected = [&delivery, &later].map(|delivery| iri(delivery).to_owned());
    let expected = expected.into();
    let are_notified = |received: &Received| received.missing(&expected).is_empty();
    assert!(receiver.wait(RECOVERY_TIMEOUT, are_notified).await);
    assert_eq!(receiver.received().total, 2);
}
