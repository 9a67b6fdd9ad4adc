//! A notification has one lease at a time.

use super::*;

#[tokio::test]
async fn a_due_notification_is_claimed_once_and_a_delivered_one_never_again() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    assert_eq!(
        store.complete(1, NOW).await,
        1,
        "the webhook subscribes to one of two events"
    );
    assert!(is_any_due(store.storage.reader(), NOW).await.unwrap());
    assert!(store.claim(later(-1)).await.is_empty(), "not due yet");

    let leased = store.claim(NOW).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].event, "delivery.completed");
    assert_eq!(leased[0].target.key.webhook_id, webhook_id);
    assert!(
        store.claim(later(1_000_000)).await.is_empty(),
        "already leased"
    );

    assert_eq!(
        store.report(&[(&leased[0], Outcome::Delivered)], NOW).await,
        1
    );
    assert!(store.claim(later(1_000_000)).await.is_empty());
    assert!(
        !is_any_due(store.storage.reader(), later(1_000_000))
            .await
            .unwrap()
    );
    assert_eq!(
        store.report(&[(&leased[0], server_error())], NOW).await,
        0,
        "reported twice"
    );
}

#[tokio::test]
async fn a_notification_is_claimed_again_after_its_lease_expires_and_the_old_outcome_is_ignored() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let expired = store.claim_for(Duration::ZERO, 10, NOW).await;

    assert!(is_any_expired(store.storage.reader()).await.unwrap());
    assert_eq!(store.release_expired().await, 1);
    let claimed_again = store.claim(NOW).await;

    assert_eq!(claimed_again[0].lease.id, expired[0].lease.id);
    assert_eq!(
        store
            .report(&[(&expired[0], Outcome::Delivered)], NOW)
            .await,
        0
    );
    assert_eq!(
        store.release_expired().await,
        0,
        "the new lease has not expired"
    );
    assert_eq!(
        store
            .report(&[(&claimed_again[0], Outcome::Delivered)], NOW)
            .await,
        1
    );
}

/// The outcomes of both notifications are in one batch; the lease of one has expired.
#[tokio::test]
async fn an_outcome_applies_only_under_its_own_lease() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(2, NOW).await;
    let expired = store.claim_for(Duration::ZERO, 1, NOW).await;
    store.release_expired().await;
    let leased = store.claim(NOW).await;
    assert_eq!(leased.len(), 2);
    let other = leased
        .iter()
        .find(|leased| leased.lease.id != expired[0].lease.id)
        .unwrap();

    let outcomes = [
        (&expired[0], Outcome::Delivered),
        (other, Outcome::Delivered),
    ];
    assert_eq!(store.report(&outcomes, NOW).await, 1);

    assert_eq!(store.count("leased").await, 1);
}

/// Both are in one batch: a dispatcher reports late, after it has claimed the notification again.
#[tokio::test]
async fn of_two_outcomes_under_two_leases_the_one_under_the_current_lease_applies() {
    for stale_first in [true, false] {
        for stale_succeeds in [true, false] {
            let (store, _) = TestStore::with_a_webhook().await;
            store.complete(1, NOW).await;
            let expired = store.claim_for(Duration::ZERO, 1, NOW).await;
            store.release_expired().await;
            let leased = store.claim(NOW).await;
            let mut both = [Outcome::Delivered, server_error()];
            if !stale_succeeds {
                both.reverse();
            }
            let [stale, current] = both;
            let mut outcomes = [(&expired[0], stale), (&leased[0], current)];
            if !stale_first {
                outcomes.reverse();
            }

            assert_eq!(store.report(&outcomes, NOW).await, 1);

            let counts = (store.count("delivered").await, store.count("pending").await);
            let expected = if stale_succeeds { (0, 1) } else { (1, 0) };
            assert_eq!(counts, expected, "{stale_first}");
        }
    }
}

/// In these tests the host's clock is an hour ahead of the lease clock.
#[tokio::test]
async fn lease_expiries_use_the_lease_clock_not_the_host_clock() {
    let (store, _) = TestStore::with_a_webhook().await;
    let minute = Duration::from_mins(1);
    let ahead = Duration::from_hours(1);
    let host = || Clock::system().now().as_microsecond();
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
    store.complete(1, NOW).await;
    let before = host() - micros(ahead);
    let leased = store.claim_for(minute, 10, NOW).await;
    let after = host() - micros(ahead);

    let row = notification::Entity::find().one(store.storage.reader());
    let expiry = row.await.unwrap().unwrap().lease_expires_at.unwrap().0;
    // The two clocks were not read at one instant.
    let expected = before..=after + 2 * micros(minute);
    assert!(
        expected.contains(&expiry),
        "{expiry} is not within {expected:?}"
    );
    assert!(!is_any_expired(store.storage.reader()).await.unwrap());
    assert_eq!(store.release_expired().await, 0);
    assert_eq!(
        store.report(&[(&leased[0], Outcome::Delivered)], NOW).await,
        1
    );
}

