//! The metrics of the calls to services.

use std::{sync::Arc, time::Duration};

use process::metrics::{Buckets, HistogramTable, HistogramTables, Registry, Sample, Sampled, Unit};
use tokio::time::Instant;

use crate::{
    circuit_breaker::{CircuitBreaker, STATES},
    error::Error,
};

/// In the order of [`outcome`].
const OUTCOMES: &[&str] = &[
    "success",
    "url",
    "busy",
    "circuit_open",
    "timeout",
    "no_response",
    "incomplete",
    "too_large",
    "status",
];

/// What is measured of one client.
#[derive(Clone, Debug)]
pub struct Monitor {
    name: String,
    calls: HistogramTable,
    breaker: Arc<CircuitBreaker>,
}

impl Monitor {
    pub(crate) fn new(name: &str, breaker: Arc<CircuitBreaker>) -> Self {
        Self {
            name: name.to_owned(),
            calls: HistogramTable::new(
                vec![vec![("upstream", name.to_owned())]],
                ("outcome", OUTCOMES),
                Buckets::Seconds,
            ),
            breaker,
        }
    }

    pub(crate) fn record<T>(&self, result: &Result<T, Error>, duration: Duration) {
        self.calls.observe(0, outcome(result), duration);
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
    let calls = monitors.iter().map(|monitor| monitor.calls.clone());
    registry.register_with_unit(
        "delivery_upstream_call_duration",
        "Duration of calls to geocoders and routers by outcome",
        Unit::Seconds,
        HistogramTables(calls.collect()),
    );
    registry.register(
        "delivery_upstream_circuit_breaker_state",
        "1 for the current state of a circuit breaker",
        Sampled::new(move || monitors.iter().flat_map(Monitor::breaker_state).collect()),
    );
}

fn outcome<T>(result: &Result<T, Error>) -> usize {
    match result {
        Ok(_) => 0,
        Err(Error::InvalidUrl(_)) => 1,
        Err(Error::Busy) => 2,
        Err(Error::CircuitOpen(_)) => 3,
        Err(Error::Timeout(_)) => 4,
        Err(Error::NoResponse(_)) => 5,
        Err(Error::IncompleteResponse(_)) => 6,
        Err(Error::ResponseTooLarge(_)) => 7,
        Err(Error::Status { .. }) => 8,
    }
}
