//! PostgreSQL's own programs: where they are, and how a cluster of a test's own is kept.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Set to `1` where the PostgreSQL part of the tests must not be skipped.
const REQUIRED: &str = "DELIVERY_TEST_REQUIRE_POSTGRES";

/// The directory of the newest installed version: Debian's place, or one in `PATH`. `None`,
/// said on stderr, on a machine without PostgreSQL.
pub(crate) fn find() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let newest = versions
        .filter_map(|version| {
            let path = version.ok()?.path();
            let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
            Some((number, path.join("bin")))
        })
        .filter(|(_, programs)| is_complete(programs))
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = newest
        .map(|(_, programs)| programs)
        .or_else(|| std::env::split_paths(&path).find(|programs| is_complete(programs)));
    if programs.is_none() {
        let required = std::env::var_os(REQUIRED).is_some_and(|value| value == "1");
        assert!(
            !required,
            "PostgreSQL is not installed, and {REQUIRED} is set"
        );
        // Past the test runner's capture: whoever reads the result must know what it covers.
        let _ = std::io::stderr().write_all(
            b"\n*** PostgreSQL is not installed: its part of the tests is SKIPPED ***\n",
        );
    }
    programs
}

/// A shell that runs a script with the directory of the programs as its first argument, to be
/// spoken to through pipes. What it keeps should end with its standard input: the pipe's other
/// end is ours, so that happens with this process, however that ends.
pub(crate) fn guardian(script: &str, programs: &Path) -> Command {
    let mut command = unprivileged_shell();
    command
        .args(["-c", script, "guardian"])
        .arg(programs)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C ends the tests; the guardian ends after them, with its work done.
        .process_group(0);
    command
}

/// PostgreSQL refuses to run as root; its package brings a user of its own.
fn unprivileged_shell() -> Command {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout.trim_ascii() != b"0" {
        return Command::new("sh");
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "sh",
    ]);
    command
}

fn is_complete(programs: &Path) -> bool {
    [
        "initdb",
        "postgres",
        "pg_ctl",
        "pg_isready",
        "createdb",
        "psql",
    ]
    .iter()
    .all(|program| programs.join(program).is_file())
}
