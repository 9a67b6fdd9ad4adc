//! What a core counts, for the operator's graphs and alarms. Each core counts what it has done
//! itself; of several, the sums are meant.

use domain::{notification::Outcome, webhook::DisabledReason};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use storage::notifications::Recorded;

/// Counters since the start.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    attempts: Family<Attempt, Counter>,
    webhooks_disabled: Family<Disabled, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Attempt {
    /// `delivered`, or the failure's name.
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Disabled {
    reason: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let attempts = Family::default();
        let webhooks_disabled = Family::default();
        let mut registry = Registry::with_prefix("delivery");
        registry.register(
            "notification_attempts",
            "Attempts to send notifications, by how they ended",
            attempts.clone(),
        );
        registry.register(
            "webhooks_disabled",
            "Webhooks disabled by what their receivers answered, by why",
            webhooks_disabled.clone(),
        );
        // Who has an alarm on a webhook that is disabled must see it come from 0.
        for reason in [DisabledReason::Gone, DisabledReason::Failing] {
            let _ = webhooks_disabled.get_or_create(&Disabled {
                reason: reason.as_str(),
            });
        }
        Self {
            registry,
            attempts,
            webhooks_disabled,
        }
    }

    /// Counts what a batch of reports brought about, once it is committed.
    pub(crate) fn count(&self, recorded: &Recorded) {
        for attempt in &recorded.attempts {
            let outcome = match &attempt.report.outcome {
                Outcome::Delivered => "delivered",
                Outcome::Failed { failure, .. } => failure.as_str(),
            };
            self.attempts.get_or_create(&Attempt { outcome }).inc();
        }
        for (disabled, reason) in [
            (&recorded.gone, DisabledReason::Gone),
            (&recorded.failing, DisabledReason::Failing),
        ] {
            let reason = reason.as_str();
            let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
            let counter = self.webhooks_disabled.get_or_create(&Disabled { reason });
            counter.inc_by(count);
        }
    }

    /// All of it as `OpenMetrics` text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics cannot be written down");
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
    use storage::notifications::{Attempt, Report};

    fn attempt(outcome: Outcome) -> Attempt {
        Attempt {
            store_id: StoreId::new(),
            number: 1,
            recorded_at: jiff::Timestamp::UNIX_EPOCH,
            report: Report {
                id: NotificationId::new(),
                lease_token: uuid::Uuid::now_v7(),
                outcome,
                status: None,
                duration: std::time::Duration::ZERO,
                answer: String::new(),
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

        metrics.count(&Recorded {
            attempts: vec![
                attempt(Outcome::Delivered),
                attempt(failed),
                attempt(Outcome::Delivered),
            ],
            gone: vec![(StoreId::new(), WebhookId::new())],
            failing: Vec::new(),
        });

        let text = metrics.render();
        let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
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
