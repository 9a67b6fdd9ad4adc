//! Deliveries that are created at the same time share a statement of `PostgreSQL`, and its flush: an
//! insert of 16 takes a third of the processor time of 16 inserts. The first are inserted at once;
//! those that arrive while [`MAX_STATEMENTS`] run are inserted together by the next.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use process::traces::TraceSpan;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{
    Error,
    concurrent_writes::{WRITE_TIMEOUT, spawned, with_retries},
    connections::Connections,
    delivery_insertion::{BATCH_SIZES, NewDelivery, insert_together},
};

/// How many statements run at the same time. With more, fewer deliveries share one.
const MAX_STATEMENTS: usize = 2;

/// A statement that takes longer is not counted in [`MAX_STATEMENTS`] any more: only its connection may be
/// lost.
const MAX_DURATION: Duration = Duration::from_secs(1);

/// The capacity of the queue. More insertions would time out before their statement.
const QUEUE_CAPACITY: usize = 4096;

/// Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct SharedInsertions {
    connections: Connections,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Insertion>,
    /// The number of running statements.
    statements: usize,
}

#[derive(Debug)]
struct Insertion {
    new: NewDelivery,
    reply: oneshot::Sender<Reply>,
}

/// The result of an insertion, and how long its statement took.
type Reply = (Result<bool, Error>, Duration);

impl Queue {
    /// A caller that timed out may have retried: its first insertion must not run.
    fn drop_abandoned(&mut self) {
        self.waiting
            .retain(|insertion| !insertion.reply.is_closed());
    }
}

impl SharedInsertions {
    pub(super) fn new(connections: Connections) -> Self {
        Self {
            connections,
            queue: Arc::default(),
        }
    }

    /// Inserts a delivery, and returns when it is on disk. Returns false, and inserts nothing, if a
    /// definition has changed.
    pub(super) async fn insert(&self, new: NewDelivery) -> Result<bool, Error> {
        // It may wait for a transaction that inserts the same reference: others must not.
        if new.delivery.external_reference.is_some() {
            let connections = self.connections.clone();
            let insert = async move { insert_with_retries(&connections, &[&new]).await.0 };
            return spawned(insert).await;
        }
        let (reply, result) = oneshot::channel();
        let must_start = self.with_queue(|queue| {
            if queue.waiting.len() >= QUEUE_CAPACITY {
                queue.drop_abandoned();
            }
            if queue.waiting.len() >= QUEUE_CAPACITY {
                return Err(Error::Overloaded);
            }
            queue.waiting.push_back(Insertion { new, reply });
            let must_start = queue.statements < MAX_STATEMENTS;
            queue.statements += usize::from(must_start);
            Ok(must_start)
        });
        if must_start? {
            // Spawned, so that a cancelled caller does not interrupt the statement.
            tokio::spawn(self.clone().run());
        }
        let result = timeout(WRITE_TIMEOUT, result).await;
        let (result, duration) = result
            .map_err(|_| Error::Timeout)?
            .map_err(|_| Error::WriterStopped)?;
        let metrics = self.connections.metrics();
        // The first word of the statement.
        metrics.shared(
            "WITH",
            duration,
            result.is_err(),
            TraceSpan::current().as_ref(),
        );
        result
    }

    /// Runs statements until no insertion waits.
    async fn run(self) {
        while let Some(batch) = self.next_batch() {
            // Spawned, so that a panic fails only these.
            let inserted = tokio::spawn(insert(self.connections.clone(), batch));
            let _ = timeout(MAX_DURATION, inserted).await;
        }
    }

    /// The insertions for one statement, in the order of their arrival.
    fn next_batch(&self) -> Option<Vec<Insertion>> {
        self.with_queue(|queue| {
            queue.drop_abandoned();
            let mut sizes = BATCH_SIZES.iter().rev();
            let count = sizes.find(|count| **count <= queue.waiting.len());
            if count.is_none() {
                queue.statements -= 1;
            }
            count.map(|count| queue.waiting.drain(..*count).collect())
        })
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Inserts deliveries together, or each alone if the statement inserts none because of one of them.
async fn insert(connections: Connections, batch: Vec<Insertion>) {
    let deliveries: Vec<_> = batch.iter().map(|insertion| &insertion.new).collect();
    let together = insert_with_retries(&connections, &deliveries).await;
    let concerns_one = match &together.0 {
        Ok(are_current) => !are_current,
        Err(error) => error.is_rejected_value(),
    };
    let is_repeated = concerns_one && batch.len() > 1;
    for Insertion { new, reply } in batch {
        let result = if is_repeated {
            insert_with_retries(&connections, &[&new]).await
        } else {
            together.clone()
        };
        // The caller may have gone.
        let _ = reply.send(result);
    }
}

async fn insert_with_retries(connections: &Connections, deliveries: &[&NewDelivery]) -> Reply {
    let started = Instant::now();
    let inserted = with_retries(|| insert_together(connections, deliveries)).await;
    (inserted, started.elapsed())
}
