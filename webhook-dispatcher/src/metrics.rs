//! The metrics of a dispatcher.

use std::time::Duration;

use process::metrics::{Durations, Gauge, Labels, Registry, Sample, Sampled, Unit, durations};
use proto::outcome::Failure;
use tokio_util::task::TaskTracker;

/// Metrics since the process started. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    attempts: Durations<Labels<1>>,
    pub(crate) in_flight: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let attempts: Durations<_> = durations();
        // A family without series is not in the exposition.
        attempts.get_or_create_owned(&[("outcome", "delivered")]);
        Self {
            attempts,
            in_flight: Gauge::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn count_attempt(&self, failure: Failure, duration: Duration) {
        self.attempts
            .get_or_create(&[("outcome", outcome(failure))])
            .observe(duration.as_secs_f64());
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

/// The names under which core stores failures; `NotSent`, which no attempt has, is core's `unknown`.
fn outcome(failure: Failure) -> &'static str {
    match failure {
        Failure::Unspecified => "delivered",
        Failure::Dns => "dns",
        Failure::AddressRefused => "address_refused",
        Failure::Connect => "connect",
        Failure::Tls => "tls",
        Failure::Timeout => "timeout",
        Failure::Status => "status",
        Failure::Protocol => "protocol",
        Failure::NotSent => "unknown",
    }
}
