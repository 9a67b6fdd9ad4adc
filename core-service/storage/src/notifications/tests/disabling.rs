//! Webhooks are disabled, enabled or deleted while transactions change their notifications, in
//! `PostgreSQL`: the transactions don't deadlock.

use sea_orm::Condition;

use super::{
    super::{cancellation::lock_skip_locked, queue::move_forward},
    deadlocks::{WebhookPair, gone, lock},
    *,
};
use crate::webhook_notifications::resend;

/// A transaction that has locked a notification to report or release it also cancels it. The
/// transaction that changes the webhook skips it.
#[tokio::test]
async fn a_webhook_is_disabled_enabled_or_deleted_while_notifications_are_in_flight() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Change {
        Disabled,
        Enabled,
        Deleted,
    }

    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for change in [Change::Disabled, Change::Enabled, Change::Deleted] {
        for is_reported in [true, false] {
            let pair = WebhookPair::of(&store).await;
            let [[one, _], [other, _]] = &pair.leased;
            let (id, key) = (pair.ids[0], pair.store.key(pair.ids[0]));
            let client = ApiClientId(pair.store.row(id).await.api_client_id);
            if change == Change::Enabled {
                pair.store.disable_without_cancelling(id).await;
            }

            let changing = pair.store.begin(
                move |transaction| async move {
                    if change == Change::Deleted {
                        assert!(webhooks::delete(&transaction, key, client).await?);
                        return Ok(());
                    }
                    let found = webhooks::find_and_lock(&transaction, key).await?;
                    let (mut webhook, _) = found.unwrap();
                    let reason = DisabledReason::Client;
                    let has_changed = match change {
                        Change::Enabled => webhook.enable(NOW),
                        _ => webhook.disable(Disabled { at: NOW, reason }),
                    };
                    assert!(has_changed);
                    webhooks::save_disabled(&transaction, &webhook).await?;
                    Ok(())
                },
                move |transaction| async move {
                    cancel_notifications(&transaction, key, None, NOW).await
                },
            );
            let changing = changing.await;
            let lease = [one.lease];
            let outcomes = [(one, server_error())];
            let finishing = async {
                if is_reported {
                    let applied = pair.store.report(&outcomes, NOW).await;
                    return u64::try_from(applied).unwrap();
                }
                let released = pair.store.write(move |transaction| async move {
                    release(&transaction, &lease, NOW).await
                });
                released.await
            };
            let (count, ()) = store.commit_once_waiting(finishing, changing).await;

            let case = format!("{change:?}, {is_reported}");
            assert_eq!(count, 1, "{case}");
            assert_eq!(store.retries(), 0, "{case}");
            let states = [one, other].map(|leased| pair.state(leased.lease.id));
            let expected = if change == Change::Enabled && is_reported {
                // The report finds the webhook enabled, so the notification is retried.
                ["pending", "cancelled"]
            } else {
                ["cancelled", "cancelled"]
            };
            let [one, other] = states;
            assert_eq!([one.await, other.await], expected, "{case}");
        }
    }
}

/// Outcomes are reported while expired leases are released: each transaction may have locked
/// notifications that the other needs.
#[tokio::test]
async fn expired_leases_are_released_without_waiting_for_outcomes() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    let webhook_id = store.add_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(2, NOW).await;
    let leased = store.claim_for(Duration::ZERO, 2, NOW).await;
    let (reported, other) = (leased[0].lease.id, leased[1].lease.id);

    let reporting = store.begin(
        move |transaction| async move {
            let condition = Condition::all().add(notification::Column::Id.eq(reported.0));
            assert_eq!(
                lock_skip_locked(&transaction, condition).await?,
                [reported.0]
            );
            Ok(())
        },
        move |_| async move { Ok(()) },
    );
    let reporting = reporting.await;
    let (released, ()) = store
        .commit_once_waiting(store.release_expired(), reporting)
        .await;

    assert_eq!(released, 1);
    assert_eq!(store.queue_position(webhook_id).await, Some(NOW));
    assert_eq!(store.claim(NOW).await[0].lease.id, other);
    assert_eq!(store.release_expired().await, 1, "the next run");
}

