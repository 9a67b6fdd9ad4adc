//! Programs of the machine that tests use.

use std::{env, path::PathBuf};

use super::prerequisites;

/// The path of a program, if it is installed.
pub(crate) fn find_optional(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        // Debian's directory of servers, which not every user's path contains.
        .chain(["/usr/sbin".into()])
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// The path of a program; without it, reports that `subject` is skipped.
pub(crate) fn find(program: &str, subject: &str) -> Option<PathBuf> {
    let found = find_optional(program);
    if found.is_none() {
        prerequisites::skip(subject, &format!("{program} is not installed"));
    }
    found
}
