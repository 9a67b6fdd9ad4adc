//! Converts the outcomes that dispatchers report.

use std::time::Duration;

use domain::{
    id::NotificationId,
    notification::{Failure, Outcome},
    scheduling::LEASE_DURATION,
};
use jiff::SignedDuration;
use proto::{iri::Collection, outcome::Failure as Reported};
use uuid::Uuid;

use super::streams::Lease;

use process::random;
use storage::notifications::AttemptReport;

/// A reported outcome.
#[derive(Debug)]
pub(super) enum Report {
    Attempt(AttemptReport),
    /// Returned by a dispatcher that shuts down.
    NotSent(Lease),
}

impl Report {
    pub(super) fn lease(&self) -> Lease {
        match self {
            Self::Attempt(attempt) => (attempt.id, attempt.lease_token),
            Self::NotSent(lease) => *lease,
        }
    }
}

/// `None` for an outcome without a valid notification name or lease token, which is treated like
/// one of an expired lease.
pub(super) fn report(outcome: &proto::Outcome) -> Option<Report> {
    let id = NotificationId(Collection::Notifications.id(&outcome.name)?);
    let lease_token = Uuid::try_parse(&outcome.lease_token).ok()?;
    if outcome.failure() == Reported::NotSent {
        return Some(Report::NotSent((id, lease_token)));
    }
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let retry_after = outcome
        .retry_after
        .as_ref()
        .map(|duration| SignedDuration::from_secs(duration.seconds));
    Some(Report::Attempt(AttemptReport {
        id,
        lease_token,
        outcome: match failure(outcome.failure, status) {
            None => Outcome::Delivered,
            Some(failure) => Outcome::Failed {
                failure,
                status,
                retry_after,
            },
        },
        status,
        duration: duration(outcome.duration),
        // PostgreSQL text cannot contain NUL.
        response_body: outcome.response_body.replace('\0', "\u{fffd}"),
        jitter: random::below(u64::MAX),
    }))
}

/// A negative duration counts as zero, and one longer than the lease as the lease.
fn duration(reported: Option<prost_types::Duration>) -> Duration {
    let reported = reported.unwrap_or_default();
    match (reported.seconds.try_into(), reported.nanos.try_into()) {
        (Ok(seconds), Ok(nanos)) => Duration::from_secs(seconds)
            .saturating_add(Duration::from_nanos(nanos))
            .min(LEASE_DURATION),
        _ => Duration::ZERO,
    }
}

/// A failed attempt for a notification that core cannot send: it is retried on schedule, until its
/// attempts are exhausted.
pub(super) fn unsendable(id: NotificationId, lease_token: Uuid) -> AttemptReport {
    AttemptReport {
        id,
        lease_token,
        outcome: Outcome::Failed {
            failure: Failure::Secret,
            status: None,
            retry_after: None,
        },
        status: None,
        duration: Duration::ZERO,
        response_body: String::new(),
        jitter: random::below(u64::MAX),
    }
}

/// `None` only for a 2xx response without a failure; a failure that this version does not know,
/// as a newer dispatcher may report, is [`Failure::Unknown`].
pub(in crate::grpc) fn failure(failure: i32, status: Option<u16>) -> Option<Failure> {
    let Ok(failure) = Reported::try_from(failure) else {
        return Some(Failure::Unknown);
    };
    match failure {
        Reported::Unspecified if matches!(status, Some(200..=299)) => None,
        // `NotSent` is only that of a test here: `report` returns the other ones.
        Reported::Unspecified | Reported::NotSent => Some(Failure::Unknown),
        Reported::Dns => Some(Failure::Dns),
        Reported::AddressRefused => Some(Failure::AddressRefused),
        Reported::Connect => Some(Failure::Connect),
        Reported::Tls => Some(Failure::Tls),
        Reported::Timeout => Some(Failure::Timeout),
        Reported::Status => Some(Failure::Status),
        Reported::Protocol => Some(Failure::Protocol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_duration_is_clamped_to_the_lease() {
        let reported = |seconds, nanos| duration(Some(prost_types::Duration { seconds, nanos }));
        assert_eq!(duration(None), Duration::ZERO);
        assert_eq!(reported(14, 5_000_000), Duration::from_millis(14_005));
        assert_eq!(reported(0, i32::MAX), Duration::from_nanos(2_147_483_647));
        for (seconds, nanos) in [(-1, 0), (0, -1), (i64::MIN, i32::MIN)] {
            assert_eq!(reported(seconds, nanos), Duration::ZERO);
        }
        assert_eq!(reported(61, 0), LEASE_DURATION);
        assert_eq!(reported(i64::MAX, i32::MAX), LEASE_DURATION);
    }
}
