//! Group commit: a flush costs the same for one write as for many. Writes that arrive during a
//! commit share the next one, and return when it is on disk. If one of the
//! writes fails, all are rolled back and run again, each in a savepoint.

mod queue;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sea_orm::ConnectionTrait as _;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Error, WriteError,
    connect::Target,
    metrics::Metrics,
    rows,
    session::{Session, Work},
};
pub(super) use queue::WriteCheck;
use queue::{CommitTimer, Job, JobResult, Queue, WriteKind};

/// The capacity of the queue. More writes would time out before their commit.
const QUEUE_CAPACITY: usize = 4096;

/// The largest number of writes in one commit.
const MAX_BATCH: usize = 256;

/// The number of writes between two checkpoints: some megabytes of log.
const WRITES_PER_CHECKPOINT: usize = 512;

/// The number of writes that a commit counts as, if it has fewer: at most 64 commits lie between
/// two checkpoints.
const MIN_WRITES: usize = 8;

#[derive(Debug)]
pub(super) struct GroupCommit {
    queue: Arc<Queue>,
    writer: tokio::task::JoinHandle<Result<(), Error>>,
}

impl GroupCommit {
    /// Starts the writer on `session`. After a failure it opens another one.
    pub(super) fn start(target: Target, session: Session, write_timeout: Duration) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE_CAPACITY);
        let commit_timer = CommitTimer::default();
        let failures = Arc::new(AtomicU64::new(0));
        let writer = tokio::spawn(
            Writer {
                target,
                session: Some(session),
                writes_in_log: 0,
                commit_timer: commit_timer.clone(),
                failures: Arc::clone(&failures),
                savepoints: 0,
            }
            .run(queue),
        );
        Self {
            queue: Arc::new(Queue {
                jobs,
                commit_timer,
                failures,
                write_timeout,
            }),
            writer,
        }
    }

    pub(super) async fn write<T, E>(&self, work: impl Work<Result<T, E>>) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
    {
        self.queue.write(work, WriteKind::Any).await
    }

    /// Moves the commits so far into the main file, and empties the log.
    pub(super) async fn truncate_write_ahead_log(&self) -> Result<(), Error> {
        self.queue
            .write(move |_| async move { Ok(()) }, WriteKind::TruncatesLog)
            .await
    }

    pub(super) fn write_check(&self) -> WriteCheck {
        WriteCheck::new(&self.queue)
    }

    /// Runs the queued writes, then closes the connection.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.queue);
        self.writer.await.map_err(|_| Error::WriterStopped)?
    }
}

/// How many commits have savepoints after a write has failed: if many writes of a workload fail,
/// its batches do not all run twice.
const COMMITS_WITH_SAVEPOINTS: u32 = 64;

/// Runs writes on one connection, and replaces it after a failure.
struct Writer {
    target: Target,
    session: Option<Session>,
    /// Since the last checkpoint.
    writes_in_log: usize,
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
            // A write that timed out may have been retried: it must not run too.
            batch.retain(|job| job.is_awaited());
            if batch.len() <= 1 || self.commit(&mut batch).await.is_err() {
                // A write that breaks the transaction must not fail the others.
                for job in &mut batch {
                    if let Err(error) = self.commit(std::slice::from_mut(job)).await {
                        job.fail(error);
                    }
                }
            }
            self.writes_in_log += batch.len().max(MIN_WRITES);
            if batch.iter().any(|job| job.truncates_log())
                && self.checkpoint(Checkpoint::Truncate).await.is_err()
            {
                for job in batch.iter_mut().filter(|job| job.truncates_log()) {
                    job.fail(Error::LogNotTruncated);
                }
            }
            for job in batch.drain(..) {
                job.respond();
            }
            if self.writes_in_log >= WRITES_PER_CHECKPOINT {
                // The cause of a failure also fails the next write, after which this is repeated.
                let _ = self.checkpoint(Checkpoint::Passive).await;
            }
        }
        let Some(session) = self.session else {
            return Ok(());
        };
        session.close().await.map_err(Error::from)
    }

    /// Runs a checkpoint. Until it ends, the next writes wait.
    async fn checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), Error> {
        self.commit_timer.set(Some(Instant::now()));
        let result = self.run_checkpoint(checkpoint).await;
        self.commit_timer.set(None);
        match &result {
            Ok(()) => self.writes_in_log = 0,
            Err(error) => {
                let error = error as &dyn std::error::Error;
                tracing::warn!(error, "cannot run a checkpoint");
            }
        }
        result
    }

    async fn run_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), Error> {
        let session = self.take_session().await?;
        let result = run_checkpoint(&session, checkpoint).await;
        let is_usable = matches!(result, Ok(()) | Err(Error::LogNotTruncated));
        self.keep(session, is_usable).await;
        result
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

    /// Commits the jobs. Uses savepoints, each of which costs two round trips to the connection's
    /// thread, only if a job fails or has failed recently.
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
        let session = self.take_session().await?;
        let result = transact(&session, jobs, savepoints, &self.target.metrics).await;
        self.keep(session, result.is_ok()).await;
        result
    }

    async fn take_session(&mut self) -> Result<Session, Error> {
        match self.session.take() {
            Some(session) => Ok(session),
            None => self.target.session().await,
        }
    }

    /// Keeps a session for the next transaction, unless it has failed.
    async fn keep(&mut self, session: Session, is_usable: bool) {
        if is_usable {
            self.session = Some(session);
            return;
        }
        // It is not known whether the transaction is still open: after a full disk or an I/O error,
        // SQLite ends it by itself.
        if let Err(error) = session.close().await {
            tracing::warn!(%error, "cannot close the connection of a failed transaction");
        }
    }
}

/// What a checkpoint leaves in the log's file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checkpoint {
    /// The log's frames, which later commits overwrite.
    Passive,
    /// Nothing.
    Truncate,
}

/// Moves the log's commits into the main file. Fails with [`Error::LogNotTruncated`] while a connection
/// reads what the log contains.
async fn run_checkpoint(session: &Session, checkpoint: Checkpoint) -> Result<(), Error> {
    let statement = match checkpoint {
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let is_busy = rows::value::<i32>(session, statement).await? != 0;
    if is_busy && checkpoint == Checkpoint::Truncate {
        return Err(Error::LogNotTruncated);
    }
    Ok(())
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
    session: &Session,
    jobs: &mut [Box<dyn Job>],
    savepoints: Savepoints,
    metrics: &Metrics,
) -> Result<Committed, Error> {
    session.begin().await?;
    let mut writes = 0_u32;
    for job in jobs.iter_mut().filter(|job| job.is_awaited()) {
        writes += 1;
        if savepoints == Savepoints::Yes {
            session.execute_unprepared("SAVEPOINT job").await?;
        }
        let end = match (job.run(session).await, savepoints) {
            (JobResult::Broken, _) => return Err(Error::RolledBack),
            (JobResult::Done, Savepoints::No) => continue,
            (JobResult::Failed, Savepoints::No) => {
                session.roll_back().await?;
                return Ok(Committed::No);
            }
            (JobResult::Done, Savepoints::Yes) => "RELEASE job",
            (JobResult::Failed, Savepoints::Yes) => "ROLLBACK TO job; RELEASE job",
        };
        session.execute_unprepared(end).await?;
    }
    let started = Instant::now();
    let committed = session.commit().await;
    let traces = jobs.iter().filter_map(|job| job.trace());
    metrics.committed(started.elapsed(), committed.is_err(), traces);
    committed?;
    metrics.group_commits.observe(writes.into());
    Ok(Committed::Yes)
}
