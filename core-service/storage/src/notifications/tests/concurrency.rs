//! Concurrent transactions, which only `PostgreSQL` has, and which of them wait.

use std::sync::Mutex;

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::{
    super::{claims::claim_from, eligibility},
    claims::counts,
    *,
};

/// A transaction that has run the first part of its work.
pub(super) struct OpenTransaction<T> {
    release: Arc<Semaphore>,
    transaction: JoinHandle<T>,
}

impl<T> OpenTransaction<T> {
    /// Runs the rest of the work, and commits.
    pub(super) async fn commit(self) -> T {
        self.release.add_permits(1);
        self.transaction.await.unwrap()
    }
}

impl TestStore {
    /// Begins a transaction and runs the first part of its work; the rest runs on commit.
    pub(super) async fn begin<T>(
        &self,
        first: impl Work<Result<(), Error>>,
        rest: impl Work<Result<T, Error>>,
    ) -> OpenTransaction<T>
    where
        T: Send + 'static,
    {
        let (first_done, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (done, released) = (Arc::clone(&first_done), Arc::clone(&release));
        let store = self.handle();
        let transaction = tokio::spawn(async move {
            store
                .write(move |transaction| async move {
                    first(transaction.clone()).await?;
                    done.add_permits(1);
                    let _permit = released.acquire().await;
                    rest(transaction).await
                })
                .await
        });
        let _done = first_done.acquire().await.unwrap();
        OpenTransaction {
            release,
            transaction,
        }
    }

    /// The same store, to be moved into a spawned future.
    pub(super) fn handle(&self) -> Self {
        Self {
            _directory: None,
            storage: Arc::clone(&self.storage),
            store_id: self.store_id,
            retries: Arc::clone(&self.retries),
        }
    }

    /// Completes a delivery in a transaction that is left open.
    async fn begin_completing(&self, now: Timestamp) -> OpenTransaction<()> {
        let store_id = self.store_id;
        self.begin(
            move |transaction| async move { complete_one(&transaction, store_id, now).await },
            move |_| async move { Ok(()) },
        )
        .await
    }

    /// Completes deliveries, with pre-leased notifications.
    async fn complete_pre_leased(&self, deliveries: u64, lease: Duration) {
        for _ in 0..deliveries {
            let mut new = self.record_completion(NOW).await;
            for new in &mut new {
                new.is_pre_leased = true;
            }
            self.write(move |transaction| async move {
                insert(&transaction, &new.clone(), lease, NOW).await
            })
            .await;
        }
    }

    /// Waits until a number of transactions wait for locks.
    pub(super) async fn wait_until_blocked(&self, expected: i64) {
        let waiting = async {
            while self.waiting().await < expected {
                tokio::task::yield_now().await;
            }
        };
        let minute = Duration::from_mins(1);
        tokio::time::timeout(minute, waiting)
            .await
            .expect("the transactions should wait for locks within a minute");
    }

    /// How many transactions wait for locks.
    async fn waiting(&self) -> i64 {
        let statement = Statement::from_string(
            DbBackend::Postgres,
            "SELECT COUNT(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        let row = self.storage.reader().query_one_raw(statement).await;
        row.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    /// Runs work concurrently with an open transaction, which commits once the work waits for it,
    /// or is done.
    pub(super) async fn commit_once_waiting<A, B>(
        &self,
        work: impl Future<Output = A>,
        open: OpenTransaction<B>,
    ) -> (A, B) {
        let is_done = AtomicBool::new(false);
        let work = async {
            let result = work.await;
            is_done.store(true, Ordering::SeqCst);
            result
        };
        let commit = async {
            while !is_done.load(Ordering::SeqCst) && self.waiting().await == 0 {
                tokio::task::yield_now().await;
            }
            open.commit().await
        };
        tokio::join!(work, commit)
    }

    /// How many transactions were retried.
    pub(super) fn retries(&self) -> usize {
        self.retries.load(Ordering::SeqCst)
    }
}

/// Completes a delivery, which enqueues one pending notification per webhook.
pub(super) async fn complete_one(
    transaction: &Session,
    store_id: StoreId,
    now: Timestamp,
) -> Result<(), Error> {
    let events = [EventName::DeliveryCompleted];
    let new = record_events(
        transaction,
        fixture::delivery_events(store_id, &events),
        now,
    )
    .await?;
    insert(transaction, &new, LONG_LEASE, now).await?;
    Ok(())
}

/// The claim does not see the uncommitted notification, so it must not move the webhook back.
#[tokio::test]
async fn a_claim_keeps_the_queue_position_of_a_webhook_during_an_insert() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    let webhook_id = store.add_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(1, NOW).await;

    let inserting = store.begin_completing(NOW).await;
    assert_eq!(store.claim(NOW).await.len(), 1, "it does not wait");
    inserting.commit().await;

    assert_eq!(store.queue_position(webhook_id).await, Some(NOW));
    assert_eq!(store.claim(NOW).await.len(), 1);
    assert!(store.claim(NOW).await.is_empty());
    assert_eq!(store.queue_position(webhook_id).await, None);
}

/// Otherwise the notification would be pending forever.
#[tokio::test]
async fn disabling_a_webhook_waits_for_an_insert_and_cancels_its_notifications() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    store.add_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(3, NOW).await;
    let leased = store.claim_for(LONG_LEASE, 1, NOW).await;

    // Its position is set already: the insert only locks it.
    let inserting = store.begin_completing(NOW).await;
    let gone = [(&leased[0], failed(Failure::Status, Some(410)))];
    let (applied, ()) = store
        .commit_once_waiting(store.report(&gone, NOW), inserting)
        .await;

    assert_eq!(applied, 1);
    assert_eq!(store.count("pending").await, 0);
    assert_eq!(store.count("cancelled").await, 3);
    assert_eq!(store.count("exhausted").await, 1);
}

/// Each transaction has locked its own notification, and waits only for the lock of the webhook.
#[tokio::test]
async fn concurrent_outcomes_that_disable_a_webhook_do_not_deadlock() {
    const CONCURRENT: usize = 8;

    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for _ in 0..5 {
        store.add_webhook().await;
        store.make_healthy(NOW).await;
        store.complete(CONCURRENT + 1, NOW).await;
        let leased = store.claim_for(LONG_LEASE, 64, NOW).await;
        assert_eq!(leased.len(), CONCURRENT + 1);
        let report = async |leased: &ClaimedNotification| {
            let gone = failed(Failure::Status, Some(410));
            store.report(&[(leased, gone)], NOW).await
        };

        let reports = futures_util::future::join_all(leased[1..].iter().map(report)).await;

        assert_eq!(reports, [1; CONCURRENT]);
        assert_eq!(store.retries(), 0, "deadlocks");
        assert_eq!(store.count("leased").await, 0);
        assert_eq!(store.count("pending").await, 0);
    }
}

/// The count changes because another claim takes notifications, or because some are pre-leased.
#[tokio::test]
async fn in_flight_limits_hold_when_the_count_changes_before_the_lock() {
    // A lease that expires so soon that its in-flight window has passed.
    let nearly_expired = eligibility::LEASE_LEFT_AFTER_WINDOW / 2;
    for (is_healthy, pre_leased, lease, claimed) in [
        (true, 10, LONG_LEASE, 22),
        (true, 10, nearly_expired, 32),
        (false, 1, LONG_LEASE, 0),
        (false, 1, nearly_expired, 0),
    ] {
        let Some(store) = TestStore::on_postgres().await else {
            return;
        };
        let webhook_id = store.add_webhook().await;
        if is_healthy {
            store.make_healthy(NOW).await;
        }
        store.complete(40, NOW).await;
        let webhooks = Arc::new(Mutex::new(Vec::new()));
        let (found, claimable) = (Arc::clone(&webhooks), webhooks);

        let claiming = store.begin(
            move |transaction| async move {
                let (found, budget) = (Arc::clone(&found), budget(64));
                *found.lock().unwrap() =
                    eligibility::eligible_webhooks(&transaction, &budget, NOW).await?;
                Ok(())
            },
            move |transaction| async move {
                let (webhooks, budget) = (claimable.lock().unwrap().clone(), budget(64));
                claim_from(&transaction, &budget, webhooks, LONG_LEASE, NOW).await
            },
        );
        let claiming = claiming.await;
        store.complete_pre_leased(pre_leased, lease).await;
        let claim = claiming.commit().await;

        let case = format!("{is_healthy}, {lease:?}");
        let count = u64::try_from(claim.claimed.len());
        assert_eq!(count, Ok(claimed), "{case}");
        assert_eq!(store.count("leased").await, pre_leased + claimed, "{case}");
        assert_eq!(
            store.queue_position(webhook_id).await,
            Some(NOW),
            "more is due"
        );
        assert!(store.claim(NOW).await.is_empty(), "{case}");
    }
}

/// A claim neither takes nor awaits the webhooks of another claim, nor exceeds their in-flight
/// limits.
#[tokio::test]
async fn concurrent_claims_take_each_notification_once_within_the_in_flight_limit() {
    const WEBHOOKS: usize = 8;

    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    let mut webhooks = Vec::new();
    for _ in 0..WEBHOOKS {
        webhooks.push(store.add_webhook().await);
    }
    let leased = {
        store.complete(1, NOW).await;
        store.claim_for(LONG_LEASE, 64, NOW).await
    };
    store.report_all(&leased, &Outcome::Delivered, NOW).await;
    store.complete(80, NOW).await;

    let mut ids = std::collections::HashSet::new();
    let mut count = 0;
    loop {
        let claims = (0..4).map(|_| store.claim_for(LONG_LEASE, 64, NOW));
        let leased: Vec<_> = futures_util::future::join_all(claims)
            .await
            .into_iter()
            .flatten()
            .collect();
        if leased.is_empty() {
            break;
        }
        for in_flight in counts(&leased, &webhooks) {
            assert!(in_flight <= 32, "{in_flight} in flight");
        }
        count += leased.len();
        ids.extend(leased.iter().map(|claimed| claimed.lease.id));
        store.report_all(&leased, &Outcome::Delivered, NOW).await;
    }
    assert_eq!((ids.len(), count), (80 * WEBHOOKS, 80 * WEBHOOKS));
    assert_eq!(store.count("pending").await, 0);
    assert_eq!(store.retries(), 0, "deadlocks");
}
