//! Reads request bodies in full, within limits of size, time and memory.
//!
//! A body is read even if it is not needed: otherwise the connection of a client that is still
//! sending would be reset, and the client would get no response.

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
    /// Of receiving one body.
    pub(crate) timeout: Duration,
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
    let size_hint = body.size_hint();
    // Rejected without reading: a body that the client holds back until `100 Continue`, and a body
    // too large to be discarded.
    let is_held_back = headers.contains_key(EXPECT) && exceeds(size_hint.lower(), limit);
    if is_held_back || exceeds(size_hint.lower(), limit.saturating_mul(DISCARD_FACTOR)) {
        return (Err(Error::TooLarge { limit }), None);
    }
    let max = size_hint
        .upper()
        .and_then(|upper| usize::try_from(upper).ok())
        .map_or(limit, |upper| upper.min(limit));
    let kib = u32::try_from(max.div_ceil(1024)).unwrap_or(u32::MAX);
    let Ok(memory) = Arc::clone(&limits.memory).try_acquire_many_owned(kib) else {
        discard(body, limits).await;
        return (Err(Error::overloaded()), None);
    };
    let collected = tokio::time::timeout(limits.timeout, collect(body, limit))
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
    let _ = tokio::time::timeout(limits.timeout, discarded).await;
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

fn exceeds(size: u64, limit: usize) -> bool {
    usize::try_from(size).map_or(true, |size| size > limit)
}
