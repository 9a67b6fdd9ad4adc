//! Claims: leases due notifications for a stream and turns them into messages.

use std::time::Duration;

use domain::{
    id::NotificationId,
    scheduling::{ClaimBudget, LEASE_DURATION},
};
use proto::iri::Collection;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Queue, flow_control::InFlightNotification, reports, streams::DispatcherStream};
use storage::notifications::{AttemptReport, ClaimedBatch, ClaimedNotification};

use crate::{error::Error, secrets::webhook_secret_box};

/// The most notifications that one transaction claims.
const MAX_CLAIM: u32 = 256;

/// What a claim found.
pub(super) enum ClaimResult {
    /// Nothing is due.
    NothingDue,
    /// There is no credit, or concurrency limits exclude everything that is due.
    NoCapacity,
    /// Notifications are leased.
    Claimed {
        batch: OutgoingBatch,
        /// Whether another claim may find more at once.
        may_be_more: bool,
    },
}

/// Leased notifications, ready to be sent to the dispatcher.
#[derive(Debug, Default)]
pub(super) struct OutgoingBatch {
    pub(super) notifications: Vec<proto::Notification>,
    /// Failed attempts of those whose secret cannot be decrypted.
    pub(super) undecryptable: Vec<AttemptReport>,
}

/// A claim in progress. Drop frees its reservation and puts the claimed notifications in flight.
pub(super) struct PendingClaim<'a> {
    stream: &'a DispatcherStream,
    budget: ClaimBudget,
    lease_token: Uuid,
    leased_at: Instant,
    claimed: Vec<(NotificationId, InFlightNotification)>,
}

impl<'a> PendingClaim<'a> {
    /// Reserves credit for up to `limit` notifications; `None` without credit.
    pub(super) fn begin(stream: &'a DispatcherStream, limit: u32) -> Option<Self> {
        let budget = stream.flow_control().begin_claim(limit)?;
        Some(Self {
            stream,
            budget,
            lease_token: Uuid::now_v7(),
            leased_at: Instant::now(),
            claimed: Vec::new(),
        })
    }

    /// What may be claimed, and the lease's token and duration.
    pub(super) fn terms(&self) -> (ClaimBudget, (Uuid, Duration)) {
        (self.budget.clone(), (self.lease_token, LEASE_DURATION))
    }
}

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        self.stream.flow_control().end_claim(&self.budget, claimed);
    }
}

impl Queue {
    /// Leases due notifications for a stream.
    pub(super) async fn claim(&self, stream: &DispatcherStream) -> Result<ClaimResult, Error> {
        let now = self.clock.now();
        // First a check without a transaction and without reserving credit: notifications that are
        // inserted meanwhile can be pre-leased with that credit.
        let Some(budget) = stream.flow_control().claim_budget(MAX_CLAIM) else {
            return Ok(ClaimResult::NoCapacity);
        };
        let reader = self.storage.reader();
        if !storage::notifications::is_any_claimable(reader, &budget, now).await? {
            let is_any_due = storage::notifications::is_any_due(reader, now).await?;
            return Ok(if is_any_due {
                ClaimResult::NoCapacity
            } else {
                ClaimResult::NothingDue
            });
        }
        let Some(claim) = PendingClaim::begin(stream, MAX_CLAIM) else {
            return Ok(ClaimResult::NoCapacity);
        };
        let (budget, lease) = claim.terms();
        let claimed = self.storage.write(move |transaction| async move {
            storage::notifications::claim(&transaction, &budget, lease, now).await
        });
        let claimed = claimed.await?;
        Ok(self.finish_claim(claim, claimed))
    }

    /// Puts claimed notifications in flight and builds their messages.
    pub(super) fn finish_claim(
        &self,
        mut claim: PendingClaim<'_>,
        ClaimedBatch {
            claimed,
            is_complete,
        }: ClaimedBatch,
    ) -> ClaimResult {
        if claimed.is_empty() {
            return ClaimResult::NoCapacity;
        }
        let (stream, lease_token, leased_at) = (claim.stream, claim.lease_token, claim.leased_at);
        claim.claimed = claimed
            .iter()
            .map(|claimed| {
                let in_flight = InFlightNotification {
                    lease_token,
                    store_id: claimed.target.store_id,
                    webhook_id: claimed.target.webhook_id,
                    receiver_health: claimed.receiver_health,
                    leased_at,
                };
                (claimed.id, in_flight)
            })
            .collect();
        drop(claim);
        let claimed = claimed.into_iter().map(|claimed| (claimed, lease_token));
        ClaimResult::Claimed {
            batch: self.outgoing_batch(stream, claimed, leased_at),
            may_be_more: !is_complete,
        }
    }

    /// The messages of leased notifications. One whose secret can't be decrypted counts as a
    /// failed attempt, to be recorded after the others are sent.
    pub(super) fn outgoing_batch(
        &self,
        stream: &DispatcherStream,
        claimed: impl IntoIterator<Item = (ClaimedNotification, Uuid)>,
        leased_at: Instant,
    ) -> OutgoingBatch {
        let lease = LEASE_DURATION.saturating_sub(leased_at.elapsed());
        let mut batch = OutgoingBatch::default();
        for (claimed, lease_token) in claimed {
            let id = claimed.id;
            match self.notification(claimed, lease_token, lease) {
                Ok(notification) => batch.notifications.push(notification),
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        notification.id = %id,
                        "a notification cannot be sent"
                    );
                    stream.flow_control().return_credit(id, lease_token);
                    batch
                        .undecryptable
                        .push(reports::undecryptable(id, lease_token));
                }
            }
        }
        batch
    }

    fn notification(
        &self,
        claimed: ClaimedNotification,
        lease_token: Uuid,
        lease: Duration,
    ) -> Result<proto::Notification, Error> {
        let target = claimed.target;
        let now = self.clock.now();
        let (id, secrets) = (target.webhook_id, &target.secrets);
        let secrets = webhook_secret_box::decrypt_valid(&self.secret_box, id, secrets, now)?;
        Ok(proto::Notification {
            name: Collection::Notifications.name(claimed.id),
            lease_token: lease_token.to_string(),
            lease: prost_types::Duration::try_from(lease).ok(),
            url: target.url,
            secrets,
            event: claimed.event,
            object: Collection::Deliveries.name(claimed.delivery_id),
            attempt: claimed.attempts.saturating_add(1),
            traceparent: claimed.traceparent.unwrap_or_default(),
            test: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::{
        super::fixture::{ago, assert_leases, queue},
        *,
    };

    #[tokio::test]
    async fn a_claimed_notification_is_sent_with_what_is_left_of_its_lease() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, _sent) = mpsc::channel(1);
        let (stream, _pre_leased) = queue.streams.open(&responses);
        stream.flow_control().grant(1);
        let mut claim = PendingClaim::begin(&stream, 1).unwrap();
        let leased_at = ago(20);
        claim.leased_at = leased_at;
        let found = ClaimedBatch {
            claimed: vec![queue.sendable_notification()],
            is_complete: true,
        };

        let result = queue.finish_claim(claim, found);

        let ClaimResult::Claimed { batch, .. } = result else {
            panic!("one notification is claimed");
        };
        assert_leases(&batch.notifications, 1, leased_at);
    }
}
