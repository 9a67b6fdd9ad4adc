//! Shares a geocoding service among stores: the requests of one store wait for each other and do
//! not delay those of others.

use std::{sync::Arc, time::Duration};

use domain::id::StoreId;
use moka::sync::Cache;
use tokio::sync::{Mutex, Semaphore};

/// How long the queue of a store without requests is kept.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The queues of stores.
#[derive(Debug)]
pub(super) struct Queues {
    /// `None`: requests for no store.
    queues: Cache<Option<StoreId>, Arc<Queue>>,
    requests_per_store: usize,
}

/// The requests of one store.
#[derive(Debug)]
pub(super) struct Queue {
    /// Permits for requests in flight: half of the service's limit, so that the other half is left
    /// for other stores.
    pub(super) permits: Semaphore,
    /// Locked by the one request of the store that waits for the service's rate limit.
    pub(super) rate_limit: Mutex<()>,
}

impl Queues {
    /// For a service with this limit of concurrent requests.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            queues: Cache::builder().time_to_idle(IDLE_TIMEOUT).build(),
            requests_per_store: concurrency.div_ceil(2),
        }
    }

    /// The queue of a store.
    pub(super) fn of(&self, store_id: Option<StoreId>) -> Arc<Queue> {
        self.queues.get_with(store_id, || {
            Arc::new(Queue {
                permits: Semaphore::new(self.requests_per_store),
                rate_limit: Mutex::new(()),
            })
        })
    }
}
