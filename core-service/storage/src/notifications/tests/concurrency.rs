//! Transactions beside each other, which there are on `PostgreSQL` alone: who waits for whom.

use std::sync::Mutex;

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::{super::leases::take_turns, fairness::counts, *};

/// A transaction that has done some of its work.
pub(super) struct Open<T> {
    release: Arc<Semaphore>,
    transaction: JoinHandle<T>,
}

impl<T> Open<T> {
    /// It goes on, to its end.
    pub(super) async fn commit(self) -> T {
        self.release.add_permits(1);
        self.transaction.await.unwrap()
    }
}

impl Shop {
    /// A transaction does some work, and the rest when it is told to.
    pub(super) async fn begin<T, F, W>(&self, first: F, rest: W) -> Open<T>
    where
        F: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<(), Error>>
            + Send
            + Sync
            + 'static,
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, Error>>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
    {
        let (done, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (told, awaited) = (Arc::clone(&done), Arc::clone(&release));
        let work = Arc::new((first, rest));
        let shop = self.beside();
        let transaction = tokio::spawn(async move {
            shop.write(move |transaction| {
                let (told, awaited) = (Arc::clone(&told), Arc::clone(&awaited));
                let work = Arc::clone(&work);
                Box::pin(async move {
                    work.0(transaction).await?;
                    told.add_permits(1);
                    let _released = awaited.acquire().await;
                    work.1(transaction).await
                })
            })
            .await
        });
        let _done = done.acquire().await.unwrap();
        Open {
            release,
            transaction,
        }
    }

    /// The same shop, for a task of its own.
    pub(super) fn beside(&self) -> Self {
        Self {
            _directory: None,
            storage: Arc::clone(&self.storage),
            store_id: self.store_id,
            repeats: Arc::clone(&self.repeats),
        }
    }

    /// A delivery is completed by a transaction that is left open.
    async fn begin_to_complete(&self, now: Timestamp) -> Open<()> {
        let store_id = self.store_id;
        self.begin(
            move |transaction| complete_one(transaction, store_id, now),
            |_| Box::pin(async { Ok(()) }),
        )
        .await
    }

    /// Deliveries are completed, and their notifications born under leases.
    async fn bear(&self, deliveries: u64, lease: Duration) {
        let store_id = self.store_id;
        self.write(move |transaction| {
            Box::pin(async move {
                for _ in 0..deliveries {
                    let events = [EventName::DeliveryCompleted];
                    let of = DeliveryId::new();
                    let owed = record_events(transaction, store_id, of, &events, NOW).await?;
                    let born = |owed| (owed, Some(Uuid::now_v7()));
                    let owed: Vec<_> = owed.into_iter().map(born).collect();
                    insert(transaction, &owed, lease, NOW).await?;
                }
                Ok(())
            })
        })
        .await;
    }

    /// Until so many transactions wait for others.
    pub(super) async fn until_waiting(&self, expected: i64) {
        let waiting = async {
            while self.waiting().await < expected {
                tokio::task::yield_now().await;
            }
        };
        let minute = Duration::from_mins(1);
        tokio::time::timeout(minute, waiting)
            .await
            .expect("they wait at once");
    }

    /// How many transactions wait for others.
    async fn waiting(&self) -> i64 {
        let statement = Statement::from_string(
            DbBackend::Postgres,
            "SELECT COUNT(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        let row = self.storage.reader().query_one_raw(statement).await;
        row.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    /// Does work beside an open transaction, which goes on once the work waits for it, or is done.
    pub(super) async fn once_waiting<A, B>(
        &self,
        work: impl Future<Output = A>,
        open: Open<B>,
    ) -> (A, B) {
        let is_done = AtomicBool::new(false);
        let work = async {
            let done = work.await;
            is_done.store(true, Ordering::SeqCst);
            done
        };
        let commit = async {
            while !is_done.load(Ordering::SeqCst) && self.waiting().await == 0 {
                tokio::task::yield_now().await;
            }
            open.commit().await
        };
        tokio::join!(work, commit)
    }

    /// How many transactions had to be begun again.
    pub(super) fn repeats(&self) -> usize {
        self.repeats.load(Ordering::SeqCst)
    }
}

/// A delivery of a store is picked and completed: it owes one to every webhook, pending.
pub(super) fn complete_one(
    transaction: &DatabaseTransaction,
    store_id: StoreId,
    now: Timestamp,
) -> BoxFuture<'_, Result<(), Error>> {
    Box::pin(async move {
        let events = [EventName::DeliveryCompleted];
        let of = DeliveryId::new();
        let owed = record_events(transaction, store_id, of, &events, now).await?;
        let owed: Vec<_> = owed.into_iter().map(|owed| (owed, None)).collect();
        insert(transaction, &owed, LONG, now).await?;
        Ok(())
    })
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
    let (counted, ()) = shop.once_waiting(shop.report(&gone, NOW), adding).await;

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
        assert_eq!(shop.repeats(), 0, "deadlocks");
        assert_eq!(shop.count("leased").await, 0);
        assert_eq!(shop.count("pending").await, 0);
    }
}

/// Another claim has taken them between the look and the lock, or they were born to streams.
#[tokio::test]
async fn places_that_were_taken_since_they_were_counted_are_not_taken_again() {
    let old = queue::UNANSWERED / 2;
    for (has_answered, born, lease, claimed) in [
        (true, 10, LONG, 22),
        (true, 10, old, 32),
        (false, 1, LONG, 0),
        (false, 1, old, 0),
    ] {
        let Some(shop) = Shop::on_postgres().await else {
            return;
        };
        let webhook_id = shop.add_webhook().await;
        if has_answered {
            shop.has_answered(NOW).await;
        }
        shop.complete(40, NOW).await;
        let counted = Arc::new(Mutex::new(Vec::new()));
        let (kept, given) = (Arc::clone(&counted), counted);
        let room = room(64);

        let claiming = shop.begin(
            move |transaction| {
                let kept = Arc::clone(&kept);
                Box::pin(async move {
                    *kept.lock().unwrap() = queue::turns(transaction, &room, NOW).await?;
                    Ok(())
                })
            },
            move |transaction| {
                let turns = given.lock().unwrap().clone();
                let lease = (Uuid::now_v7(), LONG);
                Box::pin(async move { take_turns(transaction, &room, turns, lease, NOW).await })
            },
        );
        let claiming = claiming.await;
        shop.bear(born, lease).await;
        let claim = claiming.commit().await;

        let which = format!("{has_answered}, {lease:?}");
        let count = u64::try_from(claim.claimed.len());
        assert_eq!(count, Ok(claimed), "{which}");
        assert_eq!(shop.count("leased").await, born + claimed, "{which}");
        assert_eq!(shop.place(webhook_id).await, Some(NOW), "more is due");
        assert!(shop.claim(NOW).await.is_empty(), "{which}");
    }
}

/// Nobody takes what another is taking, nor waits for it, nor takes places that another has just
/// taken.
#[tokio::test]
async fn claims_at_the_same_moment_take_each_notification_once_and_no_place_twice() {
    const WEBHOOKS: usize = 8;

    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    let mut webhooks = Vec::new();
    for _ in 0..WEBHOOKS {
        webhooks.push(shop.add_webhook().await);
    }
    let held = {
        shop.complete(1, NOW).await;
        shop.claim_for(LONG, 64, NOW).await
    };
    shop.report_all(&held, &Outcome::Delivered, NOW).await;
    shop.complete(80, NOW).await;

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
        for of_each in counts(&held, &webhooks) {
            assert!(of_each <= 32, "{of_each} places");
        }
        count += held.len();
        ids.extend(held.iter().map(|(_, held)| held.id));
        shop.report_all(&held, &Outcome::Delivered, NOW).await;
    }
    assert_eq!((ids.len(), count), (80 * WEBHOOKS, 80 * WEBHOOKS));
    assert_eq!(shop.count("pending").await, 0);
    assert_eq!(shop.repeats(), 0, "deadlocks");
}
