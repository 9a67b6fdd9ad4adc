//! The log of attempts, which follows outcomes as well as it can: what is lost of it resends
//! nothing, so nobody waits for it, and what waits to be written is bounded.

use std::{sync::Arc, time::Duration};

use storage::notifications::Attempt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::Instant,
};

use crate::grpc::Core;

/// How many bytes of attempts may wait to be written, or just be: the answers of 4,000 receivers
/// that all say as much as is kept, or some seconds of what most say at full load.
const ROOM: usize = 16 << 20;

/// How many attempts are written by one transaction at most, or a batch more.
const ATTEMPTS: usize = 512;

/// How long attempts gather after the first.
const GATHERING: Duration = Duration::from_millis(100);

/// Takes attempts to be logged.
#[derive(Debug)]
pub(crate) struct AttemptLog {
    waiting: mpsc::UnboundedSender<Batch>,
    room: Arc<Semaphore>,
}

/// What waits to be logged.
pub(crate) type Attempts = mpsc::UnboundedReceiver<Batch>;

/// Attempts, and the room they take until they are dropped.
#[derive(Debug)]
pub(crate) struct Batch {
    attempts: Vec<Attempt>,
    room: OwnedSemaphorePermit,
}

pub(crate) fn attempt_log() -> (AttemptLog, Attempts) {
    let (waiting, attempts) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM));
    (AttemptLog { waiting, room }, attempts)
}

impl AttemptLog {
    /// Has attempts written soon; whether there was room for them.
    pub(super) fn add(&self, attempts: Vec<Attempt>) -> bool {
        if attempts.is_empty() {
            return true;
        }
        let size = |attempt: &Attempt| size_of::<Attempt>() + attempt.report.answer.capacity();
        let size = attempts.iter().map(size).sum::<usize>();
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size) else {
            return false;
        };
        self.waiting.send(Batch { attempts, room }).is_ok()
    }
}

impl Core {
    /// Logs attempts until told to stop and nothing waits. What comes soon after the first, or
    /// while some are written, is written together: nobody waits for it.
    pub(crate) async fn log_attempts(&self, mut waiting: Attempts) {
        loop {
            let first = tokio::select! {
                first = waiting.recv() => first,
                // The streams have ended by then, or end without an outcome more.
                () = self.streams_ended.cancelled() => waiting.try_recv().ok(),
            };
            let Some(mut batch) = first else {
                return;
            };
            let gathered_by = Instant::now() + GATHERING;
            while batch.attempts.len() < ATTEMPTS {
                let more = tokio::select! {
                    biased;
                    more = waiting.recv() => more,
                    () = self.streams_ended.cancelled() => waiting.try_recv().ok(),
                    () = tokio::time::sleep_until(gathered_by) => None,
                };
                let Some(more) = more else {
                    break;
                };
                batch.attempts.extend(more.attempts);
                batch.room.merge(more.room);
            }
            self.log_batch(batch).await;
        }
    }

    async fn log_batch(&self, Batch { attempts, room }: Batch) {
        let attempts = Arc::new(attempts);
        let logged = self
            .storage
            .write(move |transaction| {
                let attempts = Arc::clone(&attempts);
                Box::pin(async move {
                    storage::notifications::insert_attempts(transaction, &attempts).await
                })
            })
            .await;
        drop(room);
        if let Err(error) = logged {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "attempts were recorded but not logged"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use domain::{
        id::{NotificationId, StoreId},
        notification::Outcome,
    };

    use storage::notifications::Report;

    fn attempts(count: usize, answer: &str) -> Vec<Attempt> {
        let attempt = || Attempt {
            store_id: StoreId::new(),
            number: 1,
            recorded_at: Timestamp::UNIX_EPOCH,
            report: Report {
                id: NotificationId::new(),
                lease_token: Uuid::nil(),
                outcome: Outcome::Delivered,
                status: Some(200),
                duration: Duration::ZERO,
                answer: answer.to_owned(),
                jitter: 0,
            },
        };
        std::iter::repeat_with(attempt).take(count).collect()
    }

    #[test]
    fn what_waits_is_bounded_by_its_size_until_it_is_written() {
        let (log, mut waiting) = attempt_log();
        let answer = "x".repeat(4096);
        let add = || log.add(attempts(256, &answer));

        let taken = std::iter::repeat_with(add).take_while(|taken| *taken);
        let taken = taken.take(1000).count();

        assert!((10..=16).contains(&taken), "{taken} MiB");
        assert!(log.add(attempts(1, "")), "there is room for a little");
        let first = waiting.try_recv().unwrap();
        assert!(!add(), "it is being written");
        drop(first);
        assert!(add());
        assert!(!add());
    }
}
