//! Finds PostgreSQL's programs, and prepares the shell scripts that create and remove a temporary
//! PostgreSQL cluster, or a pooler.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::prerequisites;

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
        prerequisites::skip("the tests on PostgreSQL", "PostgreSQL is not installed");
    }
    programs
}

/// A shell that runs the script of a `ResourceScript`, with the path of a program, or of a directory of
/// programs, as its first argument.
pub(crate) fn resource_script(script: &str, path: &Path) -> Command {
    let mut command = unprivileged_shell();
    command
        .args(["-c", script, "resource_script"])
        .arg(path)
        .current_dir("/")
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
