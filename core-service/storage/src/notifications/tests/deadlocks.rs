//! Concurrent transactions that lock the same rows, in `PostgreSQL`: they don't deadlock. The
//! database would resolve a deadlock after a second, and one transaction would be retried; the
//! tests count the retries.

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::{
    concurrency::{OpenTransaction, complete_one},
    *,
};

/// A store with two webhooks, and two leased notifications of each.
pub(super) struct WebhookPair {
    pub(super) store: TestStore,
    pub(super) ids: [WebhookId; 2],
    /// Two batches, each with one notification of each webhook.
    pub(super) leased: [[ClaimedNotification; 2]; 2],
}

impl WebhookPair {
    pub(super) async fn of(store: &TestStore) -> Self {
        let store = TestStore {
            store_id: StoreId::new(),
            ..store.handle()
        };
        let mut ids = [store.add_webhook().await, store.add_webhook().await];
        ids.sort_by_key(|id| id.0);
        store.make_healthy(NOW).await;
        store.complete(2, NOW).await;
        let mut leased = store.claim(NOW).await;
        leased.sort_by_key(|claimed| claimed.target.key.webhook_id.0);
        let [a, b, c, d] = leased.try_into().unwrap();
        Self {
            store,
            ids,
            leased: [[a, c], [b, d]],
        }
    }

    /// Marks both webhooks as slow. The row that is written last comes last in a sequential scan,
    /// which the planner chooses for a table that is known to be small.
    async fn set_slow(&self, last: usize) {
        let reader = self.store.storage.reader();
        for id in [self.ids[1 - last], self.ids[last]] {
            let row = webhook::ActiveModel {
                store_id: Set(self.store.store_id.0),
                id: Set(id.0),
                receiver_health: Set(Some("slow".to_owned())),
                ..Default::default()
            };
            row.update(reader).await.unwrap();
        }
        reader.execute_unprepared("ANALYZE webhooks").await.unwrap();
    }

    /// Locks a webhook in a transaction that locks nothing else.
    async fn lock_webhook(&self, id: WebhookId, strength: &'static str) -> OpenTransaction<()> {
        self.store
            .begin(
                move |transaction| async move { lock(&transaction, id, strength).await },
                move |_| async move { Ok(()) },
            )
            .await
    }

    pub(super) async fn state(&self, id: NotificationId) -> String {
        let row = notification::Entity::find_by_id((self.store.store_id.0, id.0));
        let row = row.one(self.store.storage.reader()).await;
        row.unwrap().unwrap().state
    }

    /// Starts two transactions, one after the other, while one webhook is locked.
    async fn run_while_locked<A, B>(
        &self,
        locked: WebhookId,
        strength: &'static str,
        first: impl Future<Output = A>,
        second: impl Future<Output = B>,
    ) -> (A, B) {
        let blocking = self.lock_webhook(locked, strength).await;
        let second = async {
            self.store.wait_until_blocked(1).await;
            let unblock = async {
                self.store.wait_until_blocked(2).await;
                blocking.commit().await;
            };
            tokio::join!(second, unblock).0
        };
        tokio::join!(first, second)
    }
}

/// Locks a webhook's row with `FOR {strength}`.
pub(super) async fn lock(
    transaction: &Session,
    id: WebhookId,
    strength: &str,
) -> Result<(), Error> {
    let text = format!("SELECT id FROM webhooks WHERE id = $1 FOR {strength}");
    let values = [id.0.into()];
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, text, values);
    let row = transaction.query_one_raw(statement).await;
    assert!(row.map_err(crate::Error::from)?.is_some());
    Ok(())
}

pub(super) fn gone() -> Outcome {
    failed(Failure::Status, Some(410))
}

