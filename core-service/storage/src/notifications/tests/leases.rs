//! What is due is held by one at a time.

use super::*;

#[tokio::test]
async fn what_is_due_is_claimed_once_and_what_is_delivered_never_again() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    assert_eq!(
        shop.complete(1, NOW).await,
        1,
        "of two events, one is asked for"
    );
    assert!(is_any_due(shop.storage.reader(), NOW).await.unwrap());
    assert!(shop.claim(later(-1)).await.is_empty(), "not due yet");

    let held = shop.claim(NOW).await;
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].1.event, "delivery.completed");
    assert_eq!(held[0].1.target.webhook_id, webhook_id);
    assert!(
        shop.claim(later(1_000_000)).await.is_empty(),
        "held by another"
    );

    assert_eq!(shop.report(&[(&held[0], Outcome::Delivered)], NOW).await, 1);
    assert!(shop.claim(later(1_000_000)).await.is_empty());
    assert!(
        !is_any_due(shop.storage.reader(), later(1_000_000))
            .await
            .unwrap()
    );
    assert_eq!(
        shop.report(&[(&held[0], refused())], NOW).await,
        0,
        "told twice"
    );
}

#[tokio::test]
async fn a_lease_that_is_over_is_taken_over_and_its_outcome_changes_nothing() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    let lost = shop.claim_for(Duration::ZERO, 10, NOW).await;

    assert!(is_any_expired(shop.storage.reader()).await.unwrap());
    assert_eq!(shop.release_expired().await, 1);
    let taken_over = shop.claim(NOW).await;

    assert_eq!(taken_over[0].1.id, lost[0].1.id);
    assert_eq!(shop.report(&[(&lost[0], Outcome::Delivered)], NOW).await, 0);
    assert_eq!(shop.release_expired().await, 0, "the new lease goes on");
    assert_eq!(
        shop.report(&[(&taken_over[0], Outcome::Delivered)], NOW)
            .await,
        1
    );
}

/// In one batch with the outcome of another that is held under the newer lease.
#[tokio::test]
async fn a_lease_is_never_mistaken_for_anothers() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(2, NOW).await;
    let lost = shop.claim_for(Duration::ZERO, 1, NOW).await;
    shop.release_expired().await;
    let held = shop.claim(NOW).await;
    assert_eq!(held.len(), 2);
    let other = held.iter().find(|held| held.1.id != lost[0].1.id).unwrap();

    let outcomes = [(&lost[0], Outcome::Delivered), (other, Outcome::Delivered)];
    assert_eq!(shop.report(&outcomes, NOW).await, 1);

    assert_eq!(shop.count("leased").await, 1);
}

/// In one batch: a dispatcher that was slow to tell was handed it again.
#[tokio::test]
async fn of_two_outcomes_under_two_leases_the_one_of_the_lease_that_is_not_over_counts() {
    for stale_first in [true, false] {
        for stale_succeeds in [true, false] {
            let (shop, _) = Shop::with_a_webhook().await;
            shop.complete(1, NOW).await;
            let lost = shop.claim_for(Duration::ZERO, 1, NOW).await;
            shop.release_expired().await;
            let held = shop.claim(NOW).await;
            let mut endings = [Outcome::Delivered, refused()];
            if !stale_succeeds {
                endings.reverse();
            }
            let [stale, current] = endings;
            let mut outcomes = [(&lost[0], stale), (&held[0], current)];
            if !stale_first {
                outcomes.reverse();
            }

            assert_eq!(shop.report(&outcomes, NOW).await, 1);

            let counts = (shop.count("delivered").await, shop.count("pending").await);
            let expected = if stale_succeeds { (0, 1) } else { (1, 0) };
            assert_eq!(counts, expected, "{stale_first}");
        }
    }
}

/// In these tests the host's clock is an hour ahead of what it was when the process began.
#[tokio::test]
async fn a_lease_goes_by_a_clock_that_does_not_jump_with_the_hosts() {
    let (shop, _) = Shop::with_a_webhook().await;
    let minute = Duration::from_mins(1);
    let host = || Clock::system().now().as_microsecond();
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
    shop.complete(1, NOW).await;
    let before = host() - micros(LONG);
    let held = shop.claim_for(minute, 10, NOW).await;
    let after = host() - micros(LONG);

    let row = notification::Entity::find().one(shop.storage.reader());
    let until = row.await.unwrap().unwrap().leased_until.unwrap().0;
    // The two clocks were not read at one instant.
    let taken = before..=after + 2 * micros(minute);
    assert!(taken.contains(&until), "{until} is not within {taken:?}");
    assert!(!is_any_expired(shop.storage.reader()).await.unwrap());
    assert_eq!(shop.release_expired().await, 0);
    assert_eq!(shop.report(&[(&held[0], Outcome::Delivered)], NOW).await, 1);
}

