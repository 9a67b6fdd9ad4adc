//! The attempt that the current future makes, for the connector: whether it has ended, and its phases.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustls::ProtocolVersion;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    static CURRENT: Attempt;
}

/// One attempt. Clones share its phases.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Cancelled at the end of the attempt.
    pub ended: CancellationToken,
    started: Instant,
    phases: Arc<Mutex<Phases>>,
}

/// How far an attempt came: the time from its start to the end of each phase, `None` if that was not
/// completed, and the TLS version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    pub resolved: Option<Duration>,
    pub connected: Option<Duration>,
    pub handshake_completed: Option<Duration>,
    pub tls_version: Option<ProtocolVersion>,
}

impl Attempt {
    pub(crate) fn start() -> Self {
        Self {
            ended: CancellationToken::new(),
            started: Instant::now(),
            phases: Arc::default(),
        }
    }

    /// The attempt that the current future makes; a new one outside of an attempt.
    pub(crate) fn current() -> Self {
        CURRENT
            .try_with(Self::clone)
            .unwrap_or_else(|_| Self::start())
    }

    /// Runs the attempt. At its end, abandons the connections that it was opening.
    pub(crate) async fn run<F: Future>(&self, attempt: F) -> F::Output {
        let _end_on_return = self.ended.clone().drop_guard();
        CURRENT.scope(self.clone(), attempt).await
    }

    /// Records a phase with the time since the start.
    pub(crate) fn record(&self, set: impl FnOnce(&mut Phases, Duration)) {
        let elapsed = self.started.elapsed();
        set(&mut self.phases.lock(), elapsed);
    }

    pub(crate) fn phases(&self) -> Phases {
        *self.phases.lock()
    }
}
