//! Transactions that want the same rows, in `PostgreSQL`: none waits for one that waits for it. A
//! deadlock would end after a second, and one of them be begun again; here that is counted.

use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::{
    concurrency::{Open, complete_one},
    *,
};
use crate::storage::webhook_notifications::send_again;

/// A shop with two webhooks, and two notifications of each under leases.
struct Pair {
    shop: Shop,
    ids: [WebhookId; 2],
    /// Of both webhooks one, and of both another.
    held: [[Held; 2]; 2],
}

impl Pair {
    async fn of(shop: &Shop) -> Self {
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
    async fn hold(&self, id: WebhookId) -> Open<()> {
        self.shop
            .begin(
                move |transaction| lock(transaction, id, "NO KEY UPDATE"),
                |_| Box::pin(async { Ok(()) }),
            )
            .await
    }

    async fn state(&self, id: NotificationId) -> String {
        let row = notification::Entity::find_by_id((self.shop.store_id.0, id.0));
        let row = row.one(self.shop.storage.reader()).await;
        row.unwrap().unwrap().state
    }

    /// While one webhook is held, two transactions begin, one after the other; how many of the
    /// first's and the second's attempts counted.
    async fn beside<A, B>(
        &self,
        held: WebhookId,
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
fn lock<'tx>(
    transaction: &'tx DatabaseTransaction,
    id: WebhookId,
    strength: &str,
) -> BoxFuture<'tx, Result<(), CoreError>> {
    let text = format!("SELECT id FROM webhooks WHERE id = $1 FOR {strength}");
    Box::pin(async move {
        let of = [id.0.into()];
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, text, of);
        let row = transaction.query_one_raw(statement).await;
        assert!(row.map_err(crate::storage::Error::from)?.is_some());
        Ok(())
    })
}

fn gone() -> Outcome {
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
            let counted = pair.beside(pair.ids[held], first, second).await;

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
                    Box::pin(async move { Ok(release(transaction, &leases, now).await?) })
                });
                released.await
            };

            let held = pair.ids[held];
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

/// Outcomes, and leases given back, of what is on its way just as its webhook ends or begins
/// anew: whoever has it drops it, and nobody waits for them.
#[tokio::test]
async fn a_webhook_is_disabled_enabled_or_deleted_beside_what_is_on_its_way() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Change {
        Disabled,
        Enabled,
        Deleted,
    }

    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for change in [Change::Disabled, Change::Enabled, Change::Deleted] {
        for is_reported in [true, false] {
            let pair = Pair::of(&shop).await;
            let [[one, _], [other, _]] = &pair.held;
            let (store_id, id) = (pair.shop.store_id, pair.ids[0]);
            let client = pair.shop.row(id).await.api_client_id;
            let owner = (store_id, ApiClientId(client));
            if change == Change::Enabled {
                pair.shop.disable_alone(id).await;
            }

            let changing = pair.shop.begin(
                move |transaction| {
                    Box::pin(async move {
                        if change == Change::Deleted {
                            assert!(webhooks::delete(transaction, owner, id).await?);
                            return Ok(());
                        }
                        let found = webhooks::find_and_lock(transaction, store_id, id).await?;
                        let (mut webhook, _) = found.unwrap();
                        let reason = DisabledReason::Client;
                        let is_new = match change {
                            Change::Enabled => webhook.enable(NOW),
                            _ => webhook.disable(Disabled { at: NOW, reason }),
                        };
                        assert!(is_new);
                        webhooks::save_disabled(transaction, &webhook).await?;
                        Ok(())
                    })
                },
                move |transaction| {
                    Box::pin(async move { Ok(drop_owed(transaction, store_id, id, NOW).await?) })
                },
            );
            let changing = changing.await;
            let lease = [(one.1.id, one.0)];
            let outcomes = [(one, refused())];
            let ending = async {
                if is_reported {
                    let counted = pair.shop.report(&outcomes, NOW).await;
                    return u64::try_from(counted).unwrap();
                }
                let released = pair.shop.write(move |transaction| {
                    Box::pin(async move { Ok(release(transaction, &lease, NOW).await?) })
                });
                released.await
            };
            let (count, ()) = shop.once_waiting(ending, changing).await;

            let which = format!("{change:?}, {is_reported}");
            assert_eq!(count, 1, "{which}");
            assert_eq!(shop.repeats(), 0, "{which}");
            let states = [one, other].map(|held| pair.state(held.1.id));
            let expected = if change == Change::Enabled && is_reported {
                // By then it is enabled, and told again.
                ["pending", "dropped"]
            } else {
                ["dropped", "dropped"]
            };
            let [one, other] = states;
            assert_eq!([one.await, other.await], expected, "{which}");
        }
    }
}

