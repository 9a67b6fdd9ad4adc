//! Transactions that want the same rows, in `PostgreSQL`: none waits for one that waits for it. A
//! deadlock would end after a second, and one of them be begun again; here that is counted.

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::{
    concurrency::{Open, complete_one},
    *,
};

/// A shop with two webhooks, and two notifications of each under leases.
pub(super) struct Pair {
    pub(super) shop: Shop,
    pub(super) ids: [WebhookId; 2],
    /// Of both webhooks one, and of both another.
    pub(super) held: [[Held; 2]; 2],
}

impl Pair {
    pub(super) async fn of(shop: &Shop) -> Self {
        let shop = Shop {
            store_id: StoreId::new(),
            ..shop.beside()
        };
        let mut ids = [shop.add_webhook().await, shop.add_webhook().await];
        ids.sort_by_key(|id| id.0);
        shop.has_answered(NOW).await;
        shop.complete(2, NOW).await;
        let mut held = shop.claim(NOW).await;
        held.sort_by_key(|(_, held)| held.target.webhook_id.0);
        let [a, b, c, d] = held.try_into().unwrap();
        Self {
            shop,
            ids,
            held: [[a, c], [b, d]],
        }
    }

    /// As if the last attempts at both had taken long. Whose row is written last comes last where
    /// a statement reads the table as it lies, as it does one that is known to be small.
    async fn were_slow(&self, last: usize) {
        let reader = self.shop.storage.reader();
        for id in [self.ids[1 - last], self.ids[last]] {
            let row = webhook::ActiveModel {
                store_id: Set(self.shop.store_id.0),
                id: Set(id.0),
                was_slow: Set(Some(true)),
                ..Default::default()
            };
            row.update(reader).await.unwrap();
        }
        reader.execute_unprepared("ANALYZE webhooks").await.unwrap();
    }

    /// A webhook is held by a transaction that wants nothing more.
    async fn hold(&self, (id, strength): (WebhookId, &'static str)) -> Open<()> {
        self.shop
            .begin(
                move |transaction| lock(transaction, id, strength),
                |_| Box::pin(async { Ok(()) }),
            )
            .await
    }

    pub(super) async fn state(&self, id: NotificationId) -> String {
        let row = notification::Entity::find_by_id((self.shop.store_id.0, id.0));
        let row = row.one(self.shop.storage.reader()).await;
        row.unwrap().unwrap().state
    }

    /// While one webhook is held, two transactions begin, one after the other; how many of the
    /// first's and the second's attempts counted.
    async fn beside<A, B>(
        &self,
        held: (WebhookId, &'static str),
        first: impl Future<Output = A>,
        second: impl Future<Output = B>,
    ) -> (A, B) {
        let gate = self.hold(held).await;
        let second = async {
            self.shop.until_waiting(1).await;
            let opening = async {
                self.shop.until_waiting(2).await;
                gate.commit().await;
            };
            tokio::join!(second, opening).0
        };
        tokio::join!(first, second)
    }
}

/// Locks a webhook.
pub(super) fn lock<'tx>(
    transaction: &'tx DatabaseTransaction,
    id: WebhookId,
    strength: &str,
) -> BoxFuture<'tx, Result<(), Error>> {
    let text = format!("SELECT id FROM webhooks WHERE id = $1 FOR {strength}");
    Box::pin(async move {
        let of = [id.0.into()];
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, text, of);
        let row = transaction.query_one_raw(statement).await;
        assert!(row.map_err(crate::Error::from)?.is_some());
        Ok(())
    })
}

pub(super) fn gone() -> Outcome {
    failed(Failure::Status, Some(410))
}

