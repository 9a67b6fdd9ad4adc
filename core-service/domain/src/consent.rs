//! Consent: a receiver consents to notifications by accepting one. A webhook is proven once it has;
//! until then a store calls its host at a limited rate, with however many webhooks.

use jiff::{SignedDuration, Timestamp};

/// How long a proven webhook may only fail: then it is unproven again. A host name may have been
/// given the address of a stranger.
pub const PROOF_LIMIT: SignedDuration = SignedDuration::from_mins(1);

/// The pauses in seconds of a host after failed attempts of unproven webhooks: a few may fail
/// before the first, and the last is repeated.
pub const PAUSES: [i64; 9] = [0, 0, 0, 3, 6, 12, 24, 48, 60];

/// How much longer webhooks with failed attempts wait after a pause, so that the first notification
/// of another webhook comes before them.
pub const HEAD_START: SignedDuration = SignedDuration::from_secs(2);

/// How long failures are remembered after the last one.
pub const FAILURE_MEMORY: SignedDuration = SignedDuration::from_hours(1);

/// A webhook that fails at `now`, and has failed only since this instant or an earlier one, is
/// unproven.
pub fn proof_lost_since(now: Timestamp) -> Timestamp {
    now.saturating_sub(PROOF_LIMIT).unwrap_or(Timestamp::MIN)
}
