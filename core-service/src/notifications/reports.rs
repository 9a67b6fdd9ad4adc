//! Converts the outcomes that dispatchers report.

use std::time::Duration;

use domain::{
    id::NotificationId,
    notification::{Failure, Outcome},
    scheduling::LEASE_DURATION,
};
use jiff::SignedDuration;
use proto::{iri::Collection, outcome::Failure as ProtoFailure};
use uuid::Uuid;

use process::random;
use storage::notifications::{AttemptReport, Lease};

/// The attempt of an outcome. `None` for an outcome without a valid notification name or lease token,
/// which is treated like one of an expired lease.
pub(super) fn attempt(outcome: &proto::Outcome) -> Option<AttemptReport> {
    let lease = Lease {
        id: NotificationId(Collection::Notifications.id(&outcome.name)?),
        token: Uuid::try_parse(&outcome.lease_token).ok()?,
    };
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let retry_after = outcome
        .retry_after
        .map(|duration| SignedDuration::from_secs(duration.seconds));
    Some(AttemptReport {
        lease,
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
    })
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

/// A failed attempt of a notification whose webhook's secret cannot be decrypted, so that no
/// dispatcher gets it: it is retried on schedule, until its attempts are exhausted.
pub(super) fn undecryptable(lease: Lease) -> AttemptReport {
    AttemptReport {
        lease,
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
pub(crate) fn failure(failure: i32, status: Option<u16>) -> Option<Failure> {
    let Ok(failure) = ProtoFailure::try_from(failure) else {
        return Some(Failure::Unknown);
    };
    match failure {
        ProtoFailure::Unspecified if matches!(status, Some(200..=299)) => None,
        // Dispatchers of an earlier version return notifications at their shutdown as `NotSent`.
        ProtoFailure::Unspecified | ProtoFailure::NotSent => Some(Failure::Unknown),
        ProtoFailure::Dns => Some(Failure::Dns),
        ProtoFailure::AddressRefused => Some(Failure::AddressRefused),
        ProtoFailure::Connect => Some(Failure::Connect),
        ProtoFailure::Tls => Some(Failure::Tls),
        ProtoFailure::Timeout => Some(Failure::Timeout),
        ProtoFailure::Status => Some(Failure::Status),
        ProtoFailure::Protocol => Some(Failure::Protocol),
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

    #[test]
    fn only_a_2xx_response_without_a_failure_is_a_delivery() {
        let unspecified = ProtoFailure::Unspecified as i32;
        for status in [200, 204, 299] {
            assert_eq!(failure(unspecified, Some(status)), None, "{status}");
        }
        for (reported, status) in [
            (unspecified, None),
            (unspecified, Some(199)),
            (unspecified, Some(300)),
            (ProtoFailure::NotSent as i32, Some(200)),
            (-1, Some(200)),
        ] {
            let failure = failure(reported, status);
            assert_eq!(failure, Some(Failure::Unknown), "{reported} {status:?}");
        }
        for (reported, expected) in [
            (ProtoFailure::Dns, Failure::Dns),
            (ProtoFailure::AddressRefused, Failure::AddressRefused),
            (ProtoFailure::Connect, Failure::Connect),
            (ProtoFailure::Tls, Failure::Tls),
            (ProtoFailure::Timeout, Failure::Timeout),
            (ProtoFailure::Status, Failure::Status),
            (ProtoFailure::Protocol, Failure::Protocol),
        ] {
            assert_eq!(failure(reported as i32, Some(200)), Some(expected));
        }
    }
}
