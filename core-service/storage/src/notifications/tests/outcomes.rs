//! The changes to notifications and webhooks after attempts.

use super::*;
use crate::webhook_notifications::resend;

#[tokio::test]
async fn a_failed_notification_is_retried_on_schedule() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let leased = store.claim(NOW).await;

    store.report_all(&leased, &server_error(), NOW).await;

    assert!(store.claim(later(4)).await.is_empty());
    let again = store.claim(later(5)).await;
    assert_eq!(
        again[0].lease.id, leased[0].lease.id,
        "the same notification"
    );
    assert_eq!(again[0].attempts, 1);
}

/// However many attempts were before it was resent.
#[tokio::test]
async fn the_schedule_of_a_resent_notification_begins_again() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let mut leased = store.claim(NOW).await;
    store.report_all(&leased, &server_error(), NOW).await;
    leased = store.claim(later(5)).await;
    store.report_all(&leased, &server_error(), later(5)).await;
    assert!(store.claim(later(5 + 5)).await.is_empty(), "a longer pause");
    let (webhook, id) = (store.key(webhook_id), leased[0].lease.id);
    let resent = store.write(move |transaction| async move {
        resend(&transaction, webhook, [id], later(10)).await
    });
    assert_eq!(resent.await, 1);

    leased = store.claim(later(10)).await;
    store.report_all(&leased, &server_error(), later(10)).await;

    assert!(store.claim(later(10 + 4)).await.is_empty());
    let again = store.claim(later(10 + 5)).await;
    assert_eq!(again[0].lease.id, id, "the same notification");
    assert_eq!(again[0].attempts, 3);
}

#[tokio::test]
async fn each_notification_of_a_batch_has_its_own_outcome() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(3, NOW).await;
    let leased = store.claim(NOW).await;
    let retry_later = Outcome::Failed {
        failure: Failure::Status,
        status: Some(503),
        retry_after: Some(SignedDuration::from_secs(60)),
    };

    let outcomes = [
        (&leased[0], Outcome::Delivered),
        (&leased[1], retry_later),
        (&leased[2], timed_out()),
    ];
    assert_eq!(store.report(&outcomes, NOW).await, 3);

    assert_eq!(store.count("delivered").await, 2);
    assert_eq!(store.count("leased").await, 0);
    assert_eq!(
        store.row(webhook_id).await.receiver_health.as_deref(),
        Some("slow")
    );
    assert_eq!(store.claim(later(5)).await[0].lease.id, leased[2].lease.id);
    let rows = attempt::Entity::find()
        .all(store.storage.reader())
        .await
        .unwrap();
    let mut failures: Vec<_> = rows
        .into_iter()
        .map(|row| (row.number, row.failure))
        .collect();
    failures.sort();
    assert_eq!(
        failures,
        [
            (1, None),
            (1, None),
            (1, Some("status".to_owned())),
            (1, Some("timeout".to_owned())),
        ]
    );
}

/// A later outcome is ignored, even in the same batch.
#[tokio::test]
async fn only_the_first_outcome_of_a_lease_applies() {
    for first_succeeds in [true, false] {
        let (store, _) = TestStore::with_a_webhook().await;
        store.complete(1, NOW).await;
        let leased = store.claim(NOW).await;
        let mut outcomes = [
            (&leased[0], Outcome::Delivered),
            (&leased[0], server_error()),
        ];
        if !first_succeeds {
            outcomes.reverse();
        }

        assert_eq!(store.report(&outcomes, NOW).await, 1);

        assert_eq!(store.count("delivered").await, u64::from(first_succeeds));
        assert_eq!(store.count("pending").await, u64::from(!first_succeeds));
    }
}

#[tokio::test]
async fn a_webhook_whose_receiver_is_gone_is_disabled() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(2, NOW).await;
    let leased = store.claim(NOW).await;

    store
        .report_all(&leased, &failed(Failure::Status, Some(410)), NOW)
        .await;

    assert_eq!(store.complete(1, NOW).await, 0);
    assert_eq!(store.count("exhausted").await, 1);
    assert_eq!(store.count("cancelled").await, 1, "the other notification");
    assert!(store.claim(later(1_000_000)).await.is_empty());
    assert!(store.row(webhook_id).await.disabled_at.is_some());
}

/// Otherwise the count of disabled webhooks would be too high.
#[tokio::test]
async fn later_outcomes_do_not_disable_a_webhook_again() {
    let gone = failed(Failure::Status, Some(410));
    for (later_outcome, days) in [(&gone, 0), (&server_error(), 0), (&server_error(), 10)] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        let webhook = store.key(webhook_id);
        store.make_healthy(NOW).await;
        store.complete(3, NOW).await;
        let leased = store.claim(NOW).await;
        let apply_outcomes = async |leased: &[ClaimedNotification], outcome: &Outcome, now| {
            let outcomes: Vec<_> = leased
                .iter()
                .map(|leased| (leased, outcome.clone()))
                .collect();
            let applied = store.apply_outcomes(Duration::ZERO, &outcomes, now).await;
            (applied.gone, applied.failing)
        };

        let first = apply_outcomes(&leased[..2], &gone, NOW).await;
        assert_eq!(first, (vec![webhook], vec![]));
        let second = apply_outcomes(&leased[2..], later_outcome, later(days * 86_400)).await;
        assert_eq!(second, (vec![], vec![]));
    }
}

