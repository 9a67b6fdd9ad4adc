use super::{ReceiverHealth::*, *};

#[test]
fn the_health_follows_from_the_duration_of_an_attempt_and_a_timeout_is_slow() {
    let failed = |failure, status| Outcome::Failed {
        failure,
        status,
        retry_after: None,
    };
    let error_status = failed(Failure::Status, Some(500));
    let reset = failed(Failure::Protocol, None);
    for outcome in [Outcome::Delivered, error_status, reset] {
        for (millis, expected) in [(0, Healthy), (999, Healthy), (1_000, Slow), (5_000, Slow)] {
            let health = ReceiverHealth::after(&outcome, Duration::from_millis(millis));
            assert_eq!(health, expected, "{outcome:?} after {millis} ms");
        }
    }
    let timeout = failed(Failure::Timeout, None);
    assert_eq!(
        ReceiverHealth::after(&timeout, Duration::from_millis(1)),
        Slow
    );
}

/// An earlier version stores `lagging`.
#[test]
fn a_stored_health_is_read_as_it_was_written_and_any_other_as_slow() {
    for health in [Healthy, Slow] {
        assert_eq!(ReceiverHealth::parse(Some(health.as_str())), health);
    }
    for other in [None, Some("lagging"), Some("dead")] {
        assert_eq!(ReceiverHealth::parse(other), Slow, "{other:?}");
    }
}

/// A budget for 20 notifications of slow webhooks.
fn budget(free: u32) -> ClaimBudget {
    ClaimBudget {
        capacity: Capacity(256),
        free,
        free_slow: 20,
        slow_per_store: 32,
        slow_by_store: HashMap::new(),
        free_grown: 0,
        grown: HashMap::new(),
    }
}

const STORES: [StoreId; 2] = [StoreId(uuid::Uuid::nil()), StoreId(uuid::Uuid::max())];

/// A proven webhook of the store with this index.
fn candidate(health: ReceiverHealth, in_flight: u32, store: usize) -> Candidate {
    Candidate {
        health,
        is_proven: true,
        in_flight,
        store_id: STORES[store],
        webhook_id: WebhookId::new(),
    }
}

#[test]
fn a_slow_webhook_has_one_notification_in_flight_and_a_healthy_one_an_eighth_of_the_capacity() {
    for (capacity, healthy) in [(1, 1), (8, 1), (64, 8), (256, 32), (100_000, 32)] {
        assert_eq!(Capacity(capacity).per_webhook(Healthy), healthy);
        assert_eq!(Capacity(capacity).per_webhook(Slow), 1);
    }
}

#[test]
fn slow_webhooks_have_a_quarter_of_the_capacity_and_those_of_a_store_half_of_it() {
    for (capacity, all, of_store) in [(1, 1, 1), (8, 2, 1), (128, 32, 16), (256, 64, 32)] {
        assert_eq!(Capacity(capacity).for_slow(), all);
        assert_eq!(Capacity(capacity).for_slow_of_store(), of_store);
    }
}

#[test]
fn the_limit_of_a_healthy_webhook_grows_with_good_answers_and_is_halved_by_others() {
    for (capacity, limit, in_flight, is_answered_well, expected) in [
        (512, 32, 32, true, 33),
        (512, 0, 32, true, 33),
        (512, 100, 25, true, 101),
        (512, 100, 24, true, 100),
        (512, 255, 256, true, 256),
        (512, 256, 256, true, 256),
        (512, 256, 256, false, 128),
        (512, 60, 60, false, 32),
        (512, 32, 32, false, 32),
        (256, 160, 160, true, 160),
        (8, 1, 1, true, 2),
        (8, 5, 5, true, 5),
        (1, 1, 1, true, 1),
        (64, 256, 200, true, 40),
    ] {
        let next = Capacity(capacity).grown(limit, in_flight, is_answered_well);
        assert_eq!(next, expected, "{limit} of {capacity}, {is_answered_well}");
    }
}

#[test]
fn only_a_success_in_less_than_a_second_is_a_good_answer() {
    let failed = Outcome::Failed {
        failure: Failure::Status,
        status: Some(500),
        retry_after: None,
    };
    for (outcome, millis, expected) in [
        (&Outcome::Delivered, 999, true),
        (&Outcome::Delivered, 1_000, false),
        (&failed, 1, false),
    ] {
        let is_good = is_answered_well(outcome, Duration::from_millis(millis));
        assert_eq!(is_good, expected, "{outcome:?} after {millis} ms");
    }
}

