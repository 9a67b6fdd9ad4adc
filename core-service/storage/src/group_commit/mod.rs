//! Group commit: a flush costs the same for one write as for many. Writes that arrive during a
//! commit share the next one, and return when it is on disk. If one of them fails, all are rolled
//! back and run again, each in a savepoint.

#[cfg(test)]
mod tests;
mod write_check;

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Error, WriteError, connect::open_sqlite_writer};
pub(super) use write_check::WriteCheck;

/// The capacity of the queue. More writes would time out before their commit.
const QUEUE_CAPACITY: usize = 4096;

/// The largest number of writes in one commit.
const MAX_BATCH: usize = 256;

#[derive(Debug)]
pub(super) struct GroupCommit {
    queue: Queue,
    /// Failed commits to a database that cannot be written.
    failures: Arc<AtomicU64>,
    writer: tokio::task::JoinHandle<Result<(), Error>>,
}

impl GroupCommit {
    /// Starts the writer on `connection`. After a failure it opens another one from `url`.
    pub(super) fn start(
        url: String,
        connection: DatabaseConnection,
        write_timeout: Duration,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE_CAPACITY);
        let commit_timer = CommitTimer::default();
        let failures = Arc::new(AtomicU64::new(0));
        let writer = tokio::spawn(
            Writer {
                url,
                connection: Some(connection),
                commit_timer: commit_timer.clone(),
                failures: Arc::clone(&failures),
                savepoints: 0,
            }
            .run(queue),
        );
        Self {
            queue: Queue {
                jobs,
                commit_timer,
                write_timeout,
            },
            failures,
            writer,
        }
    }

    pub(super) async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: WriteError,
    {
        self.queue.write(work).await
    }

    pub(super) fn write_check(&self) -> WriteCheck {
        WriteCheck::new(&self.queue, &self.failures)
    }

    /// Runs the queued writes, then closes the connection.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.queue);
        self.writer.await.map_err(|_| Error::WriterStopped)?
    }
}

/// The queue of writes.
#[derive(Debug)]
struct Queue {
    jobs: mpsc::Sender<Box<dyn Job>>,
    commit_timer: CommitTimer,
    write_timeout: Duration,
}

impl Queue {
    async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: WriteError,
    {
        // A disk may hang for hours: fail at once instead of waiting for the timeout.
        if self.commit_timer.exceeds(self.write_timeout) {
            return Err(Error::Timeout.into());
        }
        let (reply, result) = oneshot::channel();
        let job = Box::new(Write {
            work,
            result: None,
            reply,
        });
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded,
            mpsc::error::TrySendError::Closed(_) => Error::WriterStopped,
        })?;
        // A write that times out in the queue is never run.
        match tokio::time::timeout(self.write_timeout, result).await {
            Ok(result) => result.map_err(|_| Error::WriterStopped)?,
            Err(_) => Err(Error::Timeout.into()),
        }
    }
}

/// The start of the commit in progress, if there is one.
#[derive(Clone, Debug, Default)]
struct CommitTimer(Arc<Mutex<Option<Instant>>>);

impl CommitTimer {
    fn set(&self, start: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = start;
    }

    fn exceeds(&self, timeout: Duration) -> bool {
        let start = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        start.is_some_and(|start| start.elapsed() >= timeout)
    }
}

/// How many commits have savepoints after a write has failed: a workload of which many writes fail
/// does not run twice.
const COMMITS_WITH_SAVEPOINTS: u32 = 64;

/// Runs writes on one connection, and replaces it after a failure.
struct Writer {
    url: String,
    connection: Option<DatabaseConnection>,
    commit_timer: CommitTimer,
    failures: Arc<AtomicU64>,
    /// How many of the next commits have savepoints.
    savepoints: u32,
}

