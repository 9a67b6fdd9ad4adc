//! Notifications: one event to be sent to one webhook, retried until delivered or exhausted.

use jiff::{SignedDuration, Timestamp};

use crate::named_enum::named_enum;

named_enum! {
    /// Whether a notification is still to be sent, and its outcome.
    pub enum State("state", ", ") {
        /// Not attempted yet since it was enqueued or resent.
        Pending = "pending",
        /// The last attempt failed; a retry is scheduled.
        Failed = "failed",
        Delivered = "delivered",
        /// All attempts of the schedule failed.
        Exhausted = "exhausted",
        /// Not to be sent, because its webhook was disabled or deleted.
        Cancelled = "cancelled",
    }
}

/// Delays between attempts, before jitter.
const RETRY_SCHEDULE: [SignedDuration; 9] = [
    SignedDuration::from_secs(5),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(5),
    SignedDuration::from_hours(10),
    SignedDuration::from_hours(14),
    SignedDuration::from_hours(20),
    SignedDuration::from_hours(24),
];

/// A notification with this many attempts, retries included, is not resent.
pub const MAX_ATTEMPTS: u32 = 100;

/// Upper limit of a receiver's `Retry-After`.
const MAX_RETRY_AFTER: SignedDuration = SignedDuration::from_hours(24);

named_enum! {
    /// Why an attempt failed.
    pub enum Failure("failure", ", ") {
        /// The host's name could not be resolved.
        Dns = "dns",
        /// The host has an address that may not be called.
        AddressRefused = "address_refused",
        /// No connection could be established.
        Connect = "connect",
        /// The TLS handshake failed, or the certificate is not valid for the host.
        Tls = "tls",
        /// The attempt exceeded its timeout.
        Timeout = "timeout",
        /// The status is not 2xx.
        Status = "status",
        /// The response is not HTTP, or is incomplete.
        Protocol = "protocol",
        /// The webhook's secret can't be decrypted; no request was sent.
        Secret = "secret",
        /// A kind of failure from a newer dispatcher.
        Unknown = "unknown",
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    Failed {
        failure: Failure,
        /// The HTTP status, if there was a response.
        status: Option<u16>,
        /// The receiver's `Retry-After` (RFC 9110 §10.2.3).
        retry_after: Option<SignedDuration>,
    },
}

impl Outcome {
    /// Why the attempt failed; `None` if it delivered the notification.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Delivered => None,
            Self::Failed { failure, .. } => Some(*failure),
        }
    }
}

/// What happens to a notification after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    Delivered,
    RetryAt(Timestamp),
    Exhausted,
    /// The receiver answered 410: its webhook is to be disabled.
    Gone,
}

/// Decides whether and when to retry.
///
/// `attempts` includes the one that just ended. `jitter` is a random number that lengthens the
/// delay by at most a tenth, so that notifications that failed together are not retried together.
pub fn decide_retry(
    outcome: &Outcome,
    attempts: u32,
    jitter: u64,
    now: Timestamp,
) -> RetryDecision {
    let (status, retry_after) = match outcome {
        Outcome::Delivered => return RetryDecision::Delivered,
        Outcome::Failed {
            status,
            retry_after,
            ..
        } => (*status, *retry_after),
    };
    if status == Some(410) {
        return RetryDecision::Gone;
    }
    let failed_before = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(scheduled) = RETRY_SCHEDULE.get(failed_before) else {
        return RetryDecision::Exhausted;
    };

    let retry_after = match status {
        Some(429 | 503) => retry_after
            .unwrap_or_default()
            .clamp(SignedDuration::ZERO, MAX_RETRY_AFTER),
        _ => SignedDuration::ZERO,
    };
    let delay = retry_after.max(*scheduled);
    let spread = delay.as_micros() / 10;
    let extra = i64::try_from(i128::from(jitter) % (spread + 1)).unwrap_or(0);
    now.checked_add(delay)
        .and_then(|at| at.checked_add(SignedDuration::from_micros(extra)))
        .map_or(RetryDecision::Exhausted, RetryDecision::RetryAt)
}

