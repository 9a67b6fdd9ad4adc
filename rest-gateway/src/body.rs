//! Reads request bodies in full, within limits of size, time and memory.
//!
//! A body is read even if it is not needed: a client that sends before it reads would otherwise
//! have its connection reset, and get no response.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::BoxError;

use crate::error::Error;

/// The body of every response.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// How much of a body that is too large is read and discarded, as a multiple of the limit.
const DISCARD_FACTOR: usize = 8;

/// Limits of request bodies.
pub(crate) struct Limits {
    /// Of one body, in bytes.
    pub(crate) size: usize,
    /// Of one body.
    pub(crate) time: Duration,
    /// Of all bodies together: one permit per KiB.
    pub(crate) memory: Arc<Semaphore>,
}

/// Reads a body. The permit reserves the memory it takes.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    limits: &Limits,
) -> (Result<Bytes, Error>, Option<OwnedSemaphorePermit>) {
    let limit = limits.size;
    let announced = body.size_hint();
    // A client that waits for `100 Continue` gets the error before it sends the body; a client
    // that announces more than would be discarded gets it immediately.
    let rejected_early = headers.contains_key(EXPECT) && exceeds(announced.lower(), limit);
    if rejected_early || exceeds(announced.lower(), limit.saturating_mul(DISCARD_FACTOR)) {
        return (Err(Error::TooLarge { limit }), None);
    }
    let max = announced
        .upper()
        .and_then(|upper| usize::try_from(upper).ok())
        .map_or(limit, |upper| upper.min(limit));
    let kib = u32::try_from(max.div_ceil(1024)).unwrap_or(u32::MAX);
    let Ok(memory) = Arc::clone(&limits.memory).try_acquire_many_owned(kib) else {
        discard(body, limits).await;
        return (Err(Error::overloaded()), None);
    };
    let collected = tokio::time::timeout(limits.time, collect(body, limit))
        .await
        .unwrap_or(Err(Error::RequestTimeout));
    (collected, Some(memory))
}

/// Reads a body that is not needed, without storing it.
pub(crate) async fn discard(mut body: Incoming, limits: &Limits) {
    let max = limits.size.saturating_mul(DISCARD_FACTOR);
    if exceeds(body.size_hint().lower(), max) {
        return;
    }
    let discarded = async {
        let mut size = 0_usize;
        while let Some(Ok(frame)) = body.frame().await {
            size = size.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if size > max {
                break;
            }
        }
    };
    // A timeout does not change the response.
    let _ = tokio::time::timeout(limits.time, discarded).await;
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Error> {
    let mut collected = BytesMut::new();
    let mut size = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is_incomplete_message() || error.is_timeout() || error.is_closed() {
                // The client has most likely disconnected.
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
        } else if size > limit.saturating_mul(DISCARD_FACTOR) {
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
