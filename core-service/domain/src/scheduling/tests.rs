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
        for (millis, expected) in [
            (0, Healthy),
            (999, Healthy),
            (1_000, Lagging),
            (4_999, Lagging),
            (5_000, Slow),
        ] {
            let health = ReceiverHealth::after(&outcome, Duration::from_millis(millis));
            assert_eq!(health, expected, "{outcome:?} after {millis} ms");
        }
    }
    let timeout = failed(Failure::Timeout, None);
    assert_eq!(
        ReceiverHealth::after(&timeout, Duration::from_secs(1)),
        Slow
    );
}

#[test]
fn a_stored_health_is_read_as_it_was_written() {
    for health in ReceiverHealth::ALL {
        assert_eq!(ReceiverHealth::parse(health.as_str()), health);
    }
    assert_eq!(ReceiverHealth::parse(Some("dead")), Slow);
}

/// A budget for 3 notifications of unknown webhooks, 20 of lagging ones and 2 of slow ones.
fn budget(free: u32) -> ClaimBudget {
    ClaimBudget {
        capacity: Capacity(256),
        free,
        free_by_health: [3, free, 20, 2],
        usage: Usage::default(),
        reserved: 0,
    }
}

const STORES: [StoreId; 2] = [StoreId(uuid::Uuid::nil()), StoreId(uuid::Uuid::max())];

/// A proven webhook of the store and the host with this index.
fn candidate(health: ReceiverHealth, in_flight: u32, index: usize) -> Candidate<'static> {
    Candidate {
        health,
        is_proven: true,
        in_flight,
        store_id: STORES[index],
        host: ["a.example:443", "b.example:443"][index],
    }
}

#[test]
fn the_longer_a_receiver_takes_the_less_of_the_capacity_a_webhook_has() {
    for (capacity, healthy, lagging) in [
        (1, 1, 1),
        (8, 1, 1),
        (64, 8, 2),
        (256, 32, 8),
        (100_000, 32, 8),
    ] {
        assert_eq!(Capacity(capacity).per_webhook(Healthy), healthy);
        assert_eq!(Capacity(capacity).per_webhook(Lagging), lagging);
        assert_eq!(Capacity(capacity).per_webhook(Unknown), 1);
        assert_eq!(Capacity(capacity).per_webhook(Slow), 1);
    }
}

#[test]
fn webhooks_that_are_not_healthy_leave_a_quarter_of_the_capacity() {
    assert_eq!(Capacity(256).per_health(Healthy), 256);
    for capacity in 4..1000 {
        let others: u32 = [Unknown, Lagging, Slow]
            .map(|health| Capacity(capacity).per_health(health))
            .iter()
            .sum();
        assert!(others * 4 <= capacity * 3, "{capacity}");
    }
}

#[test]
fn free_capacity_is_shared_within_each_limit() {
    let share = |free, webhooks: &[(ReceiverHealth, u32)]| {
        let webhooks: Vec<_> = webhooks
            .iter()
            .map(|(health, in_flight)| candidate(*health, *in_flight, 0))
            .collect();
        budget(free).share(&webhooks)
    };

    assert_eq!(share(0, &[(Healthy, 0)]), [0]);
    assert_eq!(share(100, &[(Healthy, 30)]), [2]);
    assert_eq!(share(100, &[(Healthy, 40)]), [0]);
    assert_eq!(share(10, &[(Healthy, 0), (Healthy, 0)]), [5, 5]);
    assert_eq!(share(10, &[(Healthy, 30), (Healthy, 0)]), [2, 8]);
    assert_eq!(share(2, &[(Healthy, 0); 3]), [1, 1, 0]);
    assert_eq!(share(100, &[(Unknown, 0); 5]), [1, 1, 1, 0, 0]);
    assert_eq!(share(100, &[(Unknown, 1), (Slow, 1)]), [0, 0]);
    assert_eq!(
        share(100, &[(Slow, 0), (Slow, 0), (Slow, 0), (Healthy, 0)]),
        [1, 1, 0, 32],
    );
    assert_eq!(share(100, &[(Lagging, 0); 4]), [8, 8, 4, 0]);
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
fn healthy_receivers_of_one_store_and_host_may_use_the_whole_capacity() {
    let webhooks = [candidate(Healthy, 0, 0); 8];
    assert_eq!(budget(256).share(&webhooks), [32; 8]);
}

#[test]
fn a_store_or_a_host_uses_half_of_the_share_for_lagging_receivers_at_most() {
    let budget = ClaimBudget {
        free_by_health: [64; 4],
        ..budget(256)
    };
    let webhooks = [candidate(Lagging, 0, 0); 6];
    assert_eq!(budget.share(&webhooks), [8, 8, 8, 8, 0, 0], "of one store");
    let of_another = |webhook: Candidate<'static>| Candidate {
        store_id: STORES[1],
        ..webhook
    };
    let mut at_one_host = webhooks;
    at_one_host[3..]
        .iter_mut()
        .for_each(|webhook| *webhook = of_another(*webhook));
    assert_eq!(
        budget.share(&at_one_host),
        [8, 8, 8, 8, 0, 0],
        "at one host"
    );
    let others: Vec<_> = (0..8)
        .map(|index| candidate(Lagging, 0, index / 4))
        .collect();
    assert_eq!(budget.share(&others), [8; 8]);
}

#[test]
fn a_store_uses_half_of_the_share_for_a_health_at_most() {
    let mut budget = budget(256);
    budget.free_by_health = [64; 4];
    let store = UsageKey::Store(STORES[0]);
    for _ in 0..31 {
        budget.usage.add(store.clone(), Slow);
    }
    let slow = [candidate(Slow, 0, 0), candidate(Slow, 0, 0)];
    assert_eq!(budget.share(&slow), [1, 0]);
    assert_eq!(budget.keys_at_limit(Slow).count(), 0);

    budget.usage.add(store.clone(), Slow);

    assert_eq!(budget.share(&slow), [0, 0]);
    assert_eq!(budget.keys_at_limit(Slow).collect::<Vec<_>>(), [&store]);
    assert_eq!(budget.keys_at_limit(Lagging).count(), 0);
    assert_eq!(budget.share(&[candidate(Slow, 0, 1)]), [1]);
    assert_eq!(budget.share(&[candidate(Healthy, 0, 0)]), [32]);
    budget.usage.remove(&store, Slow);
    assert_eq!(budget.share(&slow), [1, 0]);
}

#[test]
fn capacity_reserved_for_concurrent_claims_counts_as_used_by_each_store_and_host() {
    let budget = ClaimBudget {
        reserved: 28,
        ..budget(100)
    };
    assert_eq!(budget.share(&[candidate(Lagging, 0, 0)]), [4]);
    assert_eq!(budget.share(&[candidate(Healthy, 0, 0)]), [32]);
}

#[test]
fn the_free_capacity_is_shared_among_receivers_of_all_healths() {
    let webhooks = [candidate(Healthy, 0, 0), candidate(Lagging, 0, 1)];

    assert_eq!(budget(3).share(&webhooks), [2, 1]);
}

#[test]
fn a_new_store_or_host_is_admitted_while_a_claim_could_be_for_it() {
    for (reserved, admitted) in [
        (0, [true; 4]),
        (31, [true; 4]),
        (32, [false, true, false, false]),
        (u32::MAX, [false; 4]),
    ] {
        let budget = ClaimBudget {
            reserved,
            ..budget(100)
        };
        let healths = [Unknown, Healthy, Lagging, Slow];
        let found = healths.map(|health| budget.admits_new_key(health));
        assert_eq!(found, admitted, "{reserved}");
    }
}
