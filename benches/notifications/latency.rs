//! The latency from a completion to its notification at the receiver.

use std::collections::HashMap;

use crate::{postgres::Postgres, receiver::Receiver};

/// Latencies in milliseconds, in ascending order.
pub(super) struct Latencies(Vec<f64>);

impl Latencies {
    /// Measures from the commit of a completion, by PostgreSQL's clock, to the last byte of the
    /// request at the receiver. A delivery is given as its IRI and the IRI of its dropoff.
    pub(super) fn of(
        deliveries: &[(String, String)],
        receiver: &Receiver,
        postgres: &Postgres,
    ) -> Self {
        // The last transaction that wrote a task is its completion.
        let committed = postgres.query(
            "SELECT delivery_id, (extract(epoch FROM pg_xact_commit_timestamp(xmin))
                 * 1000000)::bigint FROM tasks WHERE kind = 'dropoff'",
        );
        let committed: HashMap<_, i64> = committed
            .lines()
            .filter_map(|line| line.split_once('|'))
            .filter_map(|(id, at)| Some((id, at.parse().ok()?)))
            .collect();
        deliveries
            .iter()
            .map(|(iri, _)| {
                let id = iri.rsplit('/').next().unwrap();
                let arrived = receiver.arrival(iri).expect("the receiver was notified");
                arrived - committed[id]
            })
            .collect()
    }
}

impl FromIterator<i64> for Latencies {
    /// Converts from microseconds.
    #[expect(clippy::cast_precision_loss, reason = "rounded for display")]
    fn from_iter<I: IntoIterator<Item = i64>>(microseconds: I) -> Self {
        let microseconds = microseconds.into_iter();
        let mut latencies: Vec<_> = microseconds.map(|time| time as f64 / 1000.0).collect();
        latencies.sort_by(f64::total_cmp);
        Self(latencies)
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percentile = |percent| self.0[self.0.len() * percent / 100];
        let (p50, p99) = (percentile(50), percentile(99));
        write!(f, "p50 {p50:.2} ms, p99 {p99:.2} ms")
    }
}