/// The notification was cancelled in flight.
#[tokio::test]
async fn a_cancelled_notification_is_resent_while_its_outcome_is_reported() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for outcome in [Outcome::Delivered, server_error(), gone()] {
        for is_resent_first in [true, false] {
            let pair = WebhookPair::of(&store).await;
            let [[one, _], [other, _]] = &pair.leased;
            let (id, key) = (pair.ids[0], pair.store.key(pair.ids[0]));
            pair.store.set_enabled(id, false, NOW).await;
            pair.store.set_enabled(id, true, NOW).await;
            let ids = [one.lease.id, other.lease.id];

            let resending = pair.store.begin(
                move |transaction| async move {
                    webhooks::find_and_lock(&transaction, key).await?;
                    Ok(())
                },
                move |transaction| async move { resend(&transaction, key, ids, NOW).await },
            );
            let outcomes = [(one, outcome.clone()), (other, outcome.clone())];
            let case = format!("{outcome:?}, {is_resent_first}");
            if is_resent_first {
                let resending = resending.await;
                let reporting = pair.store.report(&outcomes, NOW);
                let done = store.commit_once_waiting(reporting, resending).await;
                assert_eq!(done, (0, 2), "{case}");
                assert_eq!(pair.state(ids[0]).await, "pending", "{case}");
            } else {
                assert_eq!(pair.store.report(&outcomes, NOW).await, 2, "{case}");
                assert_eq!(resending.await.commit().await, 2, "{case}");
                assert_eq!(pair.state(ids[0]).await, "pending", "{case}");
            }
            assert_eq!(store.retries(), 0, "{case}");
        }
    }
}

/// A transaction that enqueues takes a shared lock on the webhook's row, then moves the webhook
/// forward in the queue. A transaction that waits to disable the webhook does not block the
/// update.
#[tokio::test]
async fn a_webhook_is_disabled_while_a_transaction_enqueues_and_moves_it_forward() {
    let Some(store) = TestStore::on_postgres().await else {
        return;
    };
    for is_gone in [true, false] {
        let pair = WebhookPair::of(&store).await;
        let (id, key) = (pair.ids[0], pair.store.key(pair.ids[0]));
        let (outcome, now) = if is_gone {
            (gone(), NOW)
        } else {
            let first = &pair.leased[1][0];
            pair.store.report(&[(first, server_error())], NOW).await;
            // Longer than `DISABLE_AFTER` since the first failure.
            (server_error(), later(6 * 86_400))
        };

        let enqueueing = pair.store.begin(
            move |transaction| async move { lock(&transaction, id, "KEY SHARE").await },
            move |transaction| async move {
                let due = std::collections::BTreeMap::from([(key, NOW)]);
                move_forward(&transaction, &due).await?;
                Ok(())
            },
        );
        let enqueueing = enqueueing.await;
        let outcomes = [(&pair.leased[0][0], outcome)];
        let reporting = pair.store.report(&outcomes, now);
        let (applied, ()) = store.commit_once_waiting(reporting, enqueueing).await;

        assert_eq!(applied, 1, "{is_gone}");
        assert_eq!(store.retries(), 0, "{is_gone}");
        let row = pair.store.row(id).await;
        assert!(row.disabled_at.is_some(), "{is_gone}");
    }
}

/// Recovery enqueues the events of that period.
#[tokio::test]
async fn the_last_disabled_period_is_stored() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.set_enabled(webhook_id, false, later(1)).await;
    store.set_enabled(webhook_id, true, later(2)).await;

    let webhook = Webhook::try_from(store.row(webhook_id).await).unwrap();

    assert_eq!(webhook.last_disabled_period, Some((later(1), later(2))));
    assert_eq!(webhook.disabled, None);
}
