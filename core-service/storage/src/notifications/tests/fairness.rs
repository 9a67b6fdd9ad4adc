//! Claims go by webhook: none holds up another.

use super::{queue::UNANSWERED, *};

/// How many each webhook has of what is held.
pub(super) fn counts(held: &[Held], of: &[WebhookId]) -> Vec<usize> {
    of.iter()
        .map(|id| {
            let own = held
                .iter()
                .filter(|(_, held)| held.target.webhook_id == *id);
            own.count()
        })
        .collect()
}

#[tokio::test]
async fn a_backlog_of_ten_thousand_does_not_hold_up_what_is_due_after_it() {
    let (shop, dead) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(10_000, NOW).await;
    let healthy = shop.add_webhook().await;
    shop.complete(3, later(60)).await;

    let held = shop.claim_for(LONG, 128, later(60)).await;

    // Of the dead one, as many as one may have; of the new one, one until it has answered.
    assert_eq!(counts(&held, &[dead, healthy]), [32, 1]);
    let of_the_healthy: Vec<_> = held
        .iter()
        .filter(|(_, held)| held.target.webhook_id == healthy)
        .cloned()
        .collect();
    shop.report_all(&of_the_healthy, &Outcome::Delivered, later(60))
        .await;
    let held = shop.claim_for(LONG, 128, later(60)).await;
    assert_eq!(counts(&held, &[dead, healthy]), [0, 2]);
}

