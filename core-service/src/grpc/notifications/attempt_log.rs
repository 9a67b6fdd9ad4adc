//! The attempt log. It is written after the outcomes, on a best-effort basis: a lost entry causes
//! no resend, so callers do not wait for it. Its queue is bounded.

use std::{sync::Arc, time::Duration};

use storage::{Storage, notifications::RecordedAttempt};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// The capacity of the queue in bytes, including the batch that is being written: 4,000 responses
/// of the maximum stored length, or typical responses of some seconds at full load.
const QUEUE_CAPACITY: usize = 16 << 20;

/// The number of attempts from which a transaction takes no further batch.
const MAX_ATTEMPTS: usize = 512;

/// How long to wait for more attempts after the first.
const BATCH_WINDOW: Duration = Duration::from_millis(100);

/// Queues attempts to be logged.
#[derive(Debug)]
pub(in crate::grpc) struct AttemptLog {
    queue: mpsc::UnboundedSender<Batch>,
    capacity: Arc<Semaphore>,
}

pub(in crate::grpc) type AttemptQueue = mpsc::UnboundedReceiver<Batch>;

/// Attempts, and the capacity that they use until they are dropped.
#[derive(Debug)]
pub(in crate::grpc) struct Batch {
    attempts: Vec<RecordedAttempt>,
    capacity: OwnedSemaphorePermit,
}

pub(in crate::grpc) fn attempt_log() -> (AttemptLog, AttemptQueue) {
    let (queue, receiver) = mpsc::unbounded_channel();
    let capacity = Arc::new(Semaphore::new(QUEUE_CAPACITY));
    (AttemptLog { queue, capacity }, receiver)
}

impl AttemptLog {
    /// Enqueues attempts; returns whether the queue had capacity for them.
    pub(super) fn add(&self, attempts: Vec<RecordedAttempt>) -> bool {
        if attempts.is_empty() {
            return true;
        }
        let size = |attempt: &RecordedAttempt| {
            size_of::<RecordedAttempt>() + attempt.report.response_body.capacity()
        };
        let size = attempts.iter().map(size).sum::<usize>();
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let Ok(capacity) = Arc::clone(&self.capacity).try_acquire_many_owned(size) else {
            return false;
        };
        self.queue.send(Batch { attempts, capacity }).is_ok()
    }
}

/// Writes the queued attempts to the database, in batches, until all streams are closed and the queue
/// is empty.
pub(in crate::grpc) async fn write_attempts(
    storage: Arc<Storage>,
    mut queue: AttemptQueue,
    streams_closed: CancellationToken,
) {
    while let Some(batch) = next_batch(&mut queue, &streams_closed).await {
        let attempts = Arc::new(batch.attempts);
        let written = storage.write(async move |transaction| {
            storage::notifications::insert_attempts(transaction, &attempts).await
        });
        if let Err(error) = written.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot write the attempt log"
            );
        }
        drop(batch.capacity);
    }
}

/// Waits for attempts, and then for more within [`BATCH_WINDOW`]. `None` once all streams are closed
/// and the queue is empty.
async fn next_batch(queue: &mut AttemptQueue, streams_closed: &CancellationToken) -> Option<Batch> {
    let mut batch = tokio::select! {
        first = queue.recv() => first,
        // No more outcomes arrive once all streams are closed.
        () = streams_closed.cancelled() => queue.try_recv().ok(),
    }?;
    let deadline = Instant::now() + BATCH_WINDOW;
    while batch.attempts.len() < MAX_ATTEMPTS {
        let more = tokio::select! {
            biased;
            more = queue.recv() => more,
            () = streams_closed.cancelled() => queue.try_recv().ok(),
            () = tokio::time::sleep_until(deadline) => None,
        };
        let Some(more) = more else {
            break;
        };
        batch.attempts.extend(more.attempts);
        batch.capacity.merge(more.capacity);
    }
    Some(batch)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use domain::{
        id::{NotificationId, StoreId},
        notification::Outcome,
    };

    use storage::notifications::AttemptReport;

    fn attempts(count: usize, response_body: &str) -> Vec<RecordedAttempt> {
        let attempt = || RecordedAttempt {
            store_id: StoreId::new(),
            number: 1,
            recorded_at: Timestamp::UNIX_EPOCH,
            report: AttemptReport {
                id: NotificationId::new(),
                lease_token: Uuid::nil(),
                outcome: Outcome::Delivered,
                status: Some(200),
                duration: Duration::ZERO,
                response_body: response_body.to_owned(),
                jitter: 0,
            },
        };
        std::iter::repeat_with(attempt).take(count).collect()
    }

    #[test]
    fn the_queue_is_bounded_by_its_size_until_it_is_written() {
        let (log, mut queue) = attempt_log();
        let response_body = "x".repeat(4096);
        let add = || log.add(attempts(256, &response_body));

        let accepted = std::iter::repeat_with(add).take_while(|is_accepted| *is_accepted);
        let accepted = accepted.take(1000).count();

        assert!((10..=16).contains(&accepted), "{accepted} MiB");
        assert!(log.add(attempts(1, "")), "a small batch still fits");
        let first = queue.try_recv().unwrap();
        assert!(!add(), "a batch being written uses capacity");
        drop(first);
        assert!(add());
        assert!(!add());
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_that_arrive_within_the_window_are_written_together() {
        let (log, mut queue) = attempt_log();
        let streams_closed = CancellationToken::new();
        let mut batch = pin!(next_batch(&mut queue, &streams_closed));

        log.add(attempts(1, ""));
        assert!(poll!(batch.as_mut()).is_pending());
        tokio::time::advance(BATCH_WINDOW / 2).await;
        log.add(attempts(2, ""));
        assert!(poll!(batch.as_mut()).is_pending());
        tokio::time::advance(BATCH_WINDOW / 2).await;

        assert_eq!(batch.await.unwrap().attempts.len(), 3);
    }

    #[tokio::test]
    async fn a_full_batch_takes_no_further_one() {
        let (log, mut queue) = attempt_log();
        for _ in 0..2 {
            log.add(attempts(MAX_ATTEMPTS, ""));
        }

        let full = next_batch(&mut queue, &CancellationToken::new()).await;

        assert_eq!(full.unwrap().attempts.len(), MAX_ATTEMPTS);
    }

    #[tokio::test]
    async fn the_last_attempts_are_written_once_all_streams_are_closed() {
        let (log, mut queue) = attempt_log();
        let streams_closed = CancellationToken::new();
        streams_closed.cancel();
        log.add(attempts(1, ""));

        let last = next_batch(&mut queue, &streams_closed).await;

        assert_eq!(last.unwrap().attempts.len(), 1);
        assert!(next_batch(&mut queue, &streams_closed).await.is_none());
    }
}
