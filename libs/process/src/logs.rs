//! Logs, as lines on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Writes them from a level on, such as `info`, unless `RUST_LOG` says otherwise.
pub fn to_stderr(level: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level)),
        )
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
