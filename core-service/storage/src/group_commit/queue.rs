//! The queue of writes that wait for a commit.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use process::traces::Origin;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::job::{Job, Write, WriteKind};
use crate::{Error, Work, WriteError};

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) jobs: mpsc::Sender<Box<dyn Job>>,
    pub(super) commit_timer: CommitTimer,
    /// Failed commits to a database that cannot be written.
    pub(super) failures: Arc<AtomicU64>,
    pub(super) write_timeout: Duration,
}

impl Queue {
    /// Runs a write and waits for its result. A write that times out in the queue is never run.
    pub(super) async fn write<T, E>(
        &self,
        work: impl Work<Result<T, E>>,
        kind: WriteKind,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
    {
        // A disk may hang for hours: fail at once instead of waiting for the timeout.
        if self.commit_timer.exceeds(self.write_timeout) {
            return Err(Error::Timeout.into());
        }
        let (reply, result) = oneshot::channel();
        let job = Box::new(Write {
            origin: Origin::current(),
            work,
            kind,
            result: None,
            reply,
        });
        self.jobs.try_send(job).map_err(Error::from)?;
        match tokio::time::timeout(self.write_timeout, result).await {
            Ok(result) => result.map_err(|_| Error::WriterStopped)?,
            Err(_) => Err(Error::Timeout.into()),
        }
    }
}

/// The start of the commit or checkpoint in progress, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct CommitTimer(Arc<Mutex<Option<Instant>>>);

impl CommitTimer {
    pub(super) fn set(&self, start: Option<Instant>) {
        *self.0.lock() = start;
    }

    pub(super) fn exceeds(&self, timeout: Duration) -> bool {
        let start = *self.0.lock();
        start.is_some_and(|start| start.elapsed() >= timeout)
    }
}
