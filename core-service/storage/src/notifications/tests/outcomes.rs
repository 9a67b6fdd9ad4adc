//! What becomes of notifications, and of webhooks, after attempts.

use super::*;
use crate::webhook_notifications::send_again;

#[tokio::test]
async fn what_failed_is_due_again_by_the_schedule() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    let held = shop.claim(NOW).await;

    shop.report_all(&held, &refused(), NOW).await;

    assert!(shop.claim(later(4)).await.is_empty());
    let again = shop.claim(later(5)).await;
    assert_eq!(again[0].1.id, held[0].1.id, "the same notification");
    assert_eq!(again[0].1.attempts, 1);
}

#[tokio::test]
async fn each_of_a_batch_has_its_own_end() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(3, NOW).await;
    let held = shop.claim(NOW).await;
    let asked = Outcome::Failed {
        failure: Failure::Status,
        status: Some(503),
        retry_after: Some(SignedDuration::from_secs(60)),
    };

    let outcomes = [
        (&held[0], Outcome::Delivered),
        (&held[1], asked),
        (&held[2], timed_out()),
        (&held[0], refused()),
    ];
    assert_eq!(
        shop.report(&outcomes, NOW).await,
        3,
        "one lease, one outcome"
    );

    assert_eq!(shop.count("delivered").await, 2);
    assert_eq!(shop.count("leased").await, 0);
    assert_eq!(shop.row(webhook_id).await.was_slow, Some(true));
    assert_eq!(shop.claim(later(5)).await[0].1.id, held[2].1.id);
    let rows = attempt::Entity::find()
        .all(shop.storage.reader())
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

/// Whatever a dispatcher says after it, even in the same breath.
#[tokio::test]
async fn the_first_outcome_of_a_lease_is_the_one_that_counts() {
    for first_succeeds in [true, false] {
        let (shop, _) = Shop::with_a_webhook().await;
        shop.complete(1, NOW).await;
        let held = shop.claim(NOW).await;
        let mut outcomes = [(&held[0], Outcome::Delivered), (&held[0], refused())];
        if !first_succeeds {
            outcomes.reverse();
        }

        assert_eq!(shop.report(&outcomes, NOW).await, 1);

        assert_eq!(shop.count("delivered").await, u64::from(first_succeeds));
        assert_eq!(shop.count("pending").await, u64::from(!first_succeeds));
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_hears_no_more() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.complete(2, NOW).await;
    let held = shop.claim(NOW).await;

    shop.report_all(&held, &failed(Failure::Status, Some(410)), NOW)
        .await;

    assert_eq!(shop.complete(1, NOW).await, 0);
    assert_eq!(shop.count("given_up").await, 1);
    assert_eq!(shop.count("dropped").await, 1, "what was owed beside it");
    assert!(shop.claim(later(1_000_000)).await.is_empty());
    assert!(shop.row(webhook_id).await.disabled_at.is_some());
}

/// Else an operator would be told of more webhooks than there are.
#[tokio::test]
async fn a_webhook_is_disabled_once_whatever_else_comes_back() {
    let gone = failed(Failure::Status, Some(410));
    for (later_outcome, days) in [(&gone, 0), (&refused(), 0), (&refused(), 10)] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        let owner = (shop.store_id, webhook_id);
        shop.has_answered(NOW).await;
        shop.complete(3, NOW).await;
        let held = shop.claim(NOW).await;
        let record = async |held: &[Held], outcome: &Outcome, now| {
            let outcomes: Vec<_> = held.iter().map(|held| (held, outcome.clone())).collect();
            let recorded = shop.record(Duration::ZERO, &outcomes, now).await;
            (recorded.gone, recorded.failing)
        };

        let together = record(&held[..2], &gone, NOW).await;
        assert_eq!(together, (vec![owner], vec![]));
        let later = record(&held[2..], later_outcome, later(days * 86_400)).await;
        assert_eq!(later, (vec![], vec![]));
    }
}

#[tokio::test]
async fn one_that_has_only_failed_for_five_days_is_disabled() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let days = |days: i64| later(days * 86_400);
    let fail = async |now| {
        shop.complete(1, now).await;
        let held = shop.claim(now).await;
        shop.report_all(&held, &refused(), now).await;
        shop.row(webhook_id).await.disabled_at.is_some()
    };
    assert!(!fail(days(0)).await);
    assert!(!fail(days(3)).await);
    shop.has_answered(days(4)).await;
    assert_eq!(shop.row(webhook_id).await.failing_since, None);

    assert!(!fail(days(5)).await, "since this one, not the first");
    assert!(!fail(days(9)).await);
    assert!(fail(days(10)).await);

    assert_eq!(shop.complete(1, days(10)).await, 0);
}

/// Else its first failure after months would disable it again.
#[tokio::test]
async fn the_days_begin_anew_when_a_webhook_is_enabled() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let days = |days: i64| later(days * 86_400);
    for (now, is_disabled) in [(0, false), (5, true), (100, false), (105, true)] {
        if now == 100 {
            shop.set_enabled(webhook_id, true, days(now)).await;
        }
        shop.complete(1, days(now)).await;
        let held = shop.claim(days(now)).await;
        shop.report_all(&held[..1], &refused(), days(now)).await;
        let row = shop.row(webhook_id).await;
        assert_eq!(row.disabled_at.is_some(), is_disabled, "{now}");
    }
}