/// As when a core that dispatchers are at work for starts again: by another clock, perhaps.
#[tokio::test]
async fn leases_of_a_process_before_last_as_long_as_new_ones() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(2, NOW).await;
    let over = shop.claim_for(Duration::ZERO, 1, NOW).await;
    let endless = shop.claim_for(LONG * 10_000, 1, NOW).await;
    let renew = async |lease| {
        shop.storage
            .write(move |transaction| Box::pin(async move { renew_all(transaction, lease).await }))
            .await
            .unwrap()
    };

    assert_eq!(renew(LONG).await, 2);
    assert_eq!(shop.release_expired().await, 0);
    shop.report_all(&over, &Outcome::Delivered, NOW).await;

    assert_eq!(renew(Duration::ZERO).await, 1);
    assert_eq!(shop.release_expired().await, 1);
    assert_eq!(
        shop.report(&[(&endless[0], Outcome::Delivered)], NOW).await,
        0
    );
}

/// By the clock that decides what is due, which may jump: leases have one of their own.
#[tokio::test]
async fn a_jump_of_the_clock_ends_no_lease_and_sends_nothing_early_or_twice() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let hour = 3600;
    shop.complete(1, NOW).await;
    let held = shop.claim(NOW).await;

    for jump in [hour, -hour] {
        assert!(!is_any_expired(shop.storage.reader()).await.unwrap());
        assert_eq!(shop.release_expired().await, 0);
        assert!(shop.claim(later(jump)).await.is_empty());
    }
    // It failed while the clock was an hour ahead: it is due by that clock, once.
    shop.report_all(&held, &refused(), later(hour)).await;
    assert_eq!(shop.place(webhook_id).await, Some(later(hour + 5)));
    assert!(shop.claim(NOW).await.is_empty());
    let again = shop.claim(later(hour + 5)).await;
    assert_eq!(again.len(), 1);
    // And again while it was an hour behind: nothing that is due later is brought forward.
    shop.report_all(&again, &refused(), later(-hour)).await;
    assert!(shop.claim(later(-hour + 299)).await.is_empty());
    assert_eq!(shop.claim(later(-hour + 300)).await[0].1.attempts, 2);
}

#[tokio::test]
async fn what_is_given_back_is_due_at_once() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    let held = shop.claim(NOW).await;
    assert_eq!(shop.place(webhook_id).await, None);
    let leases = [(held[0].1.id, held[0].0), (held[0].1.id, Uuid::now_v7())];

    for expected in [1, 0] {
        let released = shop
            .storage
            .write(move |transaction| {
                Box::pin(async move { release(transaction, &leases, NOW).await })
            })
            .await
            .unwrap();
        assert_eq!(released, expected);
    }

    assert_eq!(shop.claim(NOW).await[0].1.id, held[0].1.id);
}

#[tokio::test]
async fn what_is_born_leased_is_nobody_elses_until_its_lease_ends() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let store_id = shop.store_id;
    let owed = shop
        .storage
        .write(move |transaction| {
            Box::pin(async move {
                let events = [EventName::DeliveryCompleted];
                let of = DeliveryId::new();
                let owed = record_events(transaction, store_id, of, &events, NOW).await?;
                let token = Some(Uuid::now_v7());
                let owed: Vec<_> = owed.into_iter().map(|owed| (owed, token)).collect();
                let is_any_pending = insert(transaction, &owed, Duration::ZERO, NOW).await?;
                Ok::<_, Error>((owed, is_any_pending))
            })
        })
        .await
        .unwrap();
    let (owed, is_any_pending) = owed;
    assert!(!is_any_pending && !owed[0].0.has_backlog);

    assert_eq!(shop.place(webhook_id).await, None, "no place is touched");
    assert!(shop.claim(later(1_000_000)).await.is_empty());
    assert_eq!(shop.release_expired().await, 1);
    assert_eq!(shop.claim(NOW).await[0].1.id, owed[0].0.id);
}

/// Nobody would ever look at it again.
#[tokio::test]
async fn what_is_given_back_to_a_deleted_or_disabled_webhook_is_dropped() {
    for is_deleted in [true, false] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        shop.complete(1, NOW).await;
        shop.claim_for(Duration::ZERO, 10, NOW).await;
        if is_deleted {
            webhook::Entity::delete_by_id((shop.store_id.0, webhook_id.0))
                .exec(shop.storage.reader())
                .await
                .unwrap();
        } else {
            shop.disable_alone(webhook_id).await;
        }

        assert_eq!(shop.release_expired().await, 1);

        assert_eq!(shop.count("dropped").await, 1, "{is_deleted}");
    }
}

/// Between the look at who is to be told and the write.
#[tokio::test]
async fn nothing_comes_to_be_pending_for_a_webhook_that_was_just_disabled() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    let store_id = shop.store_id;
    let owed = shop
        .storage
        .write(move |transaction| {
            Box::pin(async move {
                let events = [EventName::DeliveryCompleted];
                let of = DeliveryId::new();
                record_events(transaction, store_id, of, &events, NOW).await
            })
        })
        .await
        .unwrap();
    shop.set_enabled(webhook_id, false, NOW).await;

    let is_any_pending = shop
        .storage
        .write(move |transaction| {
            let owed: Vec<_> = owed.iter().map(|owed| (owed.clone(), None)).collect();
            Box::pin(async move { insert(transaction, &owed, LONG, NOW).await })
        })
        .await
        .unwrap();

    assert!(!is_any_pending);
    assert_eq!(shop.count("pending").await, 0);
}
