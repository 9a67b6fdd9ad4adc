//! The concurrency limit of requests. Excess requests wait in turn, and not long: a client that is
//! rejected at once comes back at once, and under overload the rejections would take all of the
//! processor's time.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{config::Config, error::Error};

pub(crate) struct Turns {
    /// One permit per running handler.
    running: Semaphore,
    /// One permit per request that waits: as many as connections. Each may have more with HTTP/2.
    waiting: Semaphore,
    max_wait: Duration,
}

impl Turns {
    pub(crate) fn new(config: &Config) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self {
            running: semaphore(config.max_requests),
            waiting: semaphore(config.max_connections),
            max_wait: config.max_wait,
        }
    }

    /// Waits until one more request may run. Fails when too many wait, or after the longest wait.
    pub(crate) async fn wait(&self) -> Result<SemaphorePermit<'_>, Error> {
        if let Ok(turn) = self.running.try_acquire() {
            return Ok(turn);
        }
        let place = self.waiting.try_acquire();
        let _place = place.map_err(|_| Error::overloaded())?;
        let turn = tokio::time::timeout(self.max_wait, self.running.acquire());
        match turn.await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Error::overloaded()),
        }
    }
}
