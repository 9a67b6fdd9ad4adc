//! Notifications: one event owed to one webhook, until it is delivered or given up.

use jiff::{SignedDuration, Timestamp};

/// How long after each failed attempt the next one is due (additive jitter comes on top).
const SCHEDULE: [SignedDuration; 9] = [
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

/// A receiver may ask to be left alone this long at most.
const LONGEST_RETRY_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The host's name could not be resolved.
    Dns,
    /// The host has an address that may not be called.
    AddressRefused,
    /// No connection.
    Connect,
    /// No TLS session, or not with whom it should be.
    Tls,
    /// Not over by the deadline.
    Timeout,
    /// Answered, but not 2xx.
    Status,
    /// Answered with something that is not HTTP, or broke off.
    Protocol,
    /// The webhook's secret can't be read: nothing was sent.
    Secret,
    /// Of a kind that a newer dispatcher knows.
    Unknown,
}

impl Failure {
    /// Its name, as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::AddressRefused => "address_refused",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Protocol => "protocol",
            Self::Secret => "secret",
            Self::Unknown => "unknown",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    Failed {
        failure: Failure,
        /// The HTTP status, if there was an answer.
        status: Option<u16>,
        /// What the receiver asked for (RFC 9110 §10.2.3).
        retry_after: Option<SignedDuration>,
    },
}

impl Outcome {
    /// Why it failed; none if it was delivered.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Delivered => None,
            Self::Failed { failure, .. } => Some(*failure),
        }
    }
}

/// What becomes of a notification after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Delivered,
    RetryAt(Timestamp),
    GivenUp,
    /// The receiver says it is gone: its webhook is disabled.
    Gone,
}

/// Decides what follows an attempt.
///
/// `attempts` counts the one that just ended; `jitter` is a random number, of which a share is
/// added to the delay, never taken from it, so that what failed together is not tried together.
pub fn after(outcome: &Outcome, attempts: u32, jitter: u64, now: Timestamp) -> Next {
    let (status, retry_after) = match outcome {
        Outcome::Delivered => return Next::Delivered,
        Outcome::Failed {
            status,
            retry_after,
            ..
        } => (*status, *retry_after),
    };
    if status == Some(410) {
        return Next::Gone;
    }
    let failed_before = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(scheduled) = SCHEDULE.get(failed_before) else {
        return Next::GivenUp;
    };

    let asked = match status {
        Some(429 | 503) => retry_after
            .unwrap_or_default()
            .clamp(SignedDuration::ZERO, LONGEST_RETRY_AFTER),
        _ => SignedDuration::ZERO,
    };
    let delay = asked.max(*scheduled);
    // Up to a tenth more.
    let spread = delay.as_micros() / 10;
    let extra = i64::try_from(i128::from(jitter) % (spread + 1)).unwrap_or(0);
    now.checked_add(delay)
        .and_then(|at| at.checked_add(SignedDuration::from_micros(extra)))
        .map_or(Next::GivenUp, Next::RetryAt)
}

/// Whether a webhook that fails again now, and has only failed since an instant, is to be
/// disabled.
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
        match after(outcome, attempts, jitter, NOW) {
            Next::RetryAt(at) => at.duration_since(NOW).as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_is_tried_again_on_schedule_and_given_up_after_it() {
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
        assert_eq!(after(&failed(None, None), 10, 0, NOW), Next::GivenUp);
        assert_eq!(after(&failed(None, None), u32::MAX, 0, NOW), Next::GivenUp);
        assert_eq!(after(&Outcome::Delivered, 10, 0, NOW), Next::Delivered);
    }

    #[test]
    fn jitter_only_adds_and_at_most_a_tenth() {
        for jitter in [0, 1, 499_999, 500_000, 500_001, u64::MAX] {
            let delay = seconds(&failed(None, None), 1, jitter);
            assert!((5.0..=5.5).contains(&delay), "{jitter}: {delay}");
        }
    }

    #[test]
    fn a_busy_receiver_is_left_alone_as_long_as_it_asks_up_to_a_day() {
        assert!(seconds(&failed(Some(429), Some(60)), 1, 0) >= 60.0);
        assert!(seconds(&failed(Some(503), Some(1)), 1, 0) >= 5.0);
        assert!(seconds(&failed(Some(503), Some(i64::MAX)), 1, 0) <= 86_400.0);
        assert!(seconds(&failed(Some(429), Some(-5)), 1, 0) >= 5.0);
        assert!(
            seconds(&failed(Some(500), Some(60)), 1, 0) < 60.0,
            "the hint counts with 429 and 503 only"
        );
    }

    #[test]
    fn a_receiver_that_is_gone_is_not_tried_again() {
        assert_eq!(after(&failed(Some(410), None), 1, 0, NOW), Next::Gone);
    }
}