/// It was dropped while it was on its way, and is sent again just as its outcome comes.
#[tokio::test]
async fn what_was_dropped_is_sent_again_beside_its_outcome() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for outcome in [Outcome::Delivered, refused(), gone()] {
        for is_sent_first in [true, false] {
            let pair = Pair::of(&shop).await;
            let [[one, _], [another, _]] = &pair.held;
            let (store_id, id) = (pair.shop.store_id, pair.ids[0]);
            pair.shop.set_enabled(id, false, NOW).await;
            pair.shop.set_enabled(id, true, NOW).await;
            // Those of both are owed again, whichever comes first.
            let ids = [one.1.id, another.1.id];

            let sending = pair.shop.begin(
                move |transaction| {
                    Box::pin(async move {
                        webhooks::find_and_lock(transaction, store_id, id).await?;
                        Ok(())
                    })
                },
                move |transaction| {
                    Box::pin(
                        async move { Ok(send_again(transaction, (store_id, id), ids, NOW).await?) },
                    )
                },
            );
            let outcomes = [(one, outcome.clone()), (another, outcome.clone())];
            let which = format!("{outcome:?}, {is_sent_first}");
            if is_sent_first {
                let sending = sending.await;
                let reporting = pair.shop.report(&outcomes, NOW);
                let done = shop.once_waiting(reporting, sending).await;
                assert_eq!(done, (0, 2), "{which}");
                assert_eq!(pair.state(ids[0]).await, "pending", "{which}");
            } else {
                assert_eq!(pair.shop.report(&outcomes, NOW).await, 2, "{which}");
                assert_eq!(sending.await.commit().await, 2, "{which}");
                assert_eq!(pair.state(ids[0]).await, "pending", "{which}");
            }
            assert_eq!(shop.repeats(), 0, "{which}");
        }
    }
}

/// What holds a place writes to it when it has to be brought forward; whoever is about to disable
/// the webhook lets it.
#[tokio::test]
async fn a_webhook_is_disabled_beside_one_who_holds_its_place_and_then_moves_it() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    for is_gone in [true, false] {
        let pair = Pair::of(&shop).await;
        let (store_id, id) = (pair.shop.store_id, pair.ids[0]);
        let (outcome, now) = if is_gone {
            (gone(), NOW)
        } else {
            let first = &pair.held[1][0];
            pair.shop.report(&[(first, refused())], NOW).await;
            (refused(), later(6 * 86_400))
        };

        let adding = pair.shop.begin(
            move |transaction| lock(transaction, id, "KEY SHARE"),
            move |transaction| {
                Box::pin(async move {
                    let due = std::collections::BTreeMap::from([((store_id, id), NOW)]);
                    wake(transaction, &due).await?;
                    Ok(())
                })
            },
        );
        let adding = adding.await;
        let outcomes = [(&pair.held[0][0], outcome)];
        let reporting = pair.shop.report(&outcomes, now);
        let (counted, ()) = shop.once_waiting(reporting, adding).await;

        assert_eq!(counted, 1, "{is_gone}");
        assert_eq!(shop.repeats(), 0, "{is_gone}");
        let row = pair.shop.row(id).await;
        assert!(row.disabled_at.is_some(), "{is_gone}");
    }
}
