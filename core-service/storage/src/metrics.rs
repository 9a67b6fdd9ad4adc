//! The metrics of a database: statements, connections and commits. Statements and commits are also spans
//! of the request that they are for.

use std::time::{Duration, Instant};

use process::{
    metrics::{
        Counter, Counters, Durations, Histogram, Labels, Registry, Unit, durations,
        exponential_buckets,
    },
    traces::{KeyValue, TraceSpan},
};
use sea_orm::DbBackend;

/// The label of metrics by pool.
pub(super) const POOL: &str = "db_client_connection_pool_name";

/// The first words of statements that are counted apart.
const OPERATIONS: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", COMMIT];
const COMMIT: &str = "COMMIT";

/// Counts since the storage was opened. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    /// The value of [`POOL`].
    pub(super) pool: &'static str,
    statements: Durations<Labels<2>>,
    waits: Durations<Labels<1>>,
    pub(super) timeouts: Counters,
    /// How often `PostgreSQL` refused a connection.
    pub(super) refused: Counter,
    /// Writes per commit, with `SQLite`.
    pub(super) group_commits: Histogram,
}

/// A statement that is executed.
pub(super) struct Measurement {
    operation: &'static str,
    started: Instant,
}

impl Metrics {
    pub(super) fn new(backend: DbBackend) -> Self {
        let pool = match backend {
            DbBackend::Sqlite => "sqlite",
            _ => "postgresql",
        };
        Self {
            pool,
            statements: durations(),
            waits: durations(),
            timeouts: Counters::new(POOL, &[pool]),
            refused: Counter::default(),
            group_commits: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
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
        self.count(statement.operation, duration, has_failed);
        if let Some(trace) = TraceSpan::current() {
            record(&trace, self.pool, statement.operation, duration, has_failed);
        }
    }

    /// Records in the trace of a request a statement that it shared with other requests, by its first word.
    /// [`Metrics::executed`] has counted it.
    pub(super) fn shared(&self, operation: &'static str, duration: Duration, has_failed: bool) {
        if let Some(trace) = TraceSpan::current() {
            record(&trace, self.pool, operation, duration, has_failed);
        }
    }

    /// Records a commit, also in the traces of its writes.
    pub(super) fn committed<'a>(
        &self,
        duration: Duration,
        has_failed: bool,
        traces: impl IntoIterator<Item = &'a TraceSpan>,
    ) {
        self.count(COMMIT, duration, has_failed);
        for trace in traces {
            record(trace, self.pool, COMMIT, duration, has_failed);
        }
    }

    /// Records how long an operation waited for its connection.
    pub(super) fn waited(&self, duration: Duration) {
        self.waits
            .get_or_create(&[(POOL, self.pool)])
            .observe(duration.as_secs_f64());
    }

    fn count(&self, operation: &'static str, duration: Duration, has_failed: bool) {
        let error = if has_failed { "_OTHER" } else { "" };
        self.statements
            .get_or_create(&[("db_operation_name", operation), ("error_type", error)])
            .observe(duration.as_secs_f64());
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
            self.timeouts.family.clone(),
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
    operation: &'static str,
    duration: Duration,
    has_failed: bool,
) {
    trace.record(operation, duration, has_failed, || {
        [
            KeyValue::new("db.system.name", system),
            KeyValue::new("db.operation.name", operation),
        ]
    });
}

/// A statement's first word.
fn operation(sql: &str) -> &'static str {
    OPERATIONS
        .into_iter()
        .find(|name| sql.starts_with(name))
        .unwrap_or("OTHER")
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
            assert_eq!(operation(sql), expected, "{sql}");
        }
    }
}
