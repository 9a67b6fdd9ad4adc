//! The metrics of a core. Each core counts only what it did itself; add up the values of several
//! cores.

use domain::{notification::Outcome, webhook::DisabledReason};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use storage::notifications::AppliedOutcomes;

/// Counters since the process started.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    attempts: Family<AttemptLabels, Counter>,
    webhooks_disabled: Family<DisabledLabels, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct AttemptLabels {
    /// `delivered`, or the failure's name.
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DisabledLabels {
    reason: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let attempts = Family::default();
        let webhooks_disabled = Family::default();
        let mut registry = Registry::with_prefix("delivery");
        registry.register(
            "notification_attempts",
            "Attempts to send notifications, by outcome",
            attempts.clone(),
        );
        registry.register(
            "webhooks_disabled",
            "Webhooks disabled because of their receivers, by reason",
            webhooks_disabled.clone(),
        );
        // An alert on the increase of a counter needs its initial 0.
        for reason in [DisabledReason::Gone, DisabledReason::Failing] {
            let _ = webhooks_disabled.get_or_create(&DisabledLabels {
                reason: reason.as_str(),
            });
        }
        Self {
            registry,
            attempts,
            webhooks_disabled,
        }
    }

    /// Counts a batch of outcomes, once it is committed.
    pub(crate) fn count(&self, outcomes: &AppliedOutcomes) {
        for attempt in &outcomes.attempts {
            let outcome = match &attempt.report.outcome {
                Outcome::Delivered => "delivered",
                Outcome::Failed { failure, .. } => failure.as_str(),
            };
            self.attempts
                .get_or_create(&AttemptLabels { outcome })
                .inc();
        }
        for (disabled, reason) in [
            (&outcomes.gone, DisabledReason::Gone),
            (&outcomes.failing, DisabledReason::Failing),
        ] {
            let reason = reason.as_str();
            let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
            let counter = self
                .webhooks_disabled
                .get_or_create(&DisabledLabels { reason });
            counter.inc_by(count);
        }
    }

    /// Renders all metrics as `OpenMetrics` text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "cannot encode metrics");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        id::{NotificationId, StoreId, WebhookId},
        notification::Failure,
    };
    use storage::notifications::{AttemptReport, RecordedAttempt};

    fn attempt(outcome: Outcome) -> RecordedAttempt {
        RecordedAttempt {
            store_id: StoreId::new(),
            number: 1,
            recorded_at: jiff::Timestamp::UNIX_EPOCH,
            report: AttemptReport {
                id: NotificationId::new(),
                lease_token: uuid::Uuid::now_v7(),
                outcome,
                status: None,
                duration: std::time::Duration::ZERO,
                response_body: String::new(),
                jitter: 0,
            },
        }
    }

    #[test]
    fn attempts_are_counted_by_outcome_and_disabled_webhooks_by_reason() {
        let metrics = Metrics::new();
        let failed = Outcome::Failed {
            failure: Failure::Dns,
            status: None,
            retry_after: None,
        };

        metrics.count(&AppliedOutcomes {
            attempts: vec![
                attempt(Outcome::Delivered),
                attempt(failed),
                attempt(Outcome::Delivered),
            ],
            gone: vec![(StoreId::new(), WebhookId::new())],
            failing: Vec::new(),
        });

        let text = metrics.render();
        let mut samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        samples.sort_unstable();
        assert_eq!(
            samples,
            [
                r#"delivery_notification_attempts_total{outcome="delivered"} 2"#,
                r#"delivery_notification_attempts_total{outcome="dns"} 1"#,
                r#"delivery_webhooks_disabled_total{reason="failing"} 0"#,
                r#"delivery_webhooks_disabled_total{reason="gone"} 1"#,
            ]
        );
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
