//! Durations of the contract.

/// A duration in whole microseconds.
pub fn microseconds(duration: prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1000)
}
