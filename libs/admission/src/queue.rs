//! A concurrency limit with a queue. Excess requests wait in order, and not long: a client that is
//! rejected at once comes back at once, and under overload the rejections would take all of the
//! processor's time.

use std::time::Duration;

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

pub struct Queue {
    /// One permit per running request.
    running: Semaphore,
    /// One permit per request that waits.
    waiting: Semaphore,
    max_wait: Duration,
}

impl Queue {
    pub fn new(running: usize, waiting: usize, max_wait: Duration) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self {
            running: semaphore(running),
            waiting: semaphore(waiting),
            max_wait,
        }
    }

    /// Waits until one more request may run; `None` if too many wait, or after the longest wait.
    pub async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(permit) = self.running.try_acquire() {
            return Some(permit);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        let permit = timeout(self.max_wait, self.running.acquire()).await;
        permit.ok()?.ok()
    }
}
