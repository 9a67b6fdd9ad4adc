//! The output of a program to stderr: its logs, and the error that ends it.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Logs to stderr by a filter such as `info`, which `RUST_LOG` overrides.
pub fn to_stderr(default_filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter)),
        )
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // Reporting that stderr cannot be written panics if stderr is a closed terminal.
        .log_internal_errors(false)
        .init();
}

/// The error and its causes on one line. A cause that an outer message already contains is not
/// repeated.
pub fn error_message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_reported_once() {
        let error = anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot start");

        assert_eq!(
            error_message(&error),
            "cannot start: cannot connect: refused"
        );
    }
}