#[tokio::test]
async fn outcomes_of_the_same_webhooks_do_not_deadlock() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    let delivered = || Outcome::Delivered;
    for [one, other] in [
        [[server_error(), server_error()], [server_error(), gone()]],
        [[server_error(), server_error()], [gone(), server_error()]],
        [[delivered(), server_error()], [server_error(), delivered()]],
        [[delivered(), delivered()], [delivered(), delivered()]],
        [[delivered(), server_error()], [server_error(), gone()]],
    ] {
        for (first_batch, locked) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let pair = WebhookPair::of(&store).await;
            pair.set_slow(locked).await;
            let outcomes = [&one, &other].map(Clone::clone);
            let report = async |number: usize| {
                let reports = pair.leased[number].iter().zip(outcomes[number].clone());
                pair.store.report(&reports.collect::<Vec<_>>(), NOW).await
            };

            let (first, second) = (report(first_batch), report(1 - first_batch));
            let (locked_row, strength) = (pair.ids[locked], "NO KEY UPDATE");
            let counts = pair.run_while_locked(locked_row, strength, first, second);
            let counts = Box::pin(counts).await;

            let case = format!("{one:?}, {other:?}, {first_batch} first, {locked} locked");
            assert_eq!(counts, (2, 2), "{case}");
            assert_eq!(store.retries(), 0, "{case}");
            assert_eq!(store.count("leased").await, 0, "{case}");
            let disables = other.iter().map(|outcome| *outcome == gone());
            for (id, is_disabled) in pair.ids.into_iter().zip(disables) {
                let row = pair.store.row(id).await;
                assert_eq!(row.disabled_at.is_some(), is_disabled, "{case}");
            }
        }
    }
}

/// Both move webhooks forward in the queue; outcomes also save the receivers' health.
#[tokio::test]
async fn enqueueing_and_outcomes_do_not_deadlock() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for (is_completion, last) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        for (is_reported_first, locked) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
            let pair = WebhookPair::of(&store).await;
            pair.set_slow(last).await;
            let [one, other] = &pair.leased;
            let outcomes = [(&one[0], server_error()), (&one[1], server_error())];
            let report = async { pair.store.report(&outcomes, NOW).await };
            let (store_id, now) = (pair.store.store_id, later(1));
            let leases = [1, 0].map(|number: usize| other[number].lease);
            let enqueueing = async {
                if is_completion {
                    let completed = pair.store.write(move |transaction| async move {
                        complete_one(&transaction, store_id, now).await
                    });
                    completed.await;
                    return 2;
                }
                let released = pair.store.write(move |transaction| async move {
                    release(&transaction, &leases, now).await
                });
                released.await
            };

            let (locked, strength) = (pair.ids[locked], "NO KEY UPDATE");
            let counts = if is_reported_first {
                Box::pin(pair.run_while_locked(locked, strength, report, enqueueing)).await
            } else {
                let (enqueued, applied) =
                    Box::pin(pair.run_while_locked(locked, strength, enqueueing, report)).await;
                (applied, enqueued)
            };

            let case = format!("{is_completion}, {last}, {is_reported_first}, {locked:?}");
            assert_eq!(counts, (2, 2), "{case}");
            assert_eq!(store.retries(), 0, "{case}");
            for id in pair.ids {
                assert_eq!(pair.store.queue_position(id).await, Some(now), "{case}");
            }
            let rest = pair.store.claim(now).await;
            pair.store.report_all(&rest, &Outcome::Delivered, now).await;
        }
    }
}

/// One transaction enqueues to both webhooks, the other disables both.
#[tokio::test]
async fn enqueueing_and_disabling_do_not_deadlock() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for (last, locked) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for is_reported_first in [true, false] {
            let pair = WebhookPair::of(&store).await;
            pair.set_slow(last).await;
            let outcomes = [(&pair.leased[0][0], gone()), (&pair.leased[0][1], gone())];
            let report = async { pair.store.report(&outcomes, NOW).await };
            let store_id = pair.store.store_id;
            let complete = pair.store.write(move |transaction| async move {
                complete_one(&transaction, store_id, NOW).await
            });

            // `FOR UPDATE` blocks even the first lock of a transaction that enqueues.
            let (locked, strength) = (pair.ids[locked], "UPDATE");
            let counts = if is_reported_first {
                Box::pin(pair.run_while_locked(locked, strength, report, complete))
                    .await
                    .0
            } else {
                Box::pin(pair.run_while_locked(locked, strength, complete, report))
                    .await
                    .1
            };

            let case = format!("{last}, {locked:?}, {is_reported_first}");
            assert_eq!(counts, 2, "{case}");
            assert_eq!(store.retries(), 0, "{case}");
            assert_eq!(store.count("pending").await, 0, "{case}");
            for id in pair.ids {
                let row = pair.store.row(id).await;
                assert!(row.disabled_at.is_some(), "{case}");
            }
        }
    }
}
