//! The version of the programs: of the packages, and the commit that a release is built from.

use std::sync::LazyLock;

/// A release build sets `DELIVERY_COMMIT`.
const COMMIT: Option<&str> = commit(option_env!("DELIVERY_COMMIT"));

/// What `--version` prints: `0.1.0 (abc1234)`, or `0.1.0` without a commit.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| described(COMMIT));
    &VERSION
}

/// The labels of the metric `delivery_build_info`.
pub(crate) fn labels() -> Vec<(&'static str, &'static str)> {
    let version = ("version", env!("CARGO_PKG_VERSION"));
    let commit = COMMIT.map(|commit| ("commit", commit));
    std::iter::once(version).chain(commit).collect()
}

/// An empty build argument is none.
const fn commit(argument: Option<&str>) -> Option<&str> {
    match argument {
        Some(commit) if !commit.is_empty() => Some(commit),
        _ => None,
    }
}

fn described(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    commit.map_or_else(
        || version.to_owned(),
        |commit| format!("{version} ({commit})"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_follows_the_version_if_there_is_one() {
        let version = env!("CARGO_PKG_VERSION");
        for (argument, expected) in [
            (Some("abc1234"), format!("{version} (abc1234)")),
            (Some(""), version.to_owned()),
            (None, version.to_owned()),
        ] {
            assert_eq!(described(commit(argument)), expected);
        }
    }
}
