//! Whether writes succeed, for health checks.

use std::sync::{Arc, Weak, atomic::Ordering};

use sea_orm::ConnectionTrait as _;
use tokio::sync::Mutex;

use super::{job::WriteKind, queue::Queue};
use crate::Error;

/// Writes more than most requests do: a smaller write may still succeed on a disk that is full.
const TRIAL: &str = "DROP TABLE IF EXISTS write_trial; CREATE TABLE write_trial (filler BLOB); \
                     INSERT INTO write_trial VALUES (zeroblob(262144))";

const END_OF_TRIAL: &str = "DROP TABLE write_trial";

#[derive(Clone, Debug)]
pub(crate) struct WriteCheck {
    /// Weak: a check must not keep the queue of a closed storage open.
    queue: Weak<Queue>,
    /// The failures before the last trial that succeeded. Locked during a trial.
    failures_before_trial: Arc<Mutex<u64>>,
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
