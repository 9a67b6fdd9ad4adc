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

use futures_util::future::join_all;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{
    Error,
    connections::Connections,
    delivery_insertion::{COUNTS, NewDelivery, insert_together},
    storage::{WRITE_TIMEOUT, spawned, with_retries},
};

/// How many statements run at the same time. With more, fewer deliveries share one.
const MAX_STATEMENTS: usize = 2;

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
            queue.waiting.push_back(Insertion { new, reply });
            let must_start = queue.statements < MAX_STATEMENTS;
            queue.statements += usize::from(must_start);
            must_start
        });
        if must_start {
            // Spawned, so that a cancelled caller does not interrupt the statement.
            tokio::spawn(self.clone().run());
        }
        let result = timeout(WRITE_TIMEOUT, result).await;
        let (result, duration) = result
            .map_err(|_| Error::Timeout)?
            .map_err(|_| Error::WriterStopped)?;
        let metrics = self.connections.metrics();
        metrics.shared("WITH", duration, result.is_err());
        result
    }

    /// Runs statements until no insertion waits.
    async fn run(self) {
        while let Some(batch) = self.next_batch() {
            // Spawned, so that a panic fails only these.
            let _ = tokio::spawn(insert(self.connections.clone(), batch)).await;
        }
    }

    /// The insertions for one statement, in the order of their arrival.
    fn next_batch(&self) -> Option<Vec<Insertion>> {
        self.with_queue(|queue| {
            // A caller that timed out may have retried: its first insertion must not run.
            queue
                .waiting
                .retain(|insertion| !insertion.reply.is_closed());
            let mut counts = COUNTS.iter().rev();
            let count = counts.find(|count| **count <= queue.waiting.len());
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
        Err(error) => matches!(error, Error::Database(_)),
    };
    let replies = if concerns_one && batch.len() > 1 {
        let alone = deliveries.chunks(1);
        join_all(alone.map(|delivery| insert_with_retries(&connections, delivery))).await
    } else {
        vec![together; batch.len()]
    };
    for (insertion, reply) in batch.into_iter().zip(replies) {
        // The caller may have gone.
        let _ = insertion.reply.send(reply);
    }
}

async fn insert_with_retries(connections: &Connections, deliveries: &[&NewDelivery]) -> Reply {
    let started = Instant::now();
    let inserted = with_retries(|| insert_together(connections, deliveries)).await;
    (inserted, started.elapsed())
}
