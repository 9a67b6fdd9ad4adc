//! The metrics of the calls to services.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use process::metrics::{Durations, Labels, Registry, Sample, Sampled, Unit, durations};
use tokio::time::Instant;

use crate::{
    circuit_breaker::{CircuitBreaker, STATES},
    error::Error,
};

/// What is measured of one client.
#[derive(Clone, Debug)]
pub struct Monitor {
    name: String,
    /// Of all clients of the program; none before they are registered.
    calls: Arc<OnceLock<Durations<Labels<2, String>>>>,
    breaker: Arc<CircuitBreaker>,
}

impl Monitor {
    pub(crate) fn new(name: &str, breaker: Arc<CircuitBreaker>) -> Self {
        Self {
            name: name.to_owned(),
            calls: Arc::default(),
            breaker,
        }
    }

    pub(crate) fn record<T>(&self, result: &Result<T, Error>, duration: Duration) {
        if let Some(calls) = self.calls.get() {
            let outcome = outcome(result).to_owned();
            calls
                .get_or_create(&[("upstream", self.name.clone()), ("outcome", outcome)])
                .observe(duration.as_secs_f64());
        }
    }

    fn breaker_state(&self) -> impl Iterator<Item = Sample> {
        let current = self.breaker.current(Instant::now());
        STATES.into_iter().map(move |state| {
            let labels = [("upstream", self.name.as_str()), ("state", state)];
            Sample::count(&labels, usize::from(state == current))
        })
    }
}

/// Registers the metrics of the clients of a program.
pub fn register_metrics(monitors: Vec<Monitor>, registry: &mut Registry) {
    if monitors.is_empty() {
        return;
    }
    // A family without series is not in the exposition.
    let calls = durations();
    for monitor in &monitors {
        let success = ("outcome", "success".to_owned());
        calls.get_or_create_owned(&[("upstream", monitor.name.clone()), success]);
        monitor.calls.get_or_init(|| calls.clone());
    }
    registry.register_with_unit(
        "delivery_upstream_call_duration",
        "Duration of calls to geocoders and routers by outcome",
        Unit::Seconds,
        calls,
    );
    registry.register(
        "delivery_upstream_circuit_breaker_state",
        "1 for the current state of a circuit breaker",
        Sampled::new(move || monitors.iter().flat_map(Monitor::breaker_state).collect()),
    );
}

fn outcome<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "success",
        Err(Error::InvalidUrl(_)) => "url",
        Err(Error::Busy) => "busy",
        Err(Error::CircuitOpen(_)) => "circuit_open",
        Err(Error::Timeout(_)) => "timeout",
        Err(Error::NoResponse(_)) => "no_response",
        Err(Error::IncompleteResponse(_)) => "incomplete",
        Err(Error::ResponseTooLarge(_)) => "too_large",
        Err(Error::Status { .. }) => "status",
    }
}
