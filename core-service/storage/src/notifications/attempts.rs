//! Attempts: as they are reported, and as they are stored.

use std::time::Duration;

use domain::{id::StoreId, notification::Outcome};

use super::leases::Lease;
use crate::entity::attempt;
use crate::prelude::*;

/// The outcome of one attempt, as a dispatcher reports it.
#[derive(Clone, Debug)]
pub struct AttemptReport {
    pub lease: Lease,
    pub outcome: Outcome,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    pub duration: Duration,
    /// The first bytes of the response's body, as text.
    pub response_body: String,
    /// A random number, for the delay of the next attempt.
    pub jitter: u64,
}

/// An attempt whose outcome was applied.
#[derive(Clone, Debug)]
pub struct RecordedAttempt {
    pub store_id: StoreId,
    /// Counts from 1.
    pub number: i64,
    pub recorded_at: Timestamp,
    pub report: AttemptReport,
}

/// Stores attempts, to be shown to the webhook's owner.
pub async fn insert_attempts(
    transaction: &impl ConnectionTrait,
    attempts: &[RecordedAttempt],
) -> Result<(), Error> {
    // Padding repeats the last row: the conflict clause ignores the copies.
    let rows = padded(attempts)
        .into_iter()
        .map(|attempt| attempt::ActiveModel {
            store_id: Set(attempt.store_id.0),
            notification_id: Set(attempt.report.lease.id.0),
            number: Set(attempt.number),
            failure: Set(attempt
                .report
                .outcome
                .failure()
                .map(|failure| failure.as_str().to_owned())),
            status: Set(attempt.report.status.map(i64::from)),
            duration: Set(i64::try_from(attempt.report.duration.as_micros()).unwrap_or(i64::MAX)),
            response_body: Set(attempt.report.response_body.clone()),
            recorded_at: Set(attempt.recorded_at.into()),
        });
    attempt::Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}
