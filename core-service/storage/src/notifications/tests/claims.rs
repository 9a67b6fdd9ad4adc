//! Claims select by webhook: no webhook delays another.

use super::{super::eligibility::LEASE_LEFT_AFTER_WINDOW, *};

/// The number of leased notifications of each webhook.
pub(super) fn counts(leased: &[ClaimedNotification], webhooks: &[WebhookId]) -> Vec<usize> {
    webhooks
        .iter()
        .map(|id| {
            let of_webhook = leased
                .iter()
                .filter(|claimed| claimed.target.key.webhook_id == *id);
            of_webhook.count()
        })
        .collect()
}

#[tokio::test]
async fn a_backlog_of_ten_thousand_does_not_delay_notifications_of_other_webhooks() {
    let (store, backlogged) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(10_000, NOW).await;
    let new = store.add_webhook().await;
    store.complete(3, later(60)).await;

    let leased = store.claim_for(LONG_LEASE, 128, later(60)).await;

    // The limits in flight: 32 for a healthy webhook, one for a new one until it is healthy.
    assert_eq!(counts(&leased, &[backlogged, new]), [32, 1]);
    let of_new: Vec<_> = leased
        .iter()
        .filter(|claimed| claimed.target.key.webhook_id == new)
        .cloned()
        .collect();
    store
        .report_all(&of_new, &Outcome::Delivered, later(60))
        .await;
    let leased = store.claim_for(LONG_LEASE, 128, later(60)).await;
    assert_eq!(counts(&leased, &[backlogged, new]), [0, 2]);
}

#[tokio::test]
async fn a_webhook_whose_limit_has_grown_gets_more_than_another() {
    for store in [Some(TestStore::new().await), TestStore::on_postgres().await] {
        let Some(store) = store else {
            continue;
        };
        let webhooks = [store.add_webhook().await, store.add_webhook().await];
        store.make_healthy(NOW).await;
        store.complete(200, NOW).await;
        let claim = async |free_grown| {
            let budget = ClaimBudget {
                free_grown,
                grown: [(webhooks[0], 100)].into(),
                ..budget(200)
            };
            let is_any = is_any_claimable(store.storage.reader(), &budget, NOW).await;
            let claimed = store.storage.write(move |transaction| {
                let budget = budget.clone();
                async move { claim(&transaction, &budget, LONG_LEASE, NOW).await }
            });
            (
                counts(&claimed.await.unwrap().claimed, &webhooks),
                is_any.unwrap(),
            )
        };

        assert_eq!(claim(0).await, (vec![32, 32], true));
        assert_eq!(claim(0).await, (vec![0, 0], false));
        assert_eq!(claim(50).await, (vec![50, 0], true));
        assert_eq!(claim(50).await, (vec![18, 0], true));
        assert_eq!(claim(50).await, (vec![0, 0], false));
    }
}

