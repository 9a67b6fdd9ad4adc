//! The metrics of a core. Each core counts only what it did itself; add up the values of several
//! cores.

use std::{ops::RangeInclusive, sync::Arc};

use domain::{notification::Failure, task::TaskKind, webhook::DisabledReason};
use jiff::Timestamp;
use process::metrics::{Counter, Counters, Durations, Histogram, Labels, Registry, Unit};
use storage::notifications::AppliedOutcomes;

use crate::call_observer::CallMetrics;

/// Metrics since the process started. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) calls: Arc<CallMetrics>,
    pub(crate) deliveries_created: Counter,
    pub(crate) deliveries_completed: Counter,
    pub(crate) deliveries_cancelled: Counter,
    pub(crate) events_sequenced: Counter,
    pub(crate) tasks_completed: Counters,
    attempts: Counters,
    webhooks_disabled: Counters,
    /// How far parcels arrived from the middle of the range that a tracking page showed last.
    estimate_errors: Durations<Labels<1>>,
}

/// In seconds, with all series from the beginning.
fn estimate_errors() -> Durations<Labels<1>> {
    let errors = Durations::<Labels<1>>::new_with_constructor(|| {
        Histogram::new([60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0])
    });
    for arrival in ["inside", "before", "after"] {
        drop(errors.get_or_create(&[("arrival", arrival)]));
    }
    errors
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            calls: Arc::new(CallMetrics::new()),
            deliveries_created: Counter::default(),
            deliveries_completed: Counter::default(),
            deliveries_cancelled: Counter::default(),
            events_sequenced: Counter::default(),
            tasks_completed: Counters::new("type", &TaskKind::ALL.map(TaskKind::as_str)),
            attempts: Counters::new(
                "outcome",
                &[&["delivered"], &Failure::ALL.map(Failure::as_str)[..]].concat(),
            ),
            webhooks_disabled: Counters::new("reason", &["failing", "gone"]),
            estimate_errors: estimate_errors(),
        }
    }

    /// Counts an estimate, once the parcel has arrived.
    pub(crate) fn count_estimate(&self, range: RangeInclusive<Timestamp>, arrived_at: Timestamp) {
        let (from, until) = range.into_inner();
        let arrival = if arrived_at < from {
            "before"
        } else if arrived_at > until {
            "after"
        } else {
            "inside"
        };
        let middle = from + until.duration_since(from) / 2;
        let error = arrived_at.duration_since(middle).abs();
        let errors = self.estimate_errors.get_or_create(&[("arrival", arrival)]);
        errors.observe(error.as_secs_f64());
    }

    /// Counts a batch of outcomes, once it is committed.
    pub(crate) fn count(&self, outcomes: &AppliedOutcomes) {
        for attempt in &outcomes.attempts {
            let failure = attempt.report.outcome.failure();
            self.attempts
                .inc(failure.map_or("delivered", Failure::as_str));
        }
        for (disabled, reason) in [
            (&outcomes.gone, DisabledReason::Gone),
            (&outcomes.failing, DisabledReason::Failing),
        ] {
            let count = u64::try_from(disabled.len()).unwrap_or(u64::MAX);
            self.webhooks_disabled.add(reason.as_str(), count);
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "rpc_server_call_duration",
            "Duration of gRPC calls by method and status",
            Unit::Seconds,
            self.calls.durations.clone(),
        );
        registry.register_with_unit(
            "delivery_estimate_error",
            "How far parcels arrived from the middle of the last estimate that a tracking page showed",
            Unit::Seconds,
            self.estimate_errors.clone(),
        );
        for (name, help, counters) in [
            (
                "delivery_grpc_calls_rate_limited",
                "Calls rejected by a rate limit",
                &self.calls.rate_limited,
            ),
            (
                "delivery_grpc_calls_shed",
                "Calls rejected because too many are in flight",
                &self.calls.shed,
            ),
            (
                "delivery_tasks_completed",
                "Tasks completed",
                &self.tasks_completed,
            ),
            (
                "delivery_notification_attempts",
                "Attempts to send notifications by outcome",
                &self.attempts,
            ),
            (
                "delivery_webhooks_disabled",
                "Webhooks disabled because of their receivers by reason",
                &self.webhooks_disabled,
            ),
        ] {
            registry.register(name, help, counters.family.clone());
        }
        for (name, help, counter) in [
            (
                "delivery_deliveries_created",
                "Deliveries created",
                &self.deliveries_created,
            ),
            (
                "delivery_deliveries_completed",
                "Deliveries whose last task was completed",
                &self.deliveries_completed,
            ),
            (
                "delivery_deliveries_cancelled",
                "Deliveries cancelled",
                &self.deliveries_cancelled,
            ),
            (
                "delivery_events_sequenced",
                "Events numbered by this core",
                &self.events_sequenced,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use domain::{
        id::{NotificationId, StoreId},
        notification::Outcome,
    };
    use process::metrics::Exposition;
    use storage::notifications::{AttemptReport, Lease, RecordedAttempt};

    fn attempt(outcome: Outcome) -> RecordedAttempt {
        RecordedAttempt {
            store_id: StoreId::new(),
            number: 1,
            recorded_at: jiff::Timestamp::UNIX_EPOCH,
            report: AttemptReport {
                lease: Lease {
                    id: NotificationId::new(),
                    token: uuid::Uuid::now_v7(),
                },
                outcome,
                status: None,
                duration: Duration::ZERO,
                response_body: String::new(),
                jitter: 0,
            },
        }
    }

    async fn rendered(metrics: &Metrics) -> String {
        let mut exposition = Exposition::default();
        metrics.register(exposition.registry());
        exposition.render().await
    }

    #[tokio::test]
    async fn attempts_are_counted_by_outcome_and_disabled_webhooks_by_reason() {
        let metrics = Metrics::new();
        let failed = |failure| Outcome::Failed {
            failure,
            status: None,
            retry_after: None,
        };
        let failures = [
            Failure::Dns,
            Failure::AddressRefused,
            Failure::Connect,
            Failure::Tls,
            Failure::Timeout,
            Failure::Status,
            Failure::Protocol,
            Failure::Secret,
            Failure::Unknown,
        ];

        metrics.count(&AppliedOutcomes {
            attempts: failures
                .into_iter()
                .map(failed)
                .chain([Outcome::Delivered])
                .map(attempt)
                .collect(),
            gone: vec![storage::fixture::webhook(jiff::Timestamp::UNIX_EPOCH).key()],
            ..AppliedOutcomes::default()
        });

        let text = rendered(&metrics).await;
        let attempts = text
            .lines()
            .filter(|line| line.starts_with("delivery_notification_attempts_total"));
        assert_eq!(
            attempts.filter(|line| line.ends_with(" 1")).count(),
            10,
            "{text}"
        );
        for line in [
            r#"delivery_webhooks_disabled_total{reason="failing"} 0"#,
            r#"delivery_webhooks_disabled_total{reason="gone"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[tokio::test]
    async fn an_estimate_is_counted_by_where_the_parcel_arrived_in_its_range() {
        let metrics = Metrics::new();
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        for seconds in [999, 1000, 1500, 1600, 1601] {
            metrics.count_estimate(at(1000)..=at(1600), at(seconds));
        }

        let text = rendered(&metrics).await;
        for line in [
            r#"sum{arrival="before"} 301.0"#,
            r#"count{arrival="inside"} 3"#,
            r#"sum{arrival="inside"} 800.0"#,
            r#"sum{arrival="after"} 301.0"#,
        ] {
            let line = format!("delivery_estimate_error_seconds_{line}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
