//! The metrics of a database: statements, connections and commits. Statements and commits are also spans
//! of the request that they are for.

use std::time::{Duration, Instant};

use process::{
    metrics::{Buckets, Counter, Counters, Histogram, HistogramTable, Registry, Unit},
    traces::{KeyValue, TraceSpan},
};
use sea_orm::DbBackend;

/// The label of metrics by pool.
pub(super) const POOL: &str = "db_client_connection_pool_name";

/// The first words of statements, and what stands for all others.
const OPERATIONS: [&str; 7] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", COMMIT, "OTHER",
];
const COMMIT: &str = "COMMIT";

/// Counts since the storage was opened. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    /// The value of [`POOL`].
    pub(super) pool: &'static str,
    statements: HistogramTable,
    waits: HistogramTable,
    pub(super) timeouts: Counters,
    /// How often `PostgreSQL` refused a connection.
    pub(super) refused: Counter,
    /// Writes per commit, with `SQLite`.
    pub(super) group_commits: Histogram,
}

/// A statement that is executed.
pub(super) struct Measurement {
    operation: usize,
    started: Instant,
}

impl Metrics {
    pub(super) fn new(backend: DbBackend) -> Self {
        let (pool, pools): (_, &[&str]) = match backend {
            DbBackend::Sqlite => ("sqlite", &["sqlite"]),
            _ => ("postgresql", &["postgresql"]),
        };
        let operations = OPERATIONS.map(|name| vec![("db_operation_name", name.to_owned())]);
        Self {
            pool,
            statements: HistogramTable::new(
                operations.into(),
                ("error_type", &["", "_OTHER"]),
                Buckets::Seconds,
            ),
            waits: HistogramTable::new(vec![Vec::new()], (POOL, pools), Buckets::Seconds),
            timeouts: Counters::new(POOL, pools),
            refused: Counter::default(),
            group_commits: Histogram::new(Buckets::Counts),
        }
    }

    /// Begins to measure a statement.
    pub(super) fn measure(sql: &str) -> Measurement {
        Measurement {
            operation: operation(sql),
            started: Instant::now(),
        }
    }

    /// Records a statement, also in the trace of its request.
    pub(super) fn executed<T, E>(&self, statement: &Measurement, result: &Result<T, E>) {
        let (duration, has_failed) = (statement.started.elapsed(), result.is_err());
        self.statements
            .observe(statement.operation, usize::from(has_failed), duration);
        if let Some(trace) = TraceSpan::current() {
            record(&trace, self.pool, statement.operation, duration, has_failed);
        }
    }

    /// Records in the trace of a request a statement that it shared with other requests.
    /// [`Metrics::executed`] has counted it.
    pub(super) fn shared(
        &self,
        sql: &str,
        duration: Duration,
        has_failed: bool,
        trace: Option<&TraceSpan>,
    ) {
        if let Some(trace) = trace {
            record(trace, self.pool, operation(sql), duration, has_failed);
        }
    }

    /// Records a commit, also in the traces of its writes.
    pub(super) fn committed<'a>(
        &self,
        duration: Duration,
        has_failed: bool,
        traces: impl IntoIterator<Item = &'a TraceSpan>,
    ) {
        let commit = operation(COMMIT);
        self.statements
            .observe(commit, usize::from(has_failed), duration);
        for trace in traces {
            record(trace, self.pool, commit, duration, has_failed);
        }
    }

    /// Records how long an operation waited for its connection.
    pub(super) fn waited(&self, duration: Duration) {
        self.waits.observe(0, 0, duration);
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "db_client_operation_duration",
            "Duration of database statements by their first word",
            Unit::Seconds,
            self.statements.clone(),
        );
        registry.register_with_unit(
            "db_client_connection_wait_time",
            "How long operations waited for a database connection",
            Unit::Seconds,
            self.waits.clone(),
        );
        registry.register(
            "db_client_connection_timeouts",
            "Operations that got no database connection in time",
            self.timeouts.clone(),
        );
        match self.pool {
            "sqlite" => registry.register(
                "delivery_group_commit_writes",
                "Writes per commit",
                self.group_commits.clone(),
            ),
            _ => registry.register(
                "delivery_database_connections_refused",
                "Times that PostgreSQL refused one more connection",
                self.refused.clone(),
            ),
        }
    }
}

/// Records a statement in a trace. Not its text: it may have values.
fn record(
    trace: &TraceSpan,
    system: &'static str,
    operation: usize,
    duration: Duration,
    has_failed: bool,
) {
    let operation = OPERATIONS[operation];
    trace.record(operation, duration, has_failed, || {
        [
            KeyValue::new("db.system.name", system),
            KeyValue::new("db.operation.name", operation),
        ]
    });
}

/// The index of a statement's first word.
fn operation(sql: &str) -> usize {
    OPERATIONS
        .iter()
        .position(|name| sql.starts_with(name))
        .unwrap_or(OPERATIONS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_counted_by_its_first_word() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT"),
            ("WITH x AS (SELECT 1) SELECT 2", "WITH"),
            ("UPDATE tasks SET id = 1", "UPDATE"),
            ("PRAGMA wal_checkpoint(TRUNCATE)", "OTHER"),
            ("", "OTHER"),
        ] {
            assert_eq!(OPERATIONS[operation(sql)], expected, "{sql}");
        }
    }
}
