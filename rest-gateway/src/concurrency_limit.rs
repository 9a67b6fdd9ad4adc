//! The concurrency limit of requests. Excess requests wait in order, and not long: a client that is
//! rejected at once comes back at once, and under overload the rejections would take all of the
//! processor's time.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{config::Config, error::Error};

pub(crate) struct ConcurrencyLimit {
    /// One permit per running handler.
    running: Semaphore,
    /// One permit per request that waits: as many as connections. Each may have more with HTTP/2.
    waiting: Semaphore,
    max_wait: Duration,
}

impl ConcurrencyLimit {
    pub(crate) fn new(config: &Config) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self {
            running: semaphore(config.max_requests),
            waiting: semaphore(config.max_connections),
            max_wait: config.max_wait,
        }
    }

    /// Waits until one more request may run. Fails when too many wait, or after the longest wait.
    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, Error> {
        if let Ok(permit) = self.running.try_acquire() {
            return Ok(permit);
        }
        let waiting = self.waiting.try_acquire();
        let _waiting = waiting.map_err(|_| Error::overloaded())?;
        let permit = tokio::time::timeout(self.max_wait, self.running.acquire());
        match permit.await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Error::overloaded()),
        }
    }
}
