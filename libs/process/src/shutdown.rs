//! Graceful shutdown on SIGTERM and Ctrl-C.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit statuses after a signal by shell convention: 128 plus the signal number.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// A token that SIGTERM or Ctrl-C cancels. A second signal exits at once with status 143 or 130
/// and abandons work in flight.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = CancellationToken::new();
    let signalled = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        signalled.cancel();
        tracing::warn!(
            "shutting down and draining work in flight; a second Ctrl-C or SIGTERM exits at once"
        );
        let status = tokio::select! {
            _ = terminate.recv() => TERMINATED,
            _ = interrupt.recv() => INTERRUPTED,
        };
        std::process::exit(status);
    });
    Ok(shutdown)
}
