//! What the platform's processes and PostgreSQL use.

use std::{process::Command, time::Duration};

use crate::{cluster::Cluster, postgres::Postgres, server::Server};

/// After so long, PostgreSQL's idle sessions have told what they did.
const STATISTICS: Duration = Duration::from_secs(12);

/// What was used so far.
#[derive(Clone, Copy)]
pub(super) struct Meter {
    cores: f64,
    dispatchers: f64,
    postgres: f64,
    /// How long they wanted a processor that had something else to do.
    waited: f64,
    transactions: f64,
    flushes: f64,
}

impl Meter {
    pub(super) async fn read(cluster: &Cluster) -> Self {
        tokio::time::sleep(STATISTICS).await;
        let cores = cluster.cores.each_ref().map(Server::id);
        let dispatchers = cluster.dispatchers.each_ref().map(Server::id);
        let postgres = processes(&cluster.postgres);
        let all = cores.iter().chain(&dispatchers).chain(&postgres);
        let number = |statement| cluster.postgres.query(statement).parse().unwrap();
        Self {
            waited: all.map(|process| waited(*process)).sum(),
            cores: cores.into_iter().map(cpu).sum(),
            dispatchers: dispatchers.into_iter().map(cpu).sum(),
            postgres: postgres.into_iter().map(cpu).sum(),
            transactions: number("SELECT sum(xact_commit) FROM pg_stat_database"),
            flushes: number("SELECT wal_sync FROM pg_stat_wal"),
        }
    }

    fn combine(self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            cores: f(self.cores, other.cores),
            dispatchers: f(self.dispatchers, other.dispatchers),
            postgres: f(self.postgres, other.postgres),
            waited: f(self.waited, other.waited),
            transactions: f(self.transactions, other.transactions),
            flushes: f(self.flushes, other.flushes),
        }
    }

    pub(super) fn since(self, before: &Self) -> Self {
        self.combine(before, |now, before| now - before)
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(super) fn of_a_thousand(self, count: usize) -> Self {
        let share = 1000.0 / count as f64;
        self.combine(&self, |one, _| one * share)
    }
}

impl std::fmt::Display for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.2} CPU-s (cores {:.2}, dispatchers {:.2}, PostgreSQL {:.2}), \
             {:.2} s more wanting one, {:.0} transactions, {:.0} flushes",
            self.cores + self.dispatchers + self.postgres,
            self.cores,
            self.dispatchers,
            self.postgres,
            self.waited,
            self.transactions,
            self.flushes
        )
    }
}

/// The server's process and those it has started.
fn processes(postgres: &Postgres) -> Vec<u32> {
    let file = format!("{}/data/postmaster.pid", postgres.directory());
    let postmaster = std::fs::read_to_string(file).unwrap();
    let postmaster = postmaster.lines().next().unwrap().to_owned();
    let children = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &postmaster])
        .output()
        .unwrap();
    String::from_utf8_lossy(&children.stdout)
        .split_whitespace()
        .chain([postmaster.as_str()])
        .map(|id| id.parse().unwrap())
        .collect()
}

/// Seconds of processor time of a process; ticks are hundredths wherever Linux runs.
fn cpu(process: u32) -> f64 {
    // One that has ended meanwhile used what it used.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Seconds for which the threads of a process were ready and not running.
fn waited(process: u32) -> f64 {
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
