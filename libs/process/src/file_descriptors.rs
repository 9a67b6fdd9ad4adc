//! The limit of open files and sockets of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reserved for everything but client connections: listeners, cores, databases, files.
const RESERVED: u64 = 128;

/// Raises the soft limit to the hard limit and returns it.
pub fn raise_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            current
        }
    };
    limit.unwrap_or(u64::MAX)
}

/// Warns if the limit is too low for the client connections that a setting allows.
pub fn warn_if_too_low(connections: usize, limit: u64, setting: &str) {
    if let Some(allowed) = allowed_if_fewer(connections, limit) {
        tracing::warn!(
            "{setting} is {connections}, but the limit of {limit} open files is enough for only {allowed} connections: raise the limit (ulimit -n, LimitNOFILE=) or lower {setting}"
        );
    }
}

/// The number of connections the limit allows, if it is fewer than configured.
fn allowed_if_fewer(connections: usize, limit: u64) -> Option<u64> {
    let allowed = limit.saturating_sub(RESERVED);
    let configured = u64::try_from(connections).unwrap_or(u64::MAX);
    (configured > allowed).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum;

        let limit = raise_limit();

        let soft = getrlimit(Resource::Nofile).current;
        assert_eq!(soft.unwrap_or(u64::MAX), limit);
        assert_eq!(limit, hard.unwrap_or(u64::MAX));
    }

    #[test]
    fn reserved_files_reduce_the_possible_connections() {
        assert_eq!(allowed_if_fewer(8192, 1_048_576), None);
        assert_eq!(allowed_if_fewer(896, 1024), None);
        assert_eq!(allowed_if_fewer(897, 1024), Some(896));
        assert_eq!(allowed_if_fewer(1, 16), Some(0));
    }
}
