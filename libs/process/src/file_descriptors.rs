//! How many files and sockets this process may have open.

/// Kept for everything that is not a client's connection: listeners, cores, databases, files.
const OTHERS: u64 = 128;

/// Raises the limit as far as the system lets it be raised without privileges, and gives it.
pub fn raise() -> u64 {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX)
        }
    }
}

/// Warns if so many connections of clients can't be open at once, though a setting says so.
pub fn warn_if_below(connections: usize, limit: u64, setting: &str) {
    if let Some(reachable) = shortage(connections, limit) {
        tracing::warn!(
            "{setting} is {connections}, but the system lets this process open {limit} files: about {reachable} connections will do; raise the limit (ulimit -n, LimitNOFILE=) or lower {setting}"
        );
    }
}

/// How many connections there can be, if fewer.
fn shortage(connections: usize, limit: u64) -> Option<u64> {
    let reachable = limit.saturating_sub(OTHERS);
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX);
    (wanted > reachable).then_some(reachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_the_system_allows() {
        let (_, hard) = rlimit::Resource::NOFILE.get().unwrap();

        let limit = raise();

        assert_eq!(rlimit::Resource::NOFILE.get_soft().unwrap(), limit);
        assert_eq!(limit, hard);
    }

    #[test]
    fn connections_are_short_where_other_files_need_the_rest() {
        assert_eq!(shortage(8192, 1_048_576), None);
        assert_eq!(shortage(896, 1024), None);
        assert_eq!(shortage(897, 1024), Some(896));
        assert_eq!(shortage(1, 16), Some(0));
    }
}
