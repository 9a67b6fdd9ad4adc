//! Limits the streams that a client has open, so that no client takes all of a core's database
//! connections and memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use domain::id::ApiClientId;

use crate::error::Error;

/// The streams of a client at one core.
const MAX_STREAMS: usize = 32;

/// Counts open streams by client.
#[derive(Clone, Debug, Default)]
pub(in crate::grpc) struct StreamLimit(Arc<Mutex<HashMap<ApiClientId, usize>>>);

/// A counted stream; dropped when it ends.
#[derive(Debug)]
pub(super) struct OpenStream {
    limit: StreamLimit,
    client_id: ApiClientId,
}

impl StreamLimit {
    /// Counts a stream. Fails if the client has as many open as it may.
    pub(super) fn open(&self, client_id: ApiClientId) -> Result<OpenStream, Error> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client_id).or_default();
        if *count >= MAX_STREAMS {
            return Err(Error::Quota {
                reason: "TOO_MANY_STREAMS",
                message: format!(
                    "this client has {MAX_STREAMS} event streams open at this core: close one first"
                ),
            });
        }
        *count += 1;
        Ok(OpenStream {
            limit: self.clone(),
            client_id,
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.limit.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.client_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client_id);
            }
        }
    }
}
