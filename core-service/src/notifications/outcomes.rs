//! Records outcomes, and the attempts of which they are.

use std::sync::Arc;

use domain::{scheduling::is_answered_well, webhook::WebhookKey};
use jiff::Timestamp;

use super::{Queue, leases::MAX_LEASES_PER_STATEMENT};
use storage::{notifications::AttemptReport, webhooks::HostOutcomes};

use crate::error::Error;

impl Queue {
    /// Records the outcomes of attempts. Each lease has one outcome, so nothing is recorded twice.
    pub(super) async fn record(&self, reports: &[AttemptReport]) -> Result<(), Error> {
        for reports in reports.chunks(MAX_LEASES_PER_STATEMENT) {
            self.record_batch(reports).await?;
        }
        Ok(())
    }

    async fn record_batch(&self, reports: &[AttemptReport]) -> Result<(), Error> {
        let (now, disable_after) = (self.clock.now(), self.disable_after);
        let batch: Arc<[AttemptReport]> = reports.into();
        let recorded = self
            .storage
            .write(move |transaction| async move {
                let recorded = storage::notifications::apply_outcomes(
                    &transaction,
                    &batch,
                    disable_after,
                    now,
                )
                .await?;
                let attempts = &recorded.attempts;
                storage::notifications::insert_attempts(&transaction, attempts).await?;
                Ok::<_, Error>(recorded)
            })
            .await;
        // Also of a report that fails: the dispatcher repeats it, perhaps to another core.
        self.streams.complete(reports.iter().map(|report| {
            let is_answered_well = is_answered_well(&report.outcome, report.duration);
            (report.lease, is_answered_well)
        }));
        let recorded = recorded?;
        self.metrics.count(&recorded);
        self.report_disabled(&recorded.gone, "its receiver answered 410 Gone");
        self.report_disabled(
            &recorded.failing,
            "its receiver has been failing for too long",
        );
        self.record_host_outcomes(recorded.hosts, now).await;
        Ok(())
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
    fn report_disabled(&self, webhooks: &[WebhookKey], reason: &'static str) {
        for webhook in webhooks {
            tracing::warn!(
                store.id = %webhook.store_id,
                webhook.id = %webhook.webhook_id,
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
    use std::time::Duration;

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
            lease: leased[0],
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
            let (reader, id) = (queue.storage.reader(), leased[0].id);
            let stored = webhook_notifications::attempts(reader, webhook.store_id, [id]).await;
            stored
                .unwrap()
                .remove(&id)
                .map_or(0, |attempts| attempts.len())
        };

        rename("attempts", "unusable").await;
        assert!(queue.record_batch(&reports).await.is_err());
        rename("unusable", "attempts").await;
        assert_eq!(attempts().await, 0);

        // The lease is still held: the outcome was rolled back.
        for _ in 0..2 {
            queue.record_batch(&reports).await.unwrap();
            assert_eq!(attempts().await, 1);
        }
    }
}