/// Else a receiver that answers would be told nothing for as long as what died with dispatchers
/// is leased.
#[tokio::test]
async fn what_a_dispatcher_has_held_too_long_takes_no_place_of_one_that_answers() {
    let old = UNANSWERED / 2;
    for (outcome, taken, more) in [
        (Some(Outcome::Delivered), 32, 8),
        (Some(timed_out()), 1, 0),
        // It has not answered yet.
        (None, 1, 0),
    ] {
        for shop in [Some(Shop::new().await), Shop::on_postgres().await] {
            let Some(shop) = shop else {
                continue;
            };
            shop.add_webhook().await;
            if let Some(outcome) = &outcome {
                shop.complete(1, NOW).await;
                let first = shop.claim(NOW).await;
                shop.report_all(&first, outcome, NOW).await;
            }
            shop.complete(40, NOW).await;

            assert_eq!(shop.claim_for(old, 64, NOW).await.len(), taken);
            let is_any_turn = is_any_turn(shop.storage.reader(), &room(64), NOW).await;
            assert_eq!(is_any_turn.unwrap(), more > 0, "{outcome:?}");
            let held = shop.claim_for(LONG, 64, NOW).await;
            assert_eq!(held.len(), more, "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn one_that_timed_out_has_one_place_until_it_answers_soon() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(100, NOW).await;
    let held = shop.claim_for(LONG, 128, NOW).await;
    assert_eq!(held.len(), 32);
    shop.report_all(&held, &timed_out(), NOW).await;

    let held = shop.claim_for(LONG, 128, NOW).await;
    assert_eq!(held.len(), 1);
    assert!(shop.claim_for(LONG, 128, NOW).await.is_empty());
    shop.report_all(&held, &refused(), NOW).await;

    assert_eq!(shop.row(webhook_id).await.was_slow, Some(false));
    assert_eq!(
        shop.claim_for(LONG, 128, NOW).await.len(),
        32,
        "an answer is an answer"
    );
}

/// A `500` whose body never comes ends at the deadline, and is a status; an answer may come just
/// before it. Their places are taken for as long.
#[tokio::test]
async fn one_that_answers_late_has_one_place_whatever_it_answers() {
    let late = Duration::from_secs(14);
    for outcome in [Outcome::Delivered, refused()] {
        let (shop, webhook_id) = Shop::with_a_webhook().await;
        shop.has_answered(NOW).await;
        shop.complete(100, NOW).await;
        let held = shop.claim_for(LONG, 128, NOW).await;
        assert_eq!(held.len(), 32);
        let all: Vec<_> = held.iter().map(|held| (held, outcome.clone())).collect();

        shop.report_after(late, &all, NOW).await;

        let row = shop.row(webhook_id).await;
        assert_eq!(row.was_slow, Some(true), "{outcome:?}");
        let delivered = outcome == Outcome::Delivered;
        assert_eq!(row.failing_since.is_none(), delivered, "{outcome:?}");
        let one = shop.claim_for(LONG, 128, NOW).await;
        assert_eq!(one.len(), 1, "{outcome:?}");
        assert!(shop.claim_for(LONG, 128, NOW).await.is_empty());
        shop.report_after(late, &[(&one[0], outcome.clone())], NOW)
            .await;
        let one = shop.claim_for(LONG, 128, NOW).await;
        assert_eq!(one.len(), 1, "it is as slow as before");
        shop.report_all(&one, &Outcome::Delivered, NOW).await;
        assert_eq!(shop.row(webhook_id).await.was_slow, Some(false));
        assert_eq!(shop.claim_for(LONG, 128, NOW).await.len(), 32);
    }
}

#[tokio::test]
async fn slow_ones_wait_while_their_places_are_taken_and_take_turns() {
    let shop = Shop::new().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(shop.add_webhook().await);
    }
    shop.complete(3, NOW).await;
    let held = shop.claim(NOW).await;
    assert_eq!(counts(&held, &ids), [1; 5], "new ones have one place each");
    shop.report_all(&held, &timed_out(), NOW).await;
    let room = |free_for_slow| Room {
        places: Places(256),
        free: 100,
        free_for_new: 100,
        free_for_slow,
    };
    assert!(
        !is_any_turn(shop.storage.reader(), &room(0), NOW)
            .await
            .unwrap()
    );
    assert!(
        is_any_turn(shop.storage.reader(), &room(2), NOW)
            .await
            .unwrap()
    );
    assert!(shop.claim_within(room(0), LONG, NOW).await.is_empty());

    let mut turns = vec![0; 5];
    for round in 1..=5 {
        let held = shop.claim_within(room(2), LONG, later(round)).await;
        assert_eq!(held.len(), 2);
        for (turns, more) in turns.iter_mut().zip(counts(&held, &ids)) {
            *turns += more;
        }
        shop.report_all(&held, &timed_out(), later(round)).await;
    }

    assert_eq!(turns, [2; 5], "each had its two, in turn");
}

#[tokio::test]
async fn a_place_in_the_queue_is_when_something_is_due_and_none_without() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    assert_eq!(shop.place(webhook_id).await, None);
    shop.has_answered(NOW).await;
    assert_eq!(shop.place(webhook_id).await, None);

    shop.complete(3, later(1)).await;
    assert_eq!(shop.place(webhook_id).await, Some(later(1)));
    let held = shop.claim_for(LONG, 2, later(9)).await;
    assert_eq!(
        shop.place(webhook_id).await,
        Some(later(9)),
        "the end of the queue"
    );
    shop.report_all(&held[..1], &refused(), later(9)).await;
    let more = shop.claim_for(LONG, 2, later(10)).await;
    assert_eq!(more.len(), 1);
    assert_eq!(
        shop.place(webhook_id).await,
        Some(later(14)),
        "the next attempt"
    );

    shop.report_all(&more, &refused(), later(7)).await;
    assert_eq!(
        shop.place(webhook_id).await,
        Some(later(12)),
        "an earlier one"
    );
    shop.complete(1, later(11)).await;
    assert_eq!(shop.place(webhook_id).await, Some(later(11)));
    assert_eq!(shop.claim(later(20)).await.len(), 3);
    assert_eq!(shop.place(webhook_id).await, None);
}

#[tokio::test]
async fn who_has_a_backlog_is_known() {
    let (shop, _) = Shop::with_a_webhook().await;
    let store_id = shop.store_id;
    let has_backlog = async |now| {
        let owed = shop
            .storage
            .write(move |transaction| {
                Box::pin(async move {
                    let events = [EventName::DeliveryCompleted];
                    let of = DeliveryId::new();
                    record_events(transaction, store_id, of, &events, now).await
                })
            })
            .await
            .unwrap();
        owed[0].has_backlog
    };
    assert!(!has_backlog(NOW).await);
    shop.complete(1, NOW).await;
    assert!(has_backlog(NOW).await);
    let held = shop.claim(NOW).await;
    shop.report_all(&held, &refused(), NOW).await;
    assert!(!has_backlog(later(4)).await, "due, but not yet");
    assert!(has_backlog(later(5)).await);
}
