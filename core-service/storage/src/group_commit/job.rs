//! The jobs in the queue of a group commit.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::{FutureExt, future::BoxFuture};
use process::traces::{Origin, TraceSpan};
use tokio::sync::oneshot;

use crate::{Error, Session, Work, WriteError};

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

pub(super) struct Write<T, E, W> {
    pub(super) origin: Origin,
    pub(super) work: W,
    pub(super) kind: WriteKind,
    pub(super) result: Option<Result<T, E>>,
    pub(super) reply: oneshot::Sender<Result<T, E>>,
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