#[test]
fn webhooks_that_have_grown_use_their_part_of_the_capacity_in_turn() {
    let share = |free_grown, webhooks: &[(u32, u32)]| {
        let candidates = webhooks
            .iter()
            .map(|(in_flight, _)| candidate(Healthy, *in_flight, 0));
        let candidates: Vec<_> = candidates.collect();
        let limits = webhooks.iter().map(|(_, limit)| *limit);
        let ids = candidates.iter().map(|webhook| webhook.webhook_id);
        let budget = ClaimBudget {
            free_grown,
            grown: ids.zip(limits).collect(),
            ..budget(200)
        };
        budget.share(&candidates)
    };

    assert_eq!(share(128, &[(0, 100)]), [100]);
    assert_eq!(share(128, &[(90, 100)]), [10]);
    assert_eq!(share(20, &[(0, 100)]), [52]);
    assert_eq!(share(20, &[(40, 100), (0, 100)]), [20, 32]);
    assert_eq!(share(0, &[(0, 100), (0, 100)]), [32, 32]);
    let slow_or_unproven = [
        candidate(Slow, 0, 0),
        Candidate {
            is_proven: false,
            ..candidate(Healthy, 0, 0)
        },
    ];
    let budget = ClaimBudget {
        free_grown: 128,
        grown: slow_or_unproven
            .map(|webhook| (webhook.webhook_id, 100))
            .into(),
        ..budget(200)
    };
    assert_eq!(budget.share(&slow_or_unproven), [1, 1]);
}

#[test]
fn free_capacity_is_shared_within_each_limit() {
    let share = |free, webhooks: &[(ReceiverHealth, u32)]| {
        let webhooks: Vec<_> = webhooks
            .iter()
            .map(|(health, in_flight)| candidate(*health, *in_flight, 0))
            .collect();
        let budget = ClaimBudget {
            free_slow: 2,
            ..budget(free)
        };
        budget.share(&webhooks)
    };

    assert_eq!(share(0, &[(Healthy, 0)]), [0]);
    assert_eq!(share(100, &[(Healthy, 30)]), [2]);
    assert_eq!(share(100, &[(Healthy, 40)]), [0]);
    assert_eq!(share(10, &[(Healthy, 0), (Healthy, 0)]), [5, 5]);
    assert_eq!(share(10, &[(Healthy, 30), (Healthy, 0)]), [2, 8]);
    assert_eq!(share(2, &[(Healthy, 0); 3]), [1, 1, 0]);
    assert_eq!(share(3, &[(Healthy, 0), (Slow, 0)]), [2, 1]);
    assert_eq!(share(100, &[(Slow, 1), (Slow, 1)]), [0, 0]);
    assert_eq!(
        share(100, &[(Slow, 0), (Slow, 0), (Slow, 0), (Healthy, 0)]),
        [1, 1, 0, 32],
    );
    assert!(share(100, &[]).is_empty());
}

#[test]
fn an_unproven_webhook_has_one_notification_in_flight() {
    for (in_flight, expected) in [(0, 1), (1, 0)] {
        let webhook = Candidate {
            is_proven: false,
            ..candidate(Healthy, in_flight, 0)
        };
        assert_eq!(budget(100).share(&[webhook]), [expected]);
    }
}

#[test]
fn healthy_receivers_of_one_store_may_use_the_whole_capacity() {
    let webhooks = [candidate(Healthy, 0, 0); 8];
    assert_eq!(budget(256).share(&webhooks), [32; 8]);
}

#[test]
fn slow_receivers_of_a_store_are_limited_together() {
    let mut budget = budget(256);
    budget.slow_by_store.insert(STORES[0], 31);
    let slow = [candidate(Slow, 0, 0), candidate(Slow, 0, 0)];
    assert_eq!(budget.share(&slow), [1, 0]);
    assert_eq!(budget.stores_at_limit().count(), 0);

    budget.slow_by_store.insert(STORES[0], 32);

    assert_eq!(budget.share(&slow), [0, 0]);
    assert_eq!(budget.stores_at_limit().collect::<Vec<_>>(), [STORES[0]]);
    assert_eq!(budget.share(&[candidate(Slow, 0, 1)]), [1]);
    assert_eq!(budget.share(&[candidate(Healthy, 0, 0)]), [32]);
}

#[test]
fn proof_is_lost_by_a_minute_of_failed_attempts() {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(5);

    assert_eq!(proof_lost_since(now), now - SignedDuration::from_mins(1));
}
