//! Limits the calls or streams of an API client at a core, so that no client uses up the core's
//! capacity, database connections and memory.

use std::{collections::HashMap, sync::Arc};

use domain::id::ApiClientId;
use parking_lot::Mutex;

/// Counts calls or streams by client.
#[derive(Clone, Debug)]
pub(crate) struct ClientLimit {
    max: usize,
    counts: Arc<Mutex<HashMap<ApiClientId, usize>>>,
}

/// A counted call or stream; dropped when it ends.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    limit: ClientLimit,
    client_id: ApiClientId,
}

impl ClientLimit {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            counts: Arc::default(),
        }
    }

    /// Counts one more; `None` if the client has as many open as it may.
    pub(crate) fn take(&self, client_id: ApiClientId) -> Option<ClientPermit> {
        let mut counts = self.counts.lock();
        let count = counts.entry(client_id).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(ClientPermit {
            limit: self.clone(),
            client_id,
        })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.counts.lock();
        if let Some(count) = counts.get_mut(&self.client_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_as_many_calls_open_as_the_limit() {
        let limit = ClientLimit::new(2);
        let client = ApiClientId::new();
        let mut open = vec![limit.take(client).unwrap(), limit.take(client).unwrap()];
        assert!(limit.take(client).is_none());
        assert!(limit.take(ApiClientId::new()).is_some(), "another client");

        for _ in 0..2 {
            open.pop();
            open.push(limit.take(client).unwrap());
            assert!(limit.take(client).is_none());
        }

        open.clear();
        assert!(limit.counts.lock().is_empty(), "a client is forgotten");
    }
}