/// Whether or not it is enabled again by then.
#[tokio::test]
async fn what_was_on_its_way_when_its_webhook_was_disabled_is_not_tried_again() {
    for is_enabled_again in [false, true] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        shop.has_answered(NOW).await;
        shop.complete(4, NOW).await;
        let held = shop.claim(NOW).await;
        shop.set_enabled(webhook_id, false, NOW).await;
        assert_eq!(shop.count("dropped").await, 4, "at once");
        if is_enabled_again {
            shop.set_enabled(webhook_id, true, NOW).await;
        }

        let outcomes = [
            (&held[0], refused()),
            (&held[1], timed_out()),
            (&held[2], Outcome::Delivered),
        ];
        assert_eq!(shop.report(&outcomes, later(1)).await, 3);

        assert_eq!(shop.count("dropped").await, 3);
        assert_eq!(shop.count("delivered").await, 2, "it was told all the same");
        assert_eq!(
            shop.report(&outcomes, later(2)).await,
            0,
            "told twice changes nothing"
        );
        if !is_enabled_again {
            shop.set_enabled(webhook_id, true, later(2)).await;
        }
        assert!(shop.claim(later(1_000_000)).await.is_empty());
        let rows = attempt::Entity::find().all(shop.storage.reader()).await;
        let tried = rows.unwrap().into_iter().map(|row| row.notification_id);
        let tried: std::collections::HashSet<_> = tried.collect();
        for (held, is_tried) in held.iter().zip([true, true, true, false]) {
            assert_eq!(tried.contains(&held.1.id.0), is_tried);
        }
    }
}

/// As when it came to be on its way just as the webhook was disabled.
#[tokio::test]
async fn what_fails_while_its_webhook_is_disabled_or_deleted_is_dropped() {
    for is_deleted in [false, true] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        shop.complete(1, NOW).await;
        let held = shop.claim(NOW).await;
        if is_deleted {
            webhook::Entity::delete_by_id((shop.store_id.0, webhook_id.0))
                .exec(shop.storage.reader())
                .await
                .unwrap();
        } else {
            shop.disable_alone(webhook_id).await;
        }

        shop.report_all(&held, &refused(), NOW).await;

        assert_eq!(shop.count("dropped").await, 1);
    }
}

/// One that is sent again is owed anew, whatever comes of the request that is still on its way.
#[tokio::test]
async fn what_is_sent_again_goes_by_its_new_lease() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    let lost = shop.claim(NOW).await;
    shop.set_enabled(webhook_id, false, NOW).await;
    shop.set_enabled(webhook_id, true, NOW).await;
    let (owner, id) = ((shop.store_id, webhook_id), lost[0].1.id);
    let send_again = async || {
        shop.storage
            .write(move |transaction| {
                Box::pin(async move {
                    let ids = [id];
                    send_again(transaction, owner, ids, NOW).await
                })
            })
            .await
            .unwrap()
    };
    assert_eq!(send_again().await, 1);

    assert_eq!(shop.report(&[(&lost[0], refused())], NOW).await, 0);
    let held = shop.claim(NOW).await;
    assert_eq!(shop.report(&[(&lost[0], refused())], NOW).await, 0);

    shop.report_all(&held, &refused(), NOW).await;
    assert_eq!(shop.count("pending").await, 1, "it is tried again");
}

/// In one batch, whichever comes first.
#[tokio::test]
async fn any_success_clears_what_failed_before() {
    for first_succeeds in [true, false] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        let days = |days: i64| later(days * 86_400);
        shop.has_answered(NOW).await;
        shop.complete(1, NOW).await;
        let held = shop.claim(NOW).await;
        shop.report_all(&held, &timed_out(), NOW).await;
        shop.complete(1, days(1)).await;
        let held = shop.claim(days(1)).await;
        shop.report_all(&held, &refused(), days(1)).await;
        let held = shop.claim(days(6)).await;
        assert_eq!(held.len(), 2);

        let mut outcomes = [(&held[0], Outcome::Delivered), (&held[1], timed_out())];
        if !first_succeeds {
            outcomes.reverse();
        }
        shop.report(&outcomes, days(6)).await;

        let row = shop.row(webhook_id).await;
        assert_eq!(row.disabled_at, None);
        let since = row.failing_since.map(|since| since.try_into().unwrap());
        assert_eq!(since, first_succeeds.then_some(days(6)));
        assert_eq!(row.was_slow, Some(first_succeeds));
    }
}

#[tokio::test]
async fn a_lost_log_of_attempts_resends_nothing() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    let held = shop.claim(NOW).await;
    let report = Report {
        id: held[0].1.id,
        lease_token: held[0].0,
        outcome: Outcome::Delivered,
        status: Some(200),
        duration: Duration::ZERO,
        answer: String::new(),
        jitter: 0,
    };
    let recorded = shop
        .storage
        .write(move |transaction| {
            let reports = [report.clone()];
            Box::pin(async move { record(transaction, &reports, DISABLE_AFTER, NOW).await })
        })
        .await
        .unwrap();
    sea_orm::ConnectionTrait::execute_unprepared(shop.storage.reader(), "DROP TABLE attempts")
        .await
        .unwrap();

    let logged = shop
        .storage
        .write(move |transaction| {
            let attempts = recorded.attempts.clone();
            Box::pin(async move { insert_attempts(transaction, &attempts).await })
        })
        .await;

    assert!(logged.is_err());
    assert_eq!(shop.count("delivered").await, 1);
    assert!(shop.claim(later(1_000_000)).await.is_empty());
}
