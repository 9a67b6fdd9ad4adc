//! Transactions beside each other, which there are on `PostgreSQL` alone: who waits for whom.

use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::*;

/// A transaction that has done its work and is not committed yet.
struct Open<T> {
    release: Arc<Semaphore>,
    transaction: JoinHandle<T>,
}

impl<T> Open<T> {
    async fn commit(self) -> T {
        self.release.add_permits(1);
        self.transaction.await.unwrap()
    }
}

impl Shop {
    /// A delivery is completed by a transaction that is left open.
    async fn begin_to_complete(&self, now: Timestamp) -> Open<()> {
        let (storage, store_id) = (Arc::clone(&self.storage), self.store_id);
        let (done, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (told, awaited) = (Arc::clone(&done), Arc::clone(&release));
        let transaction = tokio::spawn(async move {
            let completed = storage.write(move |transaction| {
                let (told, awaited) = (Arc::clone(&told), Arc::clone(&awaited));
                Box::pin(async move {
                    let events = [EventName::DeliveryCompleted];
                    let of = DeliveryId::new();
                    let owed = record_events(transaction, store_id, of, &events, now).await?;
                    let owed: Vec<_> = owed.into_iter().map(|owed| (owed, None)).collect();
                    insert(transaction, &owed, LONG, now).await?;
                    told.add_permits(1);
                    let _released = awaited.acquire().await;
                    Ok(())
                })
            });
            completed.await.unwrap();
        });
        let _done = done.acquire().await.unwrap();
        Open {
            release,
            transaction,
        }
    }

    /// Whether a transaction waits for another.
    async fn is_any_waiting(&self) -> bool {
        let statement = Statement::from_string(
            DbBackend::Postgres,
            "SELECT COUNT(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        let row = self.storage.reader().query_one_raw(statement).await;
        let count: i64 = row.unwrap().unwrap().try_get_by_index(0).unwrap();
        count > 0
    }
}

/// What is added can't be seen by the claim that finds nothing more, so it leaves the place.
#[tokio::test]
async fn a_claim_keeps_the_place_of_whom_something_is_being_added() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    let webhook_id = shop.add_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(1, NOW).await;

    let adding = shop.begin_to_complete(NOW).await;
    assert_eq!(shop.claim(NOW).await.len(), 1, "it waits for nobody");
    adding.commit().await;

    assert_eq!(shop.place(webhook_id).await, Some(NOW));
    assert_eq!(shop.claim(NOW).await.len(), 1);
    assert!(shop.claim(NOW).await.is_empty());
    assert_eq!(shop.place(webhook_id).await, None);
}

/// Else it would be pending for ever.
#[tokio::test]
async fn a_webhook_is_disabled_after_what_is_just_being_added_and_drops_it() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    shop.add_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(3, NOW).await;
    let held = shop.claim_for(LONG, 1, NOW).await;

    // Its place is there already: nothing is written to it.
    let adding = shop.begin_to_complete(NOW).await;
    let gone = [(&held[0], failed(Failure::Status, Some(410)))];
    let is_reported = AtomicBool::new(false);
    let reporting = async {
        let counted = shop.report(&gone, NOW).await;
        is_reported.store(true, Ordering::SeqCst);
        counted
    };
    let committing = async {
        while !is_reported.load(Ordering::SeqCst) && !shop.is_any_waiting().await {
            tokio::task::yield_now().await;
        }
        adding.commit().await;
    };
    let (counted, ()) = tokio::join!(reporting, committing);

    assert_eq!(counted, 1);
    assert_eq!(shop.count("pending").await, 0);
    assert_eq!(shop.count("dropped").await, 3);
    assert_eq!(shop.count("given_up").await, 1);
}

/// Each has locked its own notification and waits for the webhook; neither for the other's.
#[tokio::test]
async fn outcomes_that_disable_a_webhook_at_the_same_moment_do_not_wait_for_each_other() {
    const TOGETHER: usize = 8;

    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for _ in 0..5 {
        shop.add_webhook().await;
        shop.has_answered(NOW).await;
        shop.complete(TOGETHER + 1, NOW).await;
        let held = shop.claim_for(LONG, 64, NOW).await;
        assert_eq!(held.len(), TOGETHER + 1);
        let report = async |held: &Held| {
            let gone = failed(Failure::Status, Some(410));
            shop.report(&[(held, gone)], NOW).await
        };

        let reports = futures_util::future::join_all(held[1..].iter().map(report)).await;

        assert_eq!(reports, [1; TOGETHER]);
        assert_eq!(shop.count("leased").await, 0);
        assert_eq!(shop.count("pending").await, 0);
    }
}

/// Nobody takes what another is taking, nor waits for it.
#[tokio::test]
async fn claims_at_the_same_moment_take_each_notification_once() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for _ in 0..8 {
        shop.add_webhook().await;
    }
    shop.has_answered(NOW).await;
    shop.complete(40, NOW).await;

    let mut ids = std::collections::HashSet::new();
    let mut count = 0;
    loop {
        let claims = (0..4).map(|_| shop.claim_for(LONG, 64, NOW));
        let held: Vec<_> = futures_util::future::join_all(claims)
            .await
            .into_iter()
            .flatten()
            .collect();
        if held.is_empty() {
            break;
        }
        count += held.len();
        ids.extend(held.iter().map(|(_, held)| held.id));
        shop.report_all(&held, &Outcome::Delivered, NOW).await;
    }
    assert_eq!((ids.len(), count), (320, 320));
    assert_eq!(shop.count("pending").await, 0);
}
