//! Graceful shutdown on SIGTERM, Ctrl-C, and SIGHUP, which a terminal sends when it is closed.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::service_manager;

/// Exit statuses after a signal by shell convention: 128 plus the signal number.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// A token that SIGTERM, Ctrl-C or SIGHUP cancels. A second SIGTERM or Ctrl-C exits at once with
/// status 143 or 130 and abandons work in flight; a second SIGHUP is ignored, because the shell and
/// the kernel each send one when a terminal is closed. SIGHUP stays ignored in a process that was
/// started to ignore it, as `nohup` does.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hang_up: if is_ignored(SignalKind::hangup()) {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        },
    };
    let shutdown = CancellationToken::new();
    let signalled = shutdown.clone();
    tokio::spawn(async move {
        signals.next().await;
        // tokio's handler stays installed.
        signals.hang_up = None;
        signalled.cancel();
        service_manager::notify_stopping();
        tracing::warn!(
            "shutting down and draining work in flight; a second Ctrl-C or SIGTERM exits at once"
        );
        std::process::exit(signals.next().await);
    });
    Ok(shutdown)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    /// Waits for the next signal; returns the exit status for a process that it ends at once.
    async fn next(&mut self) -> i32 {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => TERMINATED,
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = hang_up => TERMINATED,
        }
    }
}

/// Whether this process was started with a signal ignored (Linux; elsewhere taken as not).
fn is_ignored(signal: SignalKind) -> bool {
    let bit = signal.as_raw_value() - 1;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> bit & 1 == 1)
}
