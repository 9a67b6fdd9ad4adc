//! Writes to `PostgreSQL`: several run at the same time, each on a task of its own, and again after a
//! serialization failure.

use std::time::Duration;

use futures_util::FutureExt as _;
use process::traces::Origin;

use super::{Error, WriteError, connections::Connections, error, session::Work};

/// The timeout of a write, over either database: longer than any takes while the database responds, and less than the
/// gateway's 30 s, so that the caller receives the error.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs work in a transaction.
pub(super) async fn write<T, E>(
    connections: Connections,
    work: impl Work<Result<T, E>>,
) -> Result<T, E>
where
    T: Send + 'static,
    E: WriteError,
{
    let write = async move { with_retries(|| write_once(&connections, work.clone())).await };
    spawned(write).await
}

/// Runs a write on a task of its own, so that a cancelled caller does not interrupt it.
pub(super) fn spawned<T, E>(
    write: impl Future<Output = Result<T, E>> + Send + 'static,
) -> impl Future<Output = Result<T, E>> + Send
where
    T: Send + 'static,
    E: WriteError,
{
    // Not in an async function: its future, and those of its callers, would have room for the write.
    let task = tokio::spawn(Origin::current().run(write));
    task.map(|ended| ended.unwrap_or_else(|error| Err(Error::Panicked(error.to_string()).into())))
}

/// Repeats a write after serialization failures, until the timeout.
pub(super) async fn with_retries<T, E, W>(write: impl Fn() -> W) -> Result<T, E>
where
    W: Future<Output = Result<T, E>>,
    E: WriteError,
{
    let conflicts = |error: &E| matches!(error.as_storage(), Some(Error::SerializationFailure(_)));
    let result = error::with_retries(WRITE_TIMEOUT, write, conflicts).await;
    result.unwrap_or_else(|| Err(Error::Timeout.into()))
}

async fn write_once<T, E>(connections: &Connections, work: impl Work<Result<T, E>>) -> Result<T, E>
where
    E: WriteError,
{
    let (session, checkout) = connections.begin().await.map_err(Error::from)?;
    let result = work(session.clone()).await;
    let ended = checkout.end(session, result.is_ok()).await;
    ended.map_err(Error::from)?;
    result
}
