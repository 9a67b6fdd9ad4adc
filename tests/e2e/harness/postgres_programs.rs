//! Finds PostgreSQL's programs, and runs the shell script that owns a test's cluster.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Set to `1` to make a missing PostgreSQL a failure.
const REQUIRED: &str = "DELIVERY_TEST_REQUIRE_POSTGRES";

/// The program directory of the newest installed version: Debian's location, else `PATH`. `None`,
/// with a message on stderr, on a machine without PostgreSQL.
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
        // Bypasses the test runner's capture: a skipped half must be visible in the output.
        let _ = std::io::stderr().write_all(
            b"\n*** PostgreSQL is not installed: the PostgreSQL tests are SKIPPED ***\n",
        );
    }
    programs
}

/// A shell that runs a script with the program directory as its first argument. The script cleans
/// up when its standard input closes, which happens when this process exits, even by a kill.
pub(crate) fn cleanup_script(script: &str, programs: &Path) -> Command {
    let mut command = unprivileged_shell();
    command
        .args(["-c", script, "cleanup_script"])
        .arg(programs)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C stops the tests; the script must outlive them to clean up.
        .process_group(0);
    command
}

/// PostgreSQL refuses to run as root; its package creates the user `postgres`.
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
