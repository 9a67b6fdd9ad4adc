//! Backoff between the tries of a conflicting transaction.

use std::time::Duration;

/// A random delay of up to 2, 4, 8 … 128 ms, so that transactions do not conflict again.
pub(super) fn jitter(tries: u32) -> Duration {
    let limit = 1000_u64 << tries.min(7);
    Duration::from_micros(process::random::below(limit))
}
