//! A response shows a delivery and its tasks as they were at one instant.

use serde_json::Value;

use crate::{
    caller::{Caller, iri},
    cluster::Cluster,
    one_processor,
};

/// A session locks the tasks until the reader waits for them, cancels the delivery, and unlocks the
/// tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_is_cancelled_while_it_is_read_is_shown_consistently_with_its_tasks() {
    let _processor = one_processor().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;

    for read in [Read::Delivery, Read::List] {
        let delivery = shop.create_delivery().await.unwrap();
        let id = delivery["id"].as_str().unwrap();
        let session = cluster.postgres.session(&format!(
            "BEGIN;
             LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE;
             SELECT 'locked';
             DO $$ BEGIN
                 WHILE NOT EXISTS (
                     SELECT FROM pg_locks WHERE relation = 'tasks'::regclass AND NOT granted
                 ) LOOP
                     PERFORM pg_sleep(0.01);
                 END LOOP;
             END $$;
             UPDATE deliveries SET cancelled_at = 1600000000000000 WHERE id = '{id}';
             UPDATE tasks SET cancelled_at = 1600000000000000 WHERE delivery_id = '{id}';
             COMMIT;
             SELECT 'cancelled';"
        ));
        session.wait_for("locked").await;
        let shown = read.send(&shop, iri(&delivery)).await;
        session.wait_for("cancelled").await;

        let tasks = ["pickup", "dropoff"].map(|task| &shown[task]["cancelledAt"]);
        assert_eq!(tasks, [&shown["cancelledAt"]; 2], "{read:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Delivery,
    List,
}

impl Read {
    /// The delivery with this IRI, the newest one.
    async fn send(self, shop: &Caller, delivery: &str) -> Value {
        match self {
            Self::Delivery => shop.get(delivery).await.unwrap(),
            Self::List => {
                let mut page = shop.get("/api/deliveries").await.unwrap();
                let newest = page["hydra:member"][0].take();
                assert_eq!(iri(&newest), delivery);
                newest
            }
        }
    }
}