#[tokio::test]
async fn a_webhook_without_a_success_for_five_days_is_disabled() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let days = |days: i64| later(days * 86_400);
    let fail = async |now| {
        store.complete(1, now).await;
        let leased = store.claim(now).await;
        store.report_all(&leased, &server_error(), now).await;
        store.row(webhook_id).await.disabled_at.is_some()
    };
    assert!(!fail(days(0)).await);
    assert!(!fail(days(3)).await);
    store.make_healthy(days(4)).await;
    assert_eq!(store.row(webhook_id).await.failing_since, None);

    assert!(
        !fail(days(5)).await,
        "counted from this failure, not the first"
    );
    assert!(!fail(days(9)).await);
    assert!(fail(days(10)).await);

    assert_eq!(store.complete(1, days(10)).await, 0);
}

/// Otherwise its first failure after months would disable it again.
#[tokio::test]
async fn enabling_a_webhook_resets_its_failing_period() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let days = |days: i64| later(days * 86_400);
    for (now, is_disabled) in [(0, false), (5, true), (100, false), (105, true)] {
        if now == 100 {
            store.set_enabled(webhook_id, true, days(now)).await;
        }
        store.complete(1, days(now)).await;
        let leased = store.claim(days(now)).await;
        store
            .report_all(&leased[..1], &server_error(), days(now))
            .await;
        let row = store.row(webhook_id).await;
        assert_eq!(row.disabled_at.is_some(), is_disabled, "{now}");
    }
}

/// Whether or not the webhook is enabled again before the outcome.
#[tokio::test]
async fn a_notification_in_flight_when_its_webhook_is_disabled_is_not_retried() {
    for is_enabled_again in [false, true] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        store.make_healthy(NOW).await;
        store.complete(4, NOW).await;
        let leased = store.claim(NOW).await;
        store.set_enabled(webhook_id, false, NOW).await;
        assert_eq!(store.count("cancelled").await, 4, "at once");
        if is_enabled_again {
            store.set_enabled(webhook_id, true, NOW).await;
        }

        let outcomes = [
            (&leased[0], server_error()),
            (&leased[1], timed_out()),
            (&leased[2], Outcome::Delivered),
        ];
        assert_eq!(store.report(&outcomes, later(1)).await, 3);

        assert_eq!(store.count("cancelled").await, 3);
        assert_eq!(store.count("delivered").await, 2, "the attempt succeeded");
        assert_eq!(
            store.report(&outcomes, later(2)).await,
            0,
            "a repeated report changes nothing"
        );
        if !is_enabled_again {
            store.set_enabled(webhook_id, true, later(2)).await;
        }
        assert!(store.claim(later(1_000_000)).await.is_empty());
        let rows = attempt::Entity::find().all(store.storage.reader()).await;
        let attempted = rows.unwrap().into_iter().map(|row| row.notification_id);
        let attempted: std::collections::HashSet<_> = attempted.collect();
        for (leased, was_attempted) in leased.iter().zip([true, true, true, false]) {
            assert_eq!(attempted.contains(&leased.lease.id.0), was_attempted);
        }
    }
}

/// It was claimed while the webhook was being disabled or deleted.
#[tokio::test]
async fn a_notification_that_fails_while_its_webhook_is_disabled_or_deleted_is_cancelled() {
    for is_deleted in [false, true] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        store.complete(1, NOW).await;
        let leased = store.claim(NOW).await;
        if is_deleted {
            webhook::Entity::delete_by_id((store.store_id.0, webhook_id.0))
                .exec(store.storage.reader())
                .await
                .unwrap();
        } else {
            store.disable_without_cancelling(webhook_id).await;
        }

        store.report_all(&leased, &server_error(), NOW).await;

        assert_eq!(store.count("cancelled").await, 1);
    }
}

/// The outcome of the attempt under the old lease is ignored.
#[tokio::test]
async fn a_resent_notification_accepts_outcomes_only_under_its_new_lease() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let in_flight = store.claim(NOW).await;
    store.set_enabled(webhook_id, false, NOW).await;
    store.set_enabled(webhook_id, true, NOW).await;
    let (webhook, id) = (store.key(webhook_id), in_flight[0].lease.id);
    let resend = async || {
        store
            .storage
            .write(move |transaction| async move {
                let ids = [id];
                resend(&transaction, webhook, ids, NOW).await
            })
            .await
            .unwrap()
    };
    assert_eq!(resend().await, 1);

    assert_eq!(
        store.report(&[(&in_flight[0], server_error())], NOW).await,
        0
    );
    let leased = store.claim(NOW).await;
    assert_eq!(
        store.report(&[(&in_flight[0], server_error())], NOW).await,
        0
    );

    store.report_all(&leased, &server_error(), NOW).await;
    assert_eq!(store.count("pending").await, 1, "it is retried");
}

/// The success and a failure are in one batch, in either order.
#[tokio::test]
async fn any_success_ends_the_failing_period() {
    for first_succeeds in [true, false] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        let days = |days: i64| later(days * 86_400);
        store.make_healthy(NOW).await;
        store.complete(1, NOW).await;
        let leased = store.claim(NOW).await;
        store.report_all(&leased, &server_error(), NOW).await;
        store.complete(1, days(1)).await;
        let leased = store.claim(days(6)).await;
        assert_eq!(leased.len(), 2);

        let mut outcomes = [(&leased[0], Outcome::Delivered), (&leased[1], timed_out())];
        if !first_succeeds {
            outcomes.reverse();
        }
        store.report(&outcomes, days(6)).await;

        let row = store.row(webhook_id).await;
        assert_eq!(row.disabled_at, None);
        let since = row.failing_since.map(|since| since.try_into().unwrap());
        assert_eq!(since, first_succeeds.then_some(days(6)));
        let expected = if first_succeeds { "slow" } else { "healthy" };
        assert_eq!(row.receiver_health.as_deref(), Some(expected));
    }
}