/// Otherwise a healthy receiver would get nothing until the leases of dead dispatchers expire.
#[tokio::test]
async fn leases_past_the_in_flight_window_do_not_count_for_healthy_receivers() {
    let nearly_expired = LEASE_LEFT_AFTER_WINDOW / 2;
    for (outcome, claimed, more) in [
        (Some(Outcome::Delivered), 32, 8),
        (Some(timed_out()), 1, 0),
        // No attempt has ended yet.
        (None, 1, 0),
    ] {
        for store in [Some(TestStore::new().await), TestStore::on_postgres().await] {
            let Some(store) = store else {
                continue;
            };
            store.add_webhook().await;
            if let Some(outcome) = &outcome {
                store.complete(1, NOW).await;
                let first = store.claim(NOW).await;
                store.report_all(&first, outcome, NOW).await;
            }
            store.complete(40, NOW).await;

            assert_eq!(
                store.claim_for(nearly_expired, 64, NOW).await.len(),
                claimed
            );
            let is_any_claimable = is_any_claimable(store.storage.reader(), &budget(64), NOW).await;
            assert_eq!(is_any_claimable.unwrap(), more > 0, "{outcome:?}");
            let leased = store.claim_for(LONG_LEASE, 64, NOW).await;
            assert_eq!(leased.len(), more, "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_webhook_that_timed_out_gets_one_notification_at_a_time_until_it_is_fast() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(100, NOW).await;
    let leased = store.claim_for(LONG_LEASE, 128, NOW).await;
    assert_eq!(leased.len(), 32);
    store.report_all(&leased, &timed_out(), NOW).await;

    let leased = store.claim_for(LONG_LEASE, 128, NOW).await;
    assert_eq!(leased.len(), 1);
    assert!(store.claim_for(LONG_LEASE, 128, NOW).await.is_empty());
    store.report_all(&leased, &server_error(), NOW).await;

    assert_eq!(
        store.row(webhook_id).await.receiver_health.as_deref(),
        Some("healthy")
    );
    assert_eq!(
        store.claim_for(LONG_LEASE, 128, NOW).await.len(),
        32,
        "a fast error response is not slow"
    );
}

/// A response whose body never arrives, or that arrives just before the timeout, uses as much
/// capacity as a timeout.
#[tokio::test]
async fn a_slow_webhook_gets_one_notification_at_a_time_after_any_outcome() {
    let slow = Duration::from_secs(14);
    for outcome in [Outcome::Delivered, server_error()] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        store.make_healthy(NOW).await;
        store.complete(100, NOW).await;
        let leased = store.claim_for(LONG_LEASE, 128, NOW).await;
        assert_eq!(leased.len(), 32);
        let all: Vec<_> = leased
            .iter()
            .map(|leased| (leased, outcome.clone()))
            .collect();

        store.report_with_duration(slow, &all, NOW).await;

        let row = store.row(webhook_id).await;
        assert_eq!(row.receiver_health.as_deref(), Some("slow"), "{outcome:?}");
        let delivered = outcome == Outcome::Delivered;
        assert_eq!(row.failing_since.is_none(), delivered, "{outcome:?}");
        let one = store.claim_for(LONG_LEASE, 128, NOW).await;
        assert_eq!(one.len(), 1, "{outcome:?}");
        assert!(store.claim_for(LONG_LEASE, 128, NOW).await.is_empty());
        store
            .report_with_duration(slow, &[(&one[0], outcome.clone())], NOW)
            .await;
        let one = store.claim_for(LONG_LEASE, 128, NOW).await;
        assert_eq!(one.len(), 1, "it is still slow");
        store.report_all(&one, &Outcome::Delivered, NOW).await;
        assert_eq!(
            store.row(webhook_id).await.receiver_health.as_deref(),
            Some("healthy")
        );
        assert_eq!(store.claim_for(LONG_LEASE, 128, NOW).await.len(), 32);
    }
}

#[tokio::test]
async fn slow_webhooks_wait_for_their_budget_and_share_it_equally() {
    let store = TestStore::new().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(store.add_webhook().await);
    }
    store.complete(3, NOW).await;
    let leased = store.claim(NOW).await;
    assert_eq!(counts(&leased, &ids), [1; 5], "one for each new webhook");
    store.report_all(&leased, &timed_out(), NOW).await;
    let budget = |free_for_slow| ClaimBudget {
        free_slow: free_for_slow,
        ..budget(100)
    };
    assert!(
        !is_any_claimable(store.storage.reader(), &budget(0), NOW)
            .await
            .unwrap()
    );
    assert!(
        is_any_claimable(store.storage.reader(), &budget(2), NOW)
            .await
            .unwrap()
    );
    assert!(
        store
            .claim_within(budget(0), LONG_LEASE, NOW)
            .await
            .is_empty()
    );

    let mut claimed = vec![0; 5];
    for round in 1..=5 {
        let leased = store
            .claim_within(budget(2), LONG_LEASE, later(round))
            .await;
        assert_eq!(leased.len(), 2);
        for (claimed, more) in claimed.iter_mut().zip(counts(&leased, &ids)) {
            *claimed += more;
        }
        store.report_all(&leased, &timed_out(), later(round)).await;
    }

    assert_eq!(claimed, [2; 5], "two for each");
}

#[tokio::test]
async fn a_queue_position_is_set_while_notifications_are_pending() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    assert_eq!(store.queue_position(webhook_id).await, None);
    store.make_healthy(NOW).await;
    assert_eq!(store.queue_position(webhook_id).await, None);

    store.complete(3, later(1)).await;
    assert_eq!(store.queue_position(webhook_id).await, Some(later(1)));
    let leased = store.claim_for(LONG_LEASE, 2, later(9)).await;
    assert_eq!(
        store.queue_position(webhook_id).await,
        Some(later(9)),
        "the end of the queue"
    );
    store
        .report_all(&leased[..1], &server_error(), later(9))
        .await;
    let more = store.claim_for(LONG_LEASE, 2, later(10)).await;
    assert_eq!(more.len(), 1);
    assert_eq!(
        store.queue_position(webhook_id).await,
        Some(later(14)),
        "the next attempt"
    );

    store.report_all(&more, &server_error(), later(7)).await;
    assert_eq!(
        store.queue_position(webhook_id).await,
        Some(later(12)),
        "an earlier next attempt"
    );
    store.complete(1, later(11)).await;
    assert_eq!(store.queue_position(webhook_id).await, Some(later(11)));
    assert_eq!(store.claim(later(20)).await.len(), 3);
    assert_eq!(store.queue_position(webhook_id).await, None);
}

