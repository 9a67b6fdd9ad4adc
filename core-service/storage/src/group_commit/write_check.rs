//! Whether writes succeed, for health checks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sea_orm::ConnectionTrait as _;
use tokio::sync::{Mutex, mpsc::WeakSender};

use super::{CommitTimer, Job, Queue};
use crate::Error;

/// Writes more than most requests do: a smaller write may still succeed on a disk that is full.
const TRIAL: &str = "DROP TABLE IF EXISTS write_trial; CREATE TABLE write_trial (filler BLOB); \
                     INSERT INTO write_trial VALUES (zeroblob(262144))";

const END_OF_TRIAL: &str = "DROP TABLE write_trial";

#[derive(Clone, Debug)]
pub(crate) struct WriteCheck {
    /// Weak: a check must not keep the queue of a closed storage open.
    jobs: WeakSender<Box<dyn Job>>,
    commit_timer: CommitTimer,
    write_timeout: Duration,
    /// Failed commits to a database that cannot be written.
    failures: Arc<AtomicU64>,
    /// The failures before the last trial that succeeded. Locked during a trial.
    failures_before_trial: Arc<Mutex<u64>>,
}

impl WriteCheck {
    pub(super) fn new(queue: &Queue, failures: &Arc<AtomicU64>) -> Self {
        Self {
            jobs: queue.jobs.downgrade(),
            commit_timer: queue.commit_timer.clone(),
            write_timeout: queue.write_timeout,
            failures: Arc::clone(failures),
            failures_before_trial: Arc::default(),
        }
    }

    /// Fails if a commit does not end, or if one has failed because the database cannot be written
    /// and a trial fails too. Writes nothing while writes succeed.
    pub(crate) async fn run(&self) -> Result<(), Error> {
        if self.commit_timer.exceeds(self.write_timeout) {
            return Err(Error::Timeout);
        }
        let mut failures_before_trial = self.failures_before_trial.lock().await;
        let failures = self.failures.load(Ordering::Relaxed);
        if failures == *failures_before_trial {
            return Ok(());
        }
        let jobs = self.jobs.upgrade().ok_or(Error::WriterStopped)?;
        let queue = Queue {
            jobs,
            commit_timer: self.commit_timer.clone(),
            write_timeout: self.write_timeout,
        };
        execute(&queue, TRIAL).await?;
        execute(&queue, END_OF_TRIAL).await?;
        *failures_before_trial = failures;
        Ok(())
    }
}

async fn execute(queue: &Queue, statements: &'static str) -> Result<(), Error> {
    queue
        .write(move |transaction| {
            Box::pin(async move {
                transaction.execute_unprepared(statements).await?;
                Ok(())
            })
        })
        .await
}
