//! What comes back on the streams: outcomes, recorded first. The log of attempts follows.

use std::{sync::Arc, time::Duration};

use domain::{
    fairness::Room,
    id::{NotificationId, StoreId, WebhookId},
    notification::{Failure, Outcome},
};
use jiff::SignedDuration;
use proto::iri::Collection;
use uuid::Uuid;

use super::{
    LEASE, STATEMENT,
    leases::{Claiming, Found},
    streams::Line,
};
use process::random;
use storage::{
    self,
    notifications::{Claim, Report},
};

use crate::{error::Error, grpc::Core};

impl Core {
    /// Records what became of attempts.
    pub(super) async fn record(&self, reports: &[Report]) -> Result<(), Error> {
        for reports in reports.chunks(STATEMENT) {
            self.record_some(reports, None).await?;
        }
        Ok(())
    }

    /// Records what became of attempts, and claims as many more for their stream at most, in one
    /// transaction: a flush costs the same for both. Where that fails they are recorded alone,
    /// which does nothing twice, since each lease has one outcome.
    pub(super) async fn record_and_claim(
        &self,
        reports: &[Report],
        line: &Line,
    ) -> Result<Found, Error> {
        let first = reports.len().saturating_sub(STATEMENT);
        let (first, last) = reports.split_at(first);
        self.record(first).await?;
        if last.is_empty() {
            return Ok(Found::NoPlace);
        }
        // No more: what is born meanwhile shall find credit.
        let most = u32::try_from(last.len()).unwrap_or(u32::MAX);
        let claiming = Claiming::begin(line, most);
        let terms = claiming.as_ref().map(Claiming::terms);
        let claim = match self.record_some(last, terms).await {
            Err(error) if terms.is_some() => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "nothing could be claimed with outcomes: they are recorded alone"
                );
                self.record_some(last, None).await?
            }
            recorded => recorded?,
        };
        Ok(match claiming {
            Some(claiming) => self.found(claiming, claim),
            None => Found::NoPlace,
        })
    }

    async fn record_some(
        &self,
        reports: &[Report],
        claim: Option<(Room, (Uuid, Duration))>,
    ) -> Result<Claim, Error> {
        let (now, disable_after) = (self.clock.now(), self.config.webhooks.disable_after());
        let reports: Arc<[Report]> = reports.into();
        let (recorded, claim) = self
            .storage
            .write(move |transaction| {
                let reports = Arc::clone(&reports);
                Box::pin(async move {
                    let recorded =
                        storage::notifications::record(transaction, &reports, disable_after, now)
                            .await?;
                    let claim = match claim {
                        Some((room, lease)) => {
                            storage::notifications::claim(transaction, &room, lease, now).await?
                        }
                        None => Claim::default(),
                    };
                    Ok::<_, Error>((recorded, claim))
                })
            })
            .await?;
        self.metrics.count(&recorded);
        self.tell_disabled(&recorded.gone, "its receiver says that it is gone");
        self.tell_disabled(&recorded.failing, "it has only failed for too long");
        if !self.attempts.add(recorded.attempts) {
            tracing::warn!("attempts were recorded but are not logged: too many wait");
        }
        Ok(claim)
    }

    /// Tells the operator of webhooks that were disabled; in the log of events it is by now.
    fn tell_disabled(&self, webhooks: &[(StoreId, WebhookId)], reason: &'static str) {
        for (store_id, webhook_id) in webhooks {
            tracing::warn!(
                store.id = %store_id,
                webhook.id = %webhook_id,
                reason,
                "a webhook is disabled"
            );
        }
        if !webhooks.is_empty() {
            self.happened.send_replace(());
        }
    }
}

pub(super) fn recorded(outcome: &proto::Outcome) -> proto::Recorded {
    proto::Recorded {
        name: outcome.name.clone(),
        lease_token: outcome.lease_token.clone(),
    }
}

/// An outcome that names no notification or lease of ours is as one whose lease is over.
pub(super) fn report(outcome: &proto::Outcome) -> Option<Report> {
    let id = NotificationId(Collection::Notifications.id(&outcome.name)?);
    let lease_token = Uuid::try_parse(&outcome.lease_token).ok()?;
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let retry_after = outcome
        .retry_after
        .as_ref()
        .map(|duration| SignedDuration::from_secs(duration.seconds));
    Some(Report {
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
        // PostgreSQL keeps no NUL in a text.
        answer: outcome.answer.replace('\0', "\u{fffd}"),
        jitter: random::below(u64::MAX),
    })
}

/// No attempt takes less than nothing, nor longer than its lease.
fn duration(reported: Option<prost_types::Duration>) -> Duration {
    let reported = reported.unwrap_or_default();
    match (reported.seconds.try_into(), reported.nanos.try_into()) {
        (Ok(seconds), Ok(nanos)) => Duration::from_secs(seconds)
            .saturating_add(Duration::from_nanos(nanos))
            .min(LEASE),
        _ => Duration::ZERO,
    }
}

/// A notification that could not even be handed out, as a failed attempt: the schedule goes on
/// and ends it.
pub(super) fn unsent(id: NotificationId, lease_token: Uuid) -> Report {
    Report {
        id,
        lease_token,
        outcome: Outcome::Failed {
            failure: Failure::Secret,
            status: None,
            retry_after: None,
        },
        status: None,
        duration: Duration::ZERO,
        answer: String::new(),
        jitter: random::below(u64::MAX),
    }
}

/// None only for what was surely delivered: a failure of a kind that a newer dispatcher knows
/// is one all the same.
pub(in crate::grpc) fn failure(failure: i32, status: Option<u16>) -> Option<Failure> {
    use proto::outcome::Failure as Reported;
    let Ok(failure) = Reported::try_from(failure) else {
        return Some(Failure::Unknown);
    };
    match failure {
        Reported::Unspecified if matches!(status, Some(200..=299)) => None,
        Reported::Unspecified => Some(Failure::Unknown),
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
    fn an_attempt_took_no_less_than_nothing_and_no_longer_than_its_lease() {
        let reported = |seconds, nanos| duration(Some(prost_types::Duration { seconds, nanos }));
        assert_eq!(duration(None), Duration::ZERO);
        assert_eq!(reported(14, 5_000_000), Duration::from_millis(14_005));
        assert_eq!(reported(0, i32::MAX), Duration::from_nanos(2_147_483_647));
        for (seconds, nanos) in [(-1, 0), (0, -1), (i64::MIN, i32::MIN)] {
            assert_eq!(reported(seconds, nanos), Duration::ZERO);
        }
        assert_eq!(reported(61, 0), LEASE);
        assert_eq!(reported(i64::MAX, i32::MAX), LEASE);
    }
}
