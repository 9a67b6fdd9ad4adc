//! Processor time of processes.

use std::process::Command;

use crate::postgres::Postgres;

/// Processor time of a process in seconds, and of its children that have ended: the fields `utime`, `stime`,
/// `cutime` and `cstime`, in ticks of 10 ms. That of a process that has ended is 0.
pub(crate) fn processor_time(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(4);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// The ids of the PostgreSQL server process and its children.
pub(crate) fn postgres_processes(postgres: &Postgres) -> Vec<u32> {
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
