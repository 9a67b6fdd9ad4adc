//! Transactions that lose against others are tried again: nobody outside hears of it.

use std::time::Duration;

use crate::{
    ONE_AT_A_TIME, caller::iri, cluster::Cluster, load::Load, oracle, postgres::Postgres,
    receiver::Receiver,
};

/// How many creators and as many completers, each of whom completes both tasks of a delivery at
/// the same instant.
const WORKERS: usize = 6;

/// How many requests are acknowledged.
const REQUESTS: u64 = 240;

/// `SQLSTATE` 40001, as often as PostgreSQL can find a reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialization_failures_are_tried_again() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let settings = "-c default_transaction_isolation=serializable";
    let Some(postgres) = Postgres::start_with(settings) else {
        return;
    };
    let url = postgres.url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let receiver = Receiver::start().await;
    let shop = cluster.shop().await;
    shop.subscribe(receiver.url()).await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);

    load.acknowledges(REQUESTS).await;
    let (acknowledged, failures) = load.finish().await;

    let figures = oracle::judge(&acknowledged, &shop, &receiver, oracle::TAKEN_OVER).await;
    let lost = cluster.postgres.logged("could not serialize access");
    crate::say(&format!(
        "serializable: {lost} transactions lost and were tried again; failed requests: {}; {figures}",
        failures.len()
    ));
    assert!(lost > 0, "there was no race to lose");
    // Whoever loses for ten seconds in a row is told to come again.
    assert!(10 * failures.len() < lost, "{failures:#?}");
    for failure in &failures {
        assert!(failure.is_to_come_again(), "{failure}");
    }
    figures.assert_nothing_lost(2 * figures.deliveries);
}

/// `SQLSTATE` 40P01: someone holds a task and wants its delivery, which core holds and wants
/// the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_victim_of_a_deadlock_tries_again() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let receiver = Receiver::start().await;
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    shop.subscribe(receiver.url()).await;
    let delivery = shop.create_delivery().await.unwrap();
    board.complete(iri(&delivery["pickup"])).await.unwrap();

    let id = delivery["id"].as_str().unwrap();
    // Who waits longer before it looks for a deadlock is not its victim.
    let holder = cluster.postgres.session(&format!(
        "SET deadlock_timeout = '30s';
         BEGIN;
         SELECT 'held' FROM tasks WHERE delivery_id = '{id}' FOR UPDATE;
         DO $$ BEGIN
             WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted) LOOP
                 PERFORM pg_sleep(0.01);
             END LOOP;
         END $$;
         SELECT 'both' FROM deliveries WHERE id = '{id}' FOR UPDATE;
         COMMIT;"
    ));
    holder.wait_for("held").await;
    let done = board.complete(iri(&delivery["dropoff"])).await.unwrap();
    holder.wait_for("both").await;

    assert_eq!(done["status"], "DONE");
    assert_eq!(cluster.postgres.logged("deadlock detected"), 1);
    let owed = [iri(&delivery).to_owned()].into();
    let told = |told: &crate::receiver::Told| told.missing(&owed).is_empty();
    assert!(receiver.wait(Duration::from_secs(30), told).await);
    assert_eq!(receiver.so_far().total, 1);
}