#[tokio::test]
async fn a_new_notification_may_be_pre_leased_to_a_healthy_receiver_without_earlier_ones_due() {
    let (store, _) = TestStore::with_a_webhook().await;
    let may_be_pre_leased = async |now| store.record_completion(now).await[0].may_be_pre_leased;
    assert!(!may_be_pre_leased(NOW).await, "no attempt has ended yet");
    store.make_healthy(NOW).await;
    assert!(may_be_pre_leased(NOW).await);
    store.complete(1, NOW).await;
    assert!(!may_be_pre_leased(NOW).await);
    let leased = store.claim(NOW).await;
    store.report_all(&leased, &server_error(), NOW).await;
    assert!(
        may_be_pre_leased(later(4)).await,
        "the retry is not due yet"
    );
    assert!(!may_be_pre_leased(later(5)).await);

    let leased = store.claim(later(5)).await;
    store.report_all(&leased, &timed_out(), later(5)).await;
    assert!(!may_be_pre_leased(later(6)).await, "its receiver is slow");
}

/// Otherwise the others would wait for the next poll.
#[tokio::test]
async fn a_claim_that_uses_its_whole_budget_may_have_left_due_notifications() {
    for (free, is_complete) in [(2, false), (3, true)] {
        let (store, _) = TestStore::with_a_webhook().await;
        store.add_webhook().await;
        store.complete(1, NOW).await;

        let batch = store.write(move |transaction| async move {
            claim(&transaction, &budget(free), LONG_LEASE, NOW).await
        });
        let batch = batch.await;

        assert_eq!(batch.claimed.len(), 2);
        assert_eq!(batch.is_complete, is_complete, "{free}");
    }
}

#[tokio::test]
async fn a_store_whose_slow_receivers_have_used_its_share_has_nothing_to_claim_for_them() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let is_claimable = async |of_store| {
        let mut budget = budget(64);
        budget.slow_by_store.insert(of_store, budget.slow_per_store);
        is_any_claimable(store.storage.reader(), &budget, NOW)
            .await
            .unwrap()
    };
    assert!(!is_claimable(store.store_id).await);
    assert!(is_claimable(StoreId::new()).await);

    store.make_healthy(NOW).await;
    store.complete(1, NOW).await;

    assert!(is_claimable(store.store_id).await);
}

/// As a later version may have written it.
#[tokio::test]
async fn a_webhook_of_an_unknown_health_gets_one_notification_at_a_time() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(3, NOW).await;
    let row = webhook::ActiveModel {
        store_id: Set(store.store_id.0),
        id: Set(webhook_id.0),
        receiver_health: Set(Some("later".to_owned())),
        ..Default::default()
    };
    row.update(store.storage.reader()).await.unwrap();

    assert_eq!(store.claim_for(LONG_LEASE, 128, NOW).await.len(), 1);
    assert!(store.claim_for(LONG_LEASE, 128, NOW).await.is_empty());
}
