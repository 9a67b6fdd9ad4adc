//! Resource usage of the platform's processes and PostgreSQL.

use std::time::Duration;

use crate::{
    cluster::Cluster,
    processor_time::{postgres_processes, processor_time},
    server::Server,
};

/// Time after which idle PostgreSQL sessions have reported their statistics.
const STATISTICS_DELAY: Duration = Duration::from_secs(12);

/// Usage since the start of the processes; processor times in seconds.
#[derive(Clone, Copy)]
pub(super) struct ResourceUsage {
    /// Processor time of the core services.
    core_services: f64,
    /// Processor time of the dispatchers.
    dispatchers: f64,
    /// Processor time of PostgreSQL's processes.
    postgres: f64,
    /// Time spent runnable while waiting for a processor.
    run_queue: f64,
    transactions: f64,
    /// Flushes of the write-ahead log.
    flushes: f64,
}

impl ResourceUsage {
    pub(super) async fn read(cluster: &Cluster) -> Self {
        tokio::time::sleep(STATISTICS_DELAY).await;
        let cores = cluster.cores.each_ref().map(Server::id);
        let dispatchers = cluster.dispatchers.each_ref().map(Server::id);
        let postgres = postgres_processes(&cluster.postgres);
        let all = cores.iter().chain(&dispatchers).chain(&postgres);
        let query_number = |statement| cluster.postgres.query(statement).parse().unwrap();
        Self {
            run_queue: all.map(|process| run_queue_time(*process)).sum(),
            core_services: cores.into_iter().map(processor_time).sum(),
            dispatchers: dispatchers.into_iter().map(processor_time).sum(),
            postgres: postgres.into_iter().map(processor_time).sum(),
            transactions: query_number("SELECT sum(xact_commit) FROM pg_stat_database"),
            flushes: query_number("SELECT wal_sync FROM pg_stat_wal"),
        }
    }

    fn combine(self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            core_services: f(self.core_services, other.core_services),
            dispatchers: f(self.dispatchers, other.dispatchers),
            postgres: f(self.postgres, other.postgres),
            run_queue: f(self.run_queue, other.run_queue),
            transactions: f(self.transactions, other.transactions),
            flushes: f(self.flushes, other.flushes),
        }
    }

    pub(super) fn minus(self, before: &Self) -> Self {
        self.combine(before, |now, before| now - before)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the figures are rounded for display"
    )]
    pub(super) fn per_thousand(self, notifications: usize) -> Self {
        let factor = 1000.0 / notifications as f64;
        self.combine(&self, |total, _| total * factor)
    }
}

impl std::fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.2} CPU-s (core services {:.2}, dispatchers {:.2}, PostgreSQL {:.2}), \
             {:.2} s waiting for a CPU, {:.0} transactions, {:.0} flushes",
            self.core_services + self.dispatchers + self.postgres,
            self.core_services,
            self.dispatchers,
            self.postgres,
            self.run_queue,
            self.transactions,
            self.flushes
        )
    }
}

/// Time in seconds for which the threads of a process were runnable but not running.
fn run_queue_time(process: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|schedstat| schedstat.split_whitespace().nth(1)?.parse::<f64>().ok())
        .sum::<f64>()
        / 1e9
}
