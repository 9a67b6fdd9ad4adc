//! Reads a request's body whole, within its limits of size and time. It is read whether it is
//! wanted or not: a client that sends before it listens would otherwise find its connection
//! reset, and no answer.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

/// How much of a body that is too large is still read, as a multiple of the limit.
const PATIENCE: usize = 8;

/// What bodies may take.
pub(crate) struct Limits {
    /// Of one, in bytes.
    pub(crate) size: usize,
    /// Of one.
    pub(crate) time: Duration,
    /// Of all at once: a permit a KiB.
    pub(crate) memory: Arc<Semaphore>,
}

/// Reads a body, and holds the memory it takes for as long as the permit lives.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    limits: &Limits,
) -> (Result<Bytes, Error>, Option<OwnedSemaphorePermit>) {
    let limit = limits.size;
    let announced = body.size_hint();
    // A client that waits for `100 Continue` is told before it sends anything, and one that
    // announces more than would be read is told at once.
    let unwelcome = headers.contains_key(EXPECT) && exceeds(announced.lower(), limit);
    if unwelcome || exceeds(announced.lower(), limit.saturating_mul(PATIENCE)) {
        return (Err(Error::TooLarge { limit }), None);
    }
    let most = announced
        .upper()
        .and_then(|upper| usize::try_from(upper).ok())
        .map_or(limit, |upper| upper.min(limit));
    let kib = u32::try_from(most.div_ceil(1024)).unwrap_or(u32::MAX);
    let Ok(memory) = Arc::clone(&limits.memory).try_acquire_many_owned(kib) else {
        discard(body, limits).await;
        return (Err(Error::overloaded()), None);
    };
    let collected = tokio::time::timeout(limits.time, collect(body, limit))
        .await
        .unwrap_or(Err(Error::RequestTimeout));
    (collected, Some(memory))
}

/// Reads a body that nobody wants, and keeps nothing of it.
pub(crate) async fn discard(mut body: Incoming, limits: &Limits) {
    let most = limits.size.saturating_mul(PATIENCE);
    if exceeds(body.size_hint().lower(), most) {
        return;
    }
    let drained = async {
        let mut size = 0_usize;
        while let Some(Ok(frame)) = body.frame().await {
            size = size.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if size > most {
                break;
            }
        }
    };
    // However it ends, the answer is the same.
    let _ = tokio::time::timeout(limits.time, drained).await;
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Error> {
    let mut collected = BytesMut::new();
    let mut size = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is_incomplete_message() || error.is_timeout() || error.is_closed() {
                // The client is hardly there any more to be told.
                Error::RequestTimeout
            } else {
                Error::malformed_body()
            }
        })?;
        let Ok(chunk) = frame.into_data() else {
            continue;
        };
        size = size.saturating_add(chunk.len());
        if size <= limit {
            collected.extend_from_slice(&chunk);
        } else if size > limit.saturating_mul(PATIENCE) {
            break;
        }
    }
    if size > limit {
        return Err(Error::TooLarge { limit });
    }
    Ok(collected.freeze())
}

fn exceeds(announced: u64, limit: usize) -> bool {
    usize::try_from(announced).map_or(true, |announced| announced > limit)
}