/// A core restarts while dispatchers are sending: its lease clock may differ.
#[tokio::test]
async fn leases_of_a_previous_process_are_renewed() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(2, NOW).await;
    let expired = store.claim_for(Duration::ZERO, 1, NOW).await;
    let unexpired = store.claim_for(LONG_LEASE * 10_000, 1, NOW).await;
    let renew = async |lease| {
        store
            .storage
            .write(move |transaction| async move { renew_all(&transaction, lease).await })
            .await
            .unwrap()
    };

    assert_eq!(renew(LONG_LEASE).await, 2);
    assert_eq!(store.release_expired().await, 0);
    store.report_all(&expired, &Outcome::Delivered, NOW).await;

    assert_eq!(renew(Duration::ZERO).await, 1);
    assert_eq!(store.release_expired().await, 1);
    assert_eq!(
        store
            .report(&[(&unexpired[0], Outcome::Delivered)], NOW)
            .await,
        0
    );
}

/// Due times follow the host's clock, which may jump; leases have their own clock.
#[tokio::test]
async fn a_clock_jump_expires_no_lease_and_sends_nothing_early_or_twice() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let hour = 3600;
    store.complete(1, NOW).await;
    let leased = store.claim(NOW).await;

    for jump in [hour, -hour] {
        assert!(!is_any_expired(store.storage.reader()).await.unwrap());
        assert_eq!(store.release_expired().await, 0);
        assert!(store.claim(later(jump)).await.is_empty());
    }
    // The attempt fails while the clock is an hour ahead: the retry is due by that clock, once.
    store
        .report_all(&leased, &server_error(), later(hour))
        .await;
    assert_eq!(
        store.queue_position(webhook_id).await,
        Some(later(hour + 5))
    );
    assert!(store.claim(NOW).await.is_empty());
    let again = store.claim(later(hour + 5)).await;
    assert_eq!(again.len(), 1);
    // The retry fails while the clock is an hour behind: the next one is due by that clock.
    store
        .report_all(&again, &server_error(), later(-hour))
        .await;
    assert!(store.claim(later(-hour + 299)).await.is_empty());
    assert_eq!(store.claim(later(-hour + 300)).await[0].attempts, 2);
}

#[tokio::test]
async fn a_released_notification_is_due_at_once() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    let leased = store.claim(NOW).await;
    assert_eq!(store.queue_position(webhook_id).await, None);
    let tokens = [
        leased[0].lease,
        Lease {
            token: Uuid::now_v7(),
            ..leased[0].lease
        },
    ];

    for expected in [1, 0] {
        let released = store
            .storage
            .write(move |transaction| async move { release(&transaction, &tokens, NOW).await })
            .await
            .unwrap();
        assert_eq!(released, expected);
    }

    assert_eq!(store.claim(NOW).await[0].lease.id, leased[0].lease.id);
}

#[tokio::test]
async fn a_pre_leased_notification_is_not_claimed_until_its_lease_expires() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let mut new = store.record_completion(NOW).await;
    new[0].is_pre_leased = true;
    let id = new[0].leased.lease.id;
    let is_any_pending = store.write(move |transaction| async move {
        insert(&transaction, &new.clone(), Duration::ZERO, NOW).await
    });
    assert!(!is_any_pending.await);

    assert_eq!(
        store.queue_position(webhook_id).await,
        None,
        "not in the queue"
    );
    assert!(store.claim(later(1_000_000)).await.is_empty());
    assert_eq!(store.release_expired().await, 1);
    assert_eq!(store.claim(NOW).await[0].lease.id, id);
}

/// Otherwise it would be pending forever.
#[tokio::test]
async fn a_released_notification_of_a_deleted_or_disabled_webhook_is_cancelled() {
    for is_deleted in [true, false] {
        let (store, webhook_id) = TestStore::with_a_webhook().await;
        store.complete(1, NOW).await;
        store.claim_for(Duration::ZERO, 10, NOW).await;
        if is_deleted {
            webhook::Entity::delete_by_id((store.store_id.0, webhook_id.0))
                .exec(store.storage.reader())
                .await
                .unwrap();
        } else {
            store.disable_without_cancelling(webhook_id).await;
        }

        assert_eq!(store.release_expired().await, 1);

        assert_eq!(store.count("cancelled").await, 1, "{is_deleted}");
    }
}

/// It is disabled between the query for subscribers and the insert.
#[tokio::test]
async fn no_notification_becomes_pending_for_a_webhook_that_was_just_disabled() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    let new = store.record_completion(NOW).await;
    store.set_enabled(webhook_id, false, NOW).await;

    let is_any_pending = store.write(move |transaction| async move {
        insert(&transaction, &new.clone(), LONG_LEASE, NOW).await
    });

    assert!(!is_any_pending.await);
    assert_eq!(store.count("pending").await, 0);
}
