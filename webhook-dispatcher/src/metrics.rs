//! The metrics of a dispatcher.

use std::time::Duration;

use process::metrics::{Buckets, Gauge, HistogramTable, Registry, Sample, Sampled, Unit};
use proto::outcome::Failure;
use tokio_util::task::TaskTracker;

/// In the order of [`outcome_index`].
const OUTCOMES: &[&str] = &[
    "delivered",
    "dns",
    "address_refused",
    "connect",
    "tls",
    "timeout",
    "status",
    "protocol",
    "unknown",
];

/// Metrics since the process started. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    attempts: HistogramTable,
    pub(crate) in_flight: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            attempts: HistogramTable::new(
                vec![Vec::new()],
                ("outcome", OUTCOMES),
                Buckets::Seconds,
            ),
            in_flight: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Records an attempt.
    pub(crate) fn count_attempt(&self, failure: Failure, duration: Duration) {
        self.attempts.observe(0, outcome_index(failure), duration);
    }

    pub(crate) fn register(
        &self,
        max_in_flight: usize,
        streams: TaskTracker,
        registry: &mut Registry,
    ) {
        registry.register_with_unit(
            "delivery_notification_attempt_duration",
            "Duration of attempts to send notifications by outcome",
            Unit::Seconds,
            self.attempts.clone(),
        );
        registry.register(
            "delivery_dispatcher_notifications_in_flight",
            "Notifications received and not reported yet",
            self.in_flight.clone(),
        );
        registry.register(
            "delivery_dispatcher_capacity",
            "Limit of notifications in flight",
            Sampled::new(move || vec![Sample::count(&[], max_in_flight)]),
        );
        registry.register(
            "delivery_dispatcher_streams",
            "Open streams from cores",
            Sampled::new(move || vec![Sample::count(&[], streams.len())]),
        );
    }
}

/// The index of a failure in [`OUTCOMES`]. The names there are those under which core stores failures;
/// `NotSent`, which no attempt has, is core's `unknown`.
fn outcome_index(failure: Failure) -> usize {
    match failure {
        Failure::Unspecified => 0,
        Failure::Dns => 1,
        Failure::AddressRefused => 2,
        Failure::Connect => 3,
        Failure::Tls => 4,
        Failure::Timeout => 5,
        Failure::Status => 6,
        Failure::Protocol => 7,
        Failure::NotSent => 8,
    }
}
