//! Records outcomes, and the attempts of which they are.

use std::{sync::Arc, time::Duration};

use domain::{
    id::{StoreId, WebhookId},
    scheduling::ClaimBudget,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    Queue,
    claims::{ClaimResult, PendingClaim},
    leases::MAX_LEASES_PER_STATEMENT,
};
use storage::{
    notifications::{AttemptReport, ClaimedBatch},
    webhooks::HostOutcomes,
};

use crate::error::Error;

impl Queue {
    /// Records the outcomes of attempts.
    pub(super) async fn record(&self, reports: &[AttemptReport]) -> Result<(), Error> {
        for reports in reports.chunks(MAX_LEASES_PER_STATEMENT) {
            self.record_batch(reports, None).await?;
        }
        Ok(())
    }

    /// Records the outcomes of attempts and claims notifications for their stream, in one
    /// transaction, since a flush costs the same for both. If that fails, records them
    /// alone; each lease has one outcome, so nothing is recorded twice.
    pub(super) async fn record_and_claim(
        &self,
        reports: &[AttemptReport],
        claim: PendingClaim<'_>,
    ) -> Result<ClaimResult, Error> {
        let start_of_last = reports.len().saturating_sub(MAX_LEASES_PER_STATEMENT);
        let (first, last) = reports.split_at(start_of_last);
        self.record(first).await?;
        let claimed = match self.record_batch(last, Some(claim.terms())).await {
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot record outcomes and claim in one transaction; outcomes are recorded \
                     alone"
                );
                self.record_batch(last, None).await?
            }
            Ok(claimed) => claimed,
        };
        Ok(self.finish_claim(claim, claimed))
    }

    /// Records failed attempts of notifications whose secret cannot be decrypted. If that fails,
    /// they are found again when their leases expire.
    pub(super) async fn record_undecryptable(&self, undecryptable: &[AttemptReport]) {
        if let Err(error) = self.record(undecryptable).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot record notifications that cannot be sent"
            );
        }
    }

    async fn record_batch(
        &self,
        reports: &[AttemptReport],
        claim: Option<(ClaimBudget, (Uuid, Duration))>,
    ) -> Result<ClaimedBatch, Error> {
        let (now, disable_after) = (self.clock.now(), self.disable_after);
        let reports: Arc<[AttemptReport]> = reports.into();
        let (recorded, claim) = self
            .storage
            .write(move |transaction| async move {
                let recorded = storage::notifications::apply_outcomes(
                    &transaction,
                    &reports,
                    disable_after,
                    now,
                )
                .await?;
                let attempts = &recorded.attempts;
                storage::notifications::insert_attempts(&transaction, attempts).await?;
                let claim = match claim {
                    Some((budget, lease)) => {
                        storage::notifications::claim(&transaction, &budget, lease, now).await?
                    }
                    None => ClaimedBatch::default(),
                };
                Ok::<_, Error>((recorded, claim))
            })
            .await?;
        self.metrics.count(&recorded);
        self.report_disabled(&recorded.gone, "its receiver answered 410 Gone");
        self.report_disabled(
            &recorded.failing,
            "its receiver has been failing for too long",
        );
        self.record_host_outcomes(recorded.hosts, now).await;
        Ok(claim)
    }

    /// Frees or pauses hosts of unproven webhooks. If that fails, a host is free again when the
    /// lease of its notification would have expired.
    async fn record_host_outcomes(&self, outcomes: HostOutcomes, now: Timestamp) {
        if outcomes.is_empty() {
            return;
        }
        let recorded = self.storage.write(move |transaction| async move {
            storage::webhooks::record_host_outcomes(&transaction, &outcomes, now).await
        });
        match recorded.await {
            Ok(()) => self.streams.wake(),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot record outcomes at hosts of unproven webhooks"
            ),
        }
    }

    /// Logs webhooks that were disabled, and wakes the sequencer for their events.
    fn report_disabled(&self, webhooks: &[(StoreId, WebhookId)], reason: &'static str) {
        for (store_id, webhook_id) in webhooks {
            tracing::warn!(
                store.id = %store_id,
                webhook.id = %webhook_id,
                reason,
                "a webhook is disabled"
            );
        }
        if !webhooks.is_empty() {
            self.streams.events_written.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::notification::Outcome;
    use storage::{ConnectionTrait as _, fixture, webhook_notifications};

    use super::{super::fixture::queue, *};

    #[tokio::test]
    async fn an_outcome_and_its_attempt_are_stored_together_or_not_at_all() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_hours(1);
        let leased = fixture::leased_notifications(&queue.storage, &webhook, 1, lease).await;
        let reports = [AttemptReport {
            id: leased[0].0,
            lease_token: leased[0].1,
            outcome: Outcome::Delivered,
            status: Some(200),
            duration: Duration::ZERO,
            response_body: String::new(),
            jitter: 0,
        }];
        let rename = async |from: &str, to: &str| {
            let rename = format!("ALTER TABLE {from} RENAME TO {to}");
            let renamed = queue.storage.reader().execute_unprepared(&rename).await;
            renamed.unwrap();
        };

        let attempts = async || {
            let (reader, id) = (queue.storage.reader(), leased[0].0);
            let stored = webhook_notifications::attempts(reader, webhook.store_id, [id]).await;
            stored
                .unwrap()
                .remove(&id)
                .map_or(0, |attempts| attempts.len())
        };

        rename("attempts", "unusable").await;
        assert!(queue.record_batch(&reports, None).await.is_err());
        rename("unusable", "attempts").await;
        assert_eq!(attempts().await, 0);

        // The lease is still held: the outcome was rolled back.
        for _ in 0..2 {
            queue.record_batch(&reports, None).await.unwrap();
            assert_eq!(attempts().await, 1);
        }
    }
}
