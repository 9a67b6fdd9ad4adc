//! Webhooks that end or begin anew, in `PostgreSQL`, beside what becomes of their notifications:
//! nobody waits for one that waits for it.

use sea_orm::Condition;

use super::{
    deadlocks::{Pair, gone, lock},
    *,
};
use crate::webhook_notifications::send_again;

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
                    Box::pin(async move { drop_owed(transaction, store_id, id, None, NOW).await })
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
                    Box::pin(async move { release(transaction, &lease, NOW).await })
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

/// Late outcomes, which come just as the leases are found to be over: either may have locked some
/// of their notifications, and want the others.
#[tokio::test]
async fn leases_that_are_over_are_given_back_without_waiting_for_outcomes() {
    let Some(shop) = Shop::on_postgres().await else {
        return;
    };
    let webhook_id = shop.add_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(2, NOW).await;
    let held = shop.claim_for(Duration::ZERO, 2, NOW).await;
    let (reported, other) = (held[0].1.id, held[1].1.id);

    let reporting = shop.begin(
        move |transaction| {
            Box::pin(async move {
                let of = Condition::all().add(notification::Column::Id.eq(reported.0));
                assert_eq!(owed::lock_free(transaction, of).await?, [reported.0]);
                Ok(())
            })
        },
        |_| Box::pin(async { Ok(()) }),
    );
    let reporting = reporting.await;
    let (released, ()) = shop.once_waiting(shop.release_expired(), reporting).await;

    assert_eq!(released, 1);
    assert_eq!(shop.place(webhook_id).await, Some(NOW));
    assert_eq!(shop.claim(NOW).await[0].1.id, other);
    assert_eq!(shop.release_expired().await, 1, "the next time");
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
                    Box::pin(async move { send_again(transaction, (store_id, id), ids, NOW).await })
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
