//! Who gives way when a pool is exhausted.

use super::*;

const LIMIT: usize = 1000;

fn pool() -> Arc<Pool<u32>> {
    Pool::new(LIMIT, LIMIT / 2, Counters::new("reason", &["test"]), "test")
}

/// A permit, and the token of its eviction.
fn take(
    pool: &Arc<Pool<u32>>,
    holder: u32,
    amount: usize,
    usage: Usage,
) -> Option<(Permit<u32>, CancellationToken)> {
    let evicted = CancellationToken::new();
    let permit = pool.take(holder, amount, usage, evicted.clone())?;
    Some((permit, evicted))
}

/// A busy permit that takes all it can get, and its amount.
fn take_all(pool: &Arc<Pool<u32>>, holder: u32) -> (Permit<u32>, CancellationToken, usize) {
    let (permit, evicted) = take(pool, holder, 0, Usage::Busy).unwrap();
    let amount = (0..LIMIT).take_while(|_| permit.grow(1)).count();
    (permit, evicted, amount)
}

#[test]
fn a_holder_gets_at_most_its_share_over_all_its_permits() {
    let pool = pool();

    let first = take_all(&pool, 1);
    let second = take_all(&pool, 1);

    assert_eq!((first.2, second.2), (500, 0));
}

#[test]
fn any_number_of_greedy_holders_leaves_a_share_to_the_next() {
    let pool = pool();
    let greedy: Vec<_> = (1..=200).map(|holder| take_all(&pool, holder)).collect();

    let next = take(&pool, 201, LIMIT / 201, Usage::Busy);

    assert!(next.is_some());
    assert!(greedy.iter().any(|(_, evicted, _)| evicted.is_cancelled()));
    assert!(pool.total() <= LIMIT);
}

#[test]
fn a_busy_permit_is_evicted_only_for_a_holder_that_needs_less_and_a_kept_one_never() {
    let pool = pool();
    let (first, first_evicted) = take(&pool, 1, 300, Usage::Busy).unwrap();
    let (_second, second_evicted) = take(&pool, 1, 200, Usage::Busy).unwrap();
    let (_kept, kept_evicted) = take(&pool, 2, 500, Usage::Kept).unwrap();

    assert!(take(&pool, 3, 500, Usage::Busy).is_none());
    assert!(!first_evicted.is_cancelled() && !second_evicted.is_cancelled());
    assert!(take(&pool, 3, 300, Usage::Busy).is_some());

    assert!(first_evicted.is_cancelled());
    assert!(!second_evicted.is_cancelled() && !kept_evicted.is_cancelled());
    assert!(!first.grow(1), "an evicted permit");
}

#[test]
fn the_permit_that_is_idle_for_longest_is_evicted_first() {
    let pool = pool();
    let take = |usage| take(&pool, 1, 125, usage).unwrap();
    let [busy, late, early] = [Usage::Busy, Usage::Idle, Usage::Idle].map(take);
    late.0.set_usage(Usage::Busy);
    late.0.set_usage(Usage::Idle);
    let _kept = take(Usage::Kept);

    let evicted = || {
        let tokens = [&busy.1, &early.1, &late.1];
        tokens.map(CancellationToken::is_cancelled)
    };
    let mut more = Vec::new();
    for expected in [[false, true, false], [false, true, true]] {
        more.push(take(Usage::Kept));
        assert_eq!(evicted(), expected);
    }
    let token = CancellationToken::new();
    assert!(
        pool.take(1, 125, Usage::Idle, token).is_none(),
        "all are busy"
    );
}

#[test]
fn among_holders_of_as_much_the_one_that_is_idle_for_longest_gives_way() {
    let pool = pool();
    let tokens: Vec<_> = [2, 9, 1, 8]
        .map(|holder| take(&pool, holder, 250, Usage::Idle).unwrap())
        .into();
    tokens[0].0.set_usage(Usage::Idle);

    let _next = take(&pool, 5, 250, Usage::Idle).unwrap();

    let evicted: Vec<_> = tokens
        .iter()
        .map(|(_, token)| token.is_cancelled())
        .collect();
    assert_eq!(evicted, [false, true, false, false]);
}

#[test]
fn an_idle_permit_is_evicted_for_a_holder_that_would_have_as_much() {
    let pool = pool();
    let (_busy, busy_evicted) = take(&pool, 1, 500, Usage::Busy).unwrap();
    let (_idle, idle_evicted) = take(&pool, 2, 500, Usage::Idle).unwrap();

    assert!(take(&pool, 3, 500, Usage::Idle).is_some());

    assert!(idle_evicted.is_cancelled() && !busy_evicted.is_cancelled());
}

#[test]
fn a_dropped_permit_is_available_again_and_is_not_evicted() {
    let pool = pool();
    for _ in 0..3 {
        let (permit, evicted, amount) = take_all(&pool, 1);
        drop(permit);
        assert_eq!((amount, evicted.is_cancelled()), (500, false));
    }

    let state = pool.state.lock();
    assert_eq!(
        (state.total, state.holders.len(), state.permits.len()),
        (0, 0, 0)
    );
}
