//! The end of a program: SIGTERM and Ctrl-C.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a shell expects of a process that a signal ended: 128 and the signal's number.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Cancelled by SIGTERM and Ctrl-C, from now on. A second one ends the process at once, with
/// what is in flight, with status 143 or 130.
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
        tracing::warn!("finishing what is in flight; another Ctrl-C or SIGTERM ends it now");
        let status = tokio::select! {
            _ = terminate.recv() => TERMINATED,
            _ = interrupt.recv() => INTERRUPTED,
        };
        std::process::exit(status);
    });
    Ok(shutdown)
}