#[tokio::test]
async fn outcomes_of_the_same_webhooks_do_not_wait_for_each_other_in_a_circle() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    let delivered = || Outcome::Delivered;
    for [ones, others] in [
        [[refused(), refused()], [refused(), gone()]],
        [[refused(), refused()], [gone(), refused()]],
        [[delivered(), refused()], [refused(), delivered()]],
        [[delivered(), delivered()], [delivered(), delivered()]],
        [[delivered(), refused()], [refused(), gone()]],
    ] {
        for (of_first, held) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let pair = Pair::of(&shop).await;
            pair.were_slow(held).await;
            let outcomes = [&ones, &others].map(Clone::clone);
            let report = async |number: usize| {
                let of = pair.held[number].iter().zip(outcomes[number].clone());
                pair.shop.report(&of.collect::<Vec<_>>(), NOW).await
            };

            let (first, second) = (report(of_first), report(1 - of_first));
            let counted = pair
                .beside((pair.ids[held], "NO KEY UPDATE"), first, second)
                .await;

            let which = format!("{ones:?}, {others:?}, {of_first} first, {held} held");
            assert_eq!(counted, (2, 2), "{which}");
            assert_eq!(shop.repeats(), 0, "{which}");
            assert_eq!(shop.count("leased").await, 0, "{which}");
            let gone = others.iter().map(|outcome| *outcome == gone());
            for (id, gone) in pair.ids.into_iter().zip(gone) {
                let row = pair.shop.row(id).await;
                assert_eq!(row.disabled_at.is_some(), gone, "{which}");
            }
        }
    }
}

/// Both bring places forward, or note how receivers answered.
#[tokio::test]
async fn what_comes_to_be_pending_and_outcomes_do_not_wait_for_each_other_in_a_circle() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for (is_completed, last) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        for (is_reported_first, held) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
            let pair = Pair::of(&shop).await;
            pair.were_slow(last).await;
            let [ones, others] = &pair.held;
            let outcomes = [(&ones[0], refused()), (&ones[1], refused())];
            let report = async { pair.shop.report(&outcomes, NOW).await };
            let (store_id, now) = (pair.shop.store_id, later(1));
            let leases = [1, 0].map(|of: usize| (others[of].1.id, others[of].0));
            let adding = async {
                if is_completed {
                    let completed = pair
                        .shop
                        .write(move |transaction| complete_one(transaction, store_id, now));
                    completed.await;
                    return 2;
                }
                let released = pair.shop.write(move |transaction| {
                    Box::pin(async move { release(transaction, &leases, now).await })
                });
                released.await
            };

            let held = (pair.ids[held], "NO KEY UPDATE");
            let counted = if is_reported_first {
                pair.beside(held, report, adding).await
            } else {
                let (added, counted) = pair.beside(held, adding, report).await;
                (counted, added)
            };

            let which = format!("{is_completed}, {last}, {is_reported_first}, {held:?}");
            assert_eq!(counted, (2, 2), "{which}");
            assert_eq!(shop.repeats(), 0, "{which}");
            for id in pair.ids {
                assert_eq!(pair.shop.place(id).await, Some(now), "{which}");
            }
            let rest = pair.shop.claim(now).await;
            pair.shop.report_all(&rest, &Outcome::Delivered, now).await;
        }
    }
}

/// One holds the places of both, the other disables both.
#[tokio::test]
async fn what_comes_to_be_pending_and_what_disables_do_not_wait_for_each_other_in_a_circle() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for (last, held) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for is_reported_first in [true, false] {
            let pair = Pair::of(&shop).await;
            pair.were_slow(last).await;
            let outcomes = [(&pair.held[0][0], gone()), (&pair.held[0][1], gone())];
            let report = async { pair.shop.report(&outcomes, NOW).await };
            let store_id = pair.shop.store_id;
            let complete = pair
                .shop
                .write(move |transaction| complete_one(transaction, store_id, NOW));

            // Against whoever holds a place, too.
            let held = (pair.ids[held], "UPDATE");
            let counted = if is_reported_first {
                pair.beside(held, report, complete).await.0
            } else {
                pair.beside(held, complete, report).await.1
            };

            let which = format!("{last}, {held:?}, {is_reported_first}");
            assert_eq!(counted, 2, "{which}");
            assert_eq!(shop.repeats(), 0, "{which}");
            assert_eq!(shop.count("pending").await, 0, "{which}");
            for id in pair.ids {
                let row = pair.shop.row(id).await;
                assert!(row.disabled_at.is_some(), "{which}");
            }
        }
    }
}
