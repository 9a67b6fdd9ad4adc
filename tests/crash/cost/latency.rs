//! How soon receivers are told.

use std::collections::HashMap;

use super::receiver::Receiver;
use crate::postgres::Postgres;

/// How long after the commit of a completion its receiver was told, in milliseconds.
pub(super) struct Latencies(Vec<f64>);

impl Latencies {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(super) fn of(
        deliveries: &[(String, String)],
        receiver: &Receiver,
        postgres: &Postgres,
    ) -> Self {
        // A task is written once: with the completion.
        let committed = postgres.query(
            "SELECT delivery_id, (extract(epoch FROM pg_xact_commit_timestamp(xmin))
                 * 1000000)::bigint FROM tasks WHERE kind = 'dropoff'",
        );
        let committed: HashMap<_, i64> = committed
            .lines()
            .filter_map(|line| line.split_once('|'))
            .filter_map(|(id, at)| Some((id, at.parse().ok()?)))
            .collect();
        let mut latencies: Vec<_> = deliveries
            .iter()
            .map(|(iri, _)| {
                let id = iri.rsplit('/').next().unwrap();
                let arrived = receiver.arrival(iri).expect("it was told");
                (arrived - committed[id]) as f64 / 1000.0
            })
            .collect();
        latencies.sort_by(f64::total_cmp);
        Self(latencies)
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percentile = |percent| self.0[self.0.len() * percent / 100];
        let (half, most) = (percentile(50), percentile(99));
        write!(f, "commit to receiver p50 {half:.2} ms, p99 {most:.2} ms")
    }
}