/// Whether a webhook that fails at `now`, and has had no success since `since`, is to be disabled.
pub fn is_failing_for_too_long(since: Timestamp, limit: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(since) >= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn failed(status: Option<u16>, retry_after: Option<i64>) -> Outcome {
        Outcome::Failed {
            failure: Failure::Status,
            status,
            retry_after: retry_after.map(SignedDuration::from_secs),
        }
    }

    fn seconds(outcome: &Outcome, attempts: u32, jitter: u64) -> f64 {
        match decide_retry(outcome, attempts, jitter, NOW) {
            RetryDecision::RetryAt(at) => at.duration_since(NOW).as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_is_retried_on_schedule_until_exhausted() {
        let hour = 3600.0;
        let schedule = [
            5.0,
            300.0,
            1800.0,
            2.0 * hour,
            5.0 * hour,
            10.0 * hour,
            14.0 * hour,
            20.0 * hour,
            24.0 * hour,
        ];
        for (attempts, expected) in (1..).zip(schedule) {
            let delay = seconds(&failed(Some(500), None), attempts, 0);
            assert!((delay - expected).abs() < 1e-6, "{attempts}: {delay}");
        }
        assert_eq!(
            decide_retry(&failed(None, None), 10, 0, NOW),
            RetryDecision::Exhausted
        );
        assert_eq!(
            decide_retry(&failed(None, None), u32::MAX, 0, NOW),
            RetryDecision::Exhausted
        );
        assert_eq!(
            decide_retry(&Outcome::Delivered, 10, 0, NOW),
            RetryDecision::Delivered
        );
    }

    #[test]
    fn jitter_adds_up_to_a_tenth_in_microseconds() {
        for (jitter, expected) in [
            (0, 5.0),
            (1, 5.000_001),
            (250_000, 5.25),
            (500_000, 5.5),
            (500_001, 5.0),
        ] {
            let delay = seconds(&failed(None, None), 1, jitter);
            assert!((delay - expected).abs() < 1e-9, "{jitter}: {delay}");
        }
        let largest = seconds(&failed(None, None), 1, u64::MAX);
        assert!((5.0..=5.5).contains(&largest), "{largest}");
    }

    #[test]
    fn retry_after_of_429_and_503_delays_the_retry_by_up_to_a_day() {
        for (status, retry_after, expected) in [
            (429, 60, 60.0),
            (503, 1, 5.0),
            (503, i64::MAX, 86_400.0),
            (429, -5, 5.0),
            (500, 60, 5.0),
        ] {
            let delay = seconds(&failed(Some(status), Some(retry_after)), 1, 0);
            assert!(
                (delay - expected).abs() < 1e-6,
                "{status} {retry_after}: {delay}"
            );
        }
    }

    #[test]
    fn a_webhook_fails_for_too_long_from_the_limit_on() {
        let limit = SignedDuration::from_hours(120);
        let micro = SignedDuration::from_micros(1);
        for (elapsed, expected) in [
            (SignedDuration::ZERO, false),
            (limit - micro, false),
            (limit, true),
            (limit + micro, true),
        ] {
            let is_too_long = is_failing_for_too_long(NOW, limit, NOW + elapsed);
            assert_eq!(is_too_long, expected, "{elapsed:#}");
        }
    }

    #[test]
    fn a_410_is_not_retried() {
        assert_eq!(
            decide_retry(&failed(Some(410), None), 1, 0, NOW),
            RetryDecision::Gone
        );
    }

    #[test]
    fn a_state_is_read_as_written() {
        let texts = ["pending", "failed", "delivered", "exhausted", "cancelled"];
        assert_eq!(State::ALL.map(State::as_str), texts);
        assert_eq!(texts.map(str::parse), State::ALL.map(Ok));
        assert_eq!(
            "lost".parse::<State>().unwrap_err(),
            "there is no state \"lost\"; the states are \
             pending, failed, delivered, exhausted, cancelled"
        );
    }
}
