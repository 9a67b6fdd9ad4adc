//! Proven webhooks: a receiver that accepts a notification proves its webhook. Until then a store
//! calls the host at a limited rate, however many webhooks it has there.

use jiff::{SignedDuration, Timestamp};

/// How long all attempts of a proven webhook may fail before it is unproven again: its host name
/// may have been moved to the address of a server that never accepted one.
const PROOF_LIMIT: SignedDuration = SignedDuration::from_mins(1);

/// The pause in seconds of a host after each failed attempt of unproven webhooks: none after the
/// first three. The last one is repeated.
pub const PAUSES: [i64; 9] = [0, 0, 0, 3, 6, 12, 24, 48, 60];

/// How much longer a pause is for webhooks with failed attempts, so that the first notification of
/// another webhook comes before theirs.
pub const PAUSE_EXTENSION: SignedDuration = SignedDuration::from_secs(2);

/// How long the failures of a host are stored after the last one.
pub const FAILURE_RETENTION: SignedDuration = SignedDuration::from_hours(1);

/// A webhook that fails at `now` is unproven from then on if all its attempts have failed since
/// this instant or an earlier one.
pub fn proof_lost_since(now: Timestamp) -> Timestamp {
    now.saturating_sub(PROOF_LIMIT).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_lost_by_a_minute_of_failed_attempts() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(5);

        assert_eq!(proof_lost_since(now), now - SignedDuration::from_mins(1));
    }
}
