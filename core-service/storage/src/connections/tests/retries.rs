//! Work that is repeated after conflicts.

use std::{cell::Cell, future::ready};

use super::*;

#[test]
fn the_delay_before_a_retry_is_random_below_a_limit_that_doubles_up_to_128_ms() {
    for (tries, limit) in [(1, 2), (2, 4), (6, 64), (7, 128), (8, 128), (u32::MAX, 128)] {
        let limit = Duration::from_millis(limit);

        let longest = (0..100).map(|_| jitter(tries)).max().unwrap();

        assert!(
            (limit / 2..limit).contains(&longest),
            "{tries}: {longest:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_retried_after_growing_delays_until_the_timeout() {
    let calls = Cell::new(0_u32);
    let after_conflicts = |count: u32| {
        let calls = &calls;
        calls.set(0);
        move || {
            calls.set(calls.get() + 1);
            ready(if calls.get() <= count {
                Err("conflict")
            } else {
                Ok(calls.get())
            })
        }
    };
    let is_conflict = |error: &&str| *error == "conflict";
    let limit = Duration::from_mins(1);

    let started = Instant::now();
    let result = with_retries(limit, after_conflicts(100), is_conflict).await;
    assert_eq!(result, Some(Ok(101)));
    // Delays that do not grow take 200 ms at most.
    let took = started.elapsed();
    assert!(took > Duration::from_millis(200), "{took:?}");

    let result = with_retries(limit, after_conflicts(u32::MAX), is_conflict).await;
    assert_eq!(result, None);
}