impl Writer {
    /// Runs writes until all senders are dropped, and closes the connection.
    async fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while queue.recv_many(&mut batch, MAX_BATCH).await > 0 {
            // A caller that timed out may have retried: its first write must not run.
            batch.retain(|job| job.is_caller_waiting());
            if batch.len() <= 1 || self.commit(&mut batch).await.is_err() {
                // A write that breaks the transaction must not fail the others.
                for job in &mut batch {
                    if let Err(error) = self.commit(std::slice::from_mut(job)).await {
                        job.fail(error);
                    }
                }
            }
            for job in batch.drain(..) {
                job.respond();
            }
        }
        match self.connection {
            Some(connection) => connection.close().await.map_err(Error::from),
            None => Ok(()),
        }
    }

    /// Runs the jobs in one transaction and commits it. After an error all are rolled back.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
        self.commit_timer.set(Some(Instant::now()));
        let result = self.commit_together(jobs).await;
        self.commit_timer.set(None);
        if let Err(error) = &result {
            let mut errors = jobs.iter().filter_map(|job| job.error());
            if error.is_unwritable() || errors.any(Error::is_unwritable) {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        result
    }

    /// Without savepoints, each of which costs two round trips to the connection's thread, unless a
    /// job fails or has failed recently.
    async fn commit_together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
        if self.savepoints == 0 || jobs.len() == 1 {
            let is_failed = self.try_to_commit(jobs, Savepoints::No).await? == Committed::No;
            if !is_failed || jobs.len() == 1 {
                return Ok(());
            }
            self.savepoints = COMMITS_WITH_SAVEPOINTS;
        }
        self.savepoints -= 1;
        self.try_to_commit(jobs, Savepoints::Yes).await.map(|_| ())
    }

    async fn try_to_commit(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        savepoints: Savepoints,
    ) -> Result<Committed, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open_sqlite_writer(&self.url).await?,
        };
        let result = transact(&connection, jobs, savepoints).await;
        if result.is_ok() {
            self.connection = Some(connection);
            return result;
        }
        // After a full disk or an I/O error, SQLite may end the transaction without notifying the
        // driver. On the same connection, the driver would begin the next transaction as a
        // savepoint and never commit it.
        if let Err(error) = connection.close().await {
            tracing::warn!(%error, "cannot close the connection of a failed transaction");
        }
        result
    }
}

/// Whether each job of a transaction has a savepoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Savepoints {
    No,
    Yes,
}

/// Whether a transaction was committed. Without savepoints, it is rolled back when a job fails.
#[derive(PartialEq, Eq)]
enum Committed {
    No,
    Yes,
}

async fn transact(
    connection: &DatabaseConnection,
    jobs: &mut [Box<dyn Job>],
    savepoints: Savepoints,
) -> Result<Committed, Error> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = connection.begin_with_options(options).await?;
    for job in jobs.iter_mut().filter(|job| job.is_caller_waiting()) {
        let savepoint = match savepoints {
            Savepoints::No => None,
            Savepoints::Yes => Some(transaction.begin().await?),
        };
        match job.run(savepoint.as_ref().unwrap_or(&transaction)).await {
            JobResult::Broken => return Err(Error::RolledBack),
            JobResult::Done => {
                if let Some(savepoint) = savepoint {
                    savepoint.commit().await?;
                }
            }
            JobResult::Failed => {
                let Some(savepoint) = savepoint else {
                    transaction.rollback().await?;
                    return Ok(Committed::No);
                };
                savepoint.rollback().await?;
            }
        }
    }
    transaction.commit().await?;
    Ok(Committed::Yes)
}

/// The result of a job's work.
enum JobResult {
    Done,
    /// The caller's code returned an error of its own or a unique violation: what it wrote is rolled
    /// back.
    Failed,
    /// The work failed otherwise in the database, or panicked: the state of the transaction is
    /// unknown.
    Broken,
}

/// A [`Write`] with its type parameters erased.
trait Job: Send {
    /// Whether the caller still waits.
    fn is_caller_waiting(&self) -> bool;
    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, JobResult>;
    /// The storage error that the work returned.
    fn error(&self) -> Option<&Error>;
    /// Sets the error, unless the work returned an error.
    fn fail(&mut self, error: Error);
    fn respond(self: Box<Self>);
}

struct Write<T, E, W> {
    work: W,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, W> Job for Write<T, E, W>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Send,
    T: Send,
    E: WriteError,
{
    fn is_caller_waiting(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, JobResult> {
        let work = AssertUnwindSafe((self.work)(transaction)).catch_unwind();
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

    fn error(&self) -> Option<&Error> {
        self.result.as_ref()?.as_ref().err()?.as_storage()
    }

    fn fail(&mut self, error: Error) {
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error.into()));
        }
    }

    fn respond(self: Box<Self>) {
        let result = self
            .result
            .unwrap_or_else(|| Err(Error::WriterStopped.into()));
        // Fails if the caller timed out. The write stays committed.
        let _ = self.reply.send(result);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
