//! The queue of writes that wait for a commit: its jobs, and the check whether they succeed.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use process::traces::{Origin, TraceSpan};
use sea_orm::ConnectionTrait as _;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{Error, Session, Work, WriteError};

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

/// The result of a job's work.
pub(super) enum JobResult {
    Done,
    /// The work returned an error of its own or a unique violation: what it wrote is rolled back.
    Failed,
    /// The work failed otherwise in the database, or panicked: the state of the transaction is
    /// unknown.
    Broken,
}

/// A [`Write`] with its type parameters erased.
pub(super) trait Job: Send {
    /// Whether the write has not timed out.
    fn is_awaited(&self) -> bool;
    fn run<'a>(&'a mut self, transaction: &'a Session) -> BoxFuture<'a, JobResult>;
    /// The span of the request that the job is for.
    fn trace(&self) -> Option<&TraceSpan>;
    /// The storage error that the work returned.
    fn error(&self) -> Option<&Error>;
    /// Sets the error, unless the work returned an error.
    fn fail(&mut self, error: Error);
    /// Whether the log is truncated after the commit, before the response.
    fn truncates_log(&self) -> bool;
    fn respond(self: Box<Self>);
}

/// What is special about a write.
#[derive(PartialEq, Eq)]
pub(super) enum WriteKind {
    Any,
    TruncatesLog,
}

struct Write<T, E, W> {
    origin: Origin,
    work: W,
    kind: WriteKind,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, W> Job for Write<T, E, W>
where
    W: Work<Result<T, E>>,
    T: Send,
    E: WriteError,
{
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run<'a>(&'a mut self, transaction: &'a Session) -> BoxFuture<'a, JobResult> {
        let caught = AssertUnwindSafe(self.work.clone()(transaction.clone())).catch_unwind();
        let work = self.origin.run(caught);
        async move {
            let result = work
                .await
                .unwrap_or_else(|panic| Err(Error::Panicked(panic_message(panic.as_ref())).into()));
            let job_result = match &result {
                Ok(_) => JobResult::Done,
                Err(error) => match error.as_storage() {
                    Some(error) if !error.is_unique_violation() => JobResult::Broken,
                    _ => JobResult::Failed,
                },
            };
            self.result = Some(result);
            job_result
        }
        .boxed()
    }

    fn trace(&self) -> Option<&TraceSpan> {
        self.origin.trace()
    }

    fn error(&self) -> Option<&Error> {
        self.result.as_ref()?.as_ref().err()?.as_storage()
    }

    fn fail(&mut self, error: Error) {
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error.into()));
        }
    }

    fn truncates_log(&self) -> bool {
        self.kind == WriteKind::TruncatesLog
    }

    fn respond(self: Box<Self>) {
        // Without a result, dropping the sender ends the wait. Sending fails if the write timed out: it
        // stays committed.
        if let Some(result) = self.result {
            let _ = self.reply.send(result);
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Writes more than most requests do: a smaller write may still succeed on a disk that is full.
const TRIAL: &str = "DROP TABLE IF EXISTS write_trial; CREATE TABLE write_trial (filler BLOB); \
                     INSERT INTO write_trial VALUES (zeroblob(262144))";

const END_OF_TRIAL: &str = "DROP TABLE write_trial";

/// Whether writes succeed, for health checks.
#[derive(Clone, Debug)]
pub(crate) struct WriteCheck {
    /// Weak: a check must not keep the queue of a closed storage open.
    queue: Weak<Queue>,
    /// The failures before the last trial that succeeded. Locked during a trial.
    failures_before_trial: Arc<tokio::sync::Mutex<u64>>,
}

impl WriteCheck {
    pub(super) fn new(queue: &Arc<Queue>) -> Self {
        Self {
            queue: Arc::downgrade(queue),
            failures_before_trial: Arc::default(),
        }
    }

    /// Fails if a commit does not end, or if one has failed because the database cannot be written
    /// and a trial fails too. Writes nothing while writes succeed.
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let queue = self.queue.upgrade().ok_or(Error::WriterStopped)?;
        if queue.commit_timer.exceeds(queue.write_timeout) {
            return Err(Error::Timeout);
        }
        let mut failures_before_trial = self.failures_before_trial.lock().await;
        let failures = queue.failures.load(Ordering::Relaxed);
        if failures == *failures_before_trial {
            return Ok(());
        }
        execute(&queue, TRIAL).await?;
        execute(&queue, END_OF_TRIAL).await?;
        *failures_before_trial = failures;
        Ok(())
    }
}

async fn execute(queue: &Queue, statements: &'static str) -> Result<(), Error> {
    let write = queue.write(
        move |transaction| async move {
            transaction.execute_unprepared(statements).await?;
            Ok(())
        },
        WriteKind::Any,
    );
    write.await
}
