//! Reads a request's body whole, within its limits of size and time. It is read whether it is
//! wanted or not: a client that sends before it listens would otherwise find its connection
//! reset, and no answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

use crate::error::Error;

/// How much of a body that is too large is still read, as a multiple of the limit.
const PATIENCE: usize = 8;

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// In bytes.
    pub(crate) size: usize,
    pub(crate) time: Duration,
}

pub(crate) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    limits: Limits,
) -> Result<Bytes, Error> {
    let announced = body.size_hint().lower();
    let limit = limits.size;
    // A client that waits for `100 Continue` is told before it sends anything, and one that
    // announces more than would be read is told at once.
    let unwelcome = headers.contains_key(EXPECT) && exceeds(announced, limit);
    if unwelcome || exceeds(announced, limit.saturating_mul(PATIENCE)) {
        return Err(Error::TooLarge { limit });
    }
    tokio::time::timeout(limits.time, collect(body, limit))
        .await
        .unwrap_or(Err(Error::RequestTimeout))
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Error> {
    let mut collected = BytesMut::new();
    let mut size = 0_usize;
    while let Some(frame) = body.frame().await {
        // Whatever broke off, the client is hardly there any more to be told.
        let frame = frame.map_err(|_| Error::RequestTimeout)?;
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
