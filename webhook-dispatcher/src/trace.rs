//! Measures the phases of one connection, for test sends.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustls::ProtocolVersion;
use tokio::time::Instant;

/// Records when each phase of a connection completes.
#[derive(Debug)]
pub(crate) struct Trace {
    started: Instant,
    phases: Mutex<Phases>,
}

/// Time from the start to the end of each phase; `None` if the phase was not completed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    pub resolved: Option<Duration>,
    pub connected: Option<Duration>,
    pub handshake_completed: Option<Duration>,
    pub tls_version: Option<ProtocolVersion>,
}

impl Trace {
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            phases: Mutex::default(),
        }
    }

    pub(crate) fn record_resolved(&self) {
        self.record(|phases, elapsed| phases.resolved = Some(elapsed));
    }

    pub(crate) fn record_connected(&self) {
        self.record(|phases, elapsed| phases.connected = Some(elapsed));
    }

    pub(crate) fn record_handshake(&self, version: Option<ProtocolVersion>) {
        self.record(|phases, elapsed| {
            phases.handshake_completed = Some(elapsed);
            phases.tls_version = version;
        });
    }

    pub(crate) fn phases(&self) -> Phases {
        *self.lock()
    }

    fn record(&self, set: impl FnOnce(&mut Phases, Duration)) {
        let elapsed = self.started.elapsed();
        set(&mut self.lock(), elapsed);
    }

    /// Ignores poisoning of the mutex: no update can panic halfway.
    fn lock(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
