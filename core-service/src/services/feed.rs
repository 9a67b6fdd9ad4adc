//! Follows a log for any number of streams: one poller reads what is new for all streams of a core.

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::event::{CursorError, LogBounds};
use futures_util::FutureExt as _;
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::error::Error;

/// How often the log is polled for what other cores have added: they send no signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long a stream without news takes to tell that it still follows the log. Shorter than the
/// time after which proxies and NAT forget idle connections.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// A log whose entries have positions 1, 2, 3 and so on, without gaps, and are removed oldest first.
pub(crate) trait Log: Send + Sync + 'static {
    type Entry: Send + Sync;

    /// The most entries that one read returns, and that one message has.
    const BATCH: usize;
    /// How many batches are kept: a stream that falls further behind reads the log itself.
    const CAPACITY: usize;
    /// What an entry is called in errors.
    const ENTRY: &'static str;
    /// The reason of the error for a position whose next entries were removed.
    const EXPIRED: &'static str;

    fn position(entry: &Self::Entry) -> i64;

    fn bounds(&self) -> impl Future<Output = Result<LogBounds, Error>> + Send;

    /// The entries after a position, in order.
    fn read(&self, after: i64) -> impl Future<Output = Result<Vec<Self::Entry>, Error>> + Send;
}

pub(crate) struct Feed<L: Log> {
    log: L,
    /// New entries in batches, in order. After an empty one, the log may have entries that are in none.
    news: broadcast::Sender<Arc<[L::Entry]>>,
    /// Signalled when a stream opens.
    opened: Notify,
    shutdown: CancellationToken,
}

/// The entries after a position.
pub(super) struct Subscription<E> {
    news: broadcast::Receiver<Arc<[E]>>,
    after: i64,
    /// Whether the log has entries that are not received.
    is_behind: bool,
}

impl<L: Log> Feed<L> {
    pub(crate) fn new(log: L, shutdown: CancellationToken) -> Self {
        Self {
            log,
            news: broadcast::Sender::new(L::CAPACITY),
            opened: Notify::new(),
            shutdown,
        }
    }

    /// Reads new entries while there are streams, until shutdown. `added` is signalled when this core has added some.
    pub(crate) async fn poll(self: Arc<Self>, mut added: watch::Receiver<()>) {
        let mut last = None;
        loop {
            if self.news.receiver_count() == 0 {
                last = None;
                tokio::select! {
                    () = self.opened.notified() => {}
                    () = self.shutdown.cancelled() => return,
                }
            }
            match self.read_new(&mut last).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read what is new for the streams"
                ),
            }
            tokio::select! {
                _ = added.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Reads the entries after the position `last`, or, without one, the end of the log. Returns
    /// whether there may be more.
    async fn read_new(&self, last: &mut Option<i64>) -> Result<bool, Error> {
        let batch: Arc<[_]> = if let Some(after) = *last {
            let new = self.log.read(after).await?;
            let Some(newest) = new.last() else {
                return Ok(false);
            };
            *last = Some(L::position(newest));
            new.into()
        } else {
            *last = Some(self.log.bounds().await?.last);
            Vec::new().into()
        };
        // Fails if no stream is left.
        let _ = self.news.send(batch);
        Ok(true)
    }

    /// Subscribes to the entries after a position, the newest by default. Fails if it is invalid.
    pub(super) async fn subscribe(
        &self,
        after: Option<i64>,
    ) -> Result<Subscription<L::Entry>, Error> {
        // Before the query: what is added after it is received.
        let news = self.news.subscribe();
        self.opened.notify_one();
        let bounds = self.log.bounds().await?;
        let after = after.unwrap_or(bounds.last);
        check_cursor::<L>(bounds, after)?;
        Ok(Subscription {
            news,
            after,
            is_behind: after < bounds.last,
        })
    }

    /// Sends the position of a subscription, then its entries and a heartbeat between them, until the
    /// caller disconnects, its token expires, it is no longer permitted, or core shuts down. `respond` makes a message of
    /// entries and of the position after them; `None` if the caller needs none of them.
    pub(super) async fn serve<M>(
        &self,
        mut revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
        subscription: Subscription<L::Entry>,
        responses: &mpsc::Sender<Result<M, Status>>,
        respond: impl Fn(&[L::Entry], i64) -> Option<M>,
    ) -> Result<(), Error> {
        let Subscription {
            mut news,
            mut after,
            mut is_behind,
        } = subscription;
        let heartbeat_message = |position| respond(&[], position).map(Ok);
        if let Some(first) = heartbeat_message(after) {
            // Fails if the caller has disconnected.
            let _ = responses.send(first).await;
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        heartbeat.reset();
        loop {
            // Before the query: a caller that does not read causes no queries.
            let permit = tokio::select! {
                permit = responses.reserve() => permit,
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => return Err(Error::ShuttingDown),
            };
            let Ok(permit) = permit else {
                return Ok(());
            };
            let batch: Arc<[_]>;
            let entries = if is_behind {
                batch = self.read_log(after).await?.into();
                // What is newer than a part of a batch was received after the subscription.
                is_behind = batch.len() == L::BATCH;
                &batch[..]
            } else {
                let received = tokio::select! {
                    received = news.recv() => received,
                    _ = heartbeat.tick() => {
                        if let Some(message) = heartbeat_message(after) {
                            permit.send(message);
                        }
                        continue;
                    }
                    () = responses.closed() => return Ok(()),
                    error = &mut revoked => return Err(error),
                    () = self.shutdown.cancelled() => return Err(Error::ShuttingDown),
                };
                // Fails if the stream is too far behind.
                batch = received.unwrap_or_default();
                let entries = entries_after::<L>(after, &batch);
                is_behind = entries.is_none();
                entries.unwrap_or_default()
            };
            let Some(last) = entries.last() else { continue };
            after = L::position(last);
            let needed = respond(entries, after);
            let mut is_due = || heartbeat.tick().now_or_never().is_some();
            let message = needed
                .map(Ok)
                .or_else(|| heartbeat_message(after).filter(|_| is_due()));
            if let Some(message) = message {
                permit.send(message);
                heartbeat.reset();
            }
        }
    }

    /// Reads entries that a stream did not receive from the poller.
    async fn read_log(&self, after: i64) -> Result<Vec<L::Entry>, Error> {
        let entries = self.log.read(after).await?;
        // Read after the entries, so that a slow reader notices when some were removed before it
        // read them.
        check_cursor::<L>(self.log.bounds().await?, after)?;
        Ok(entries)
    }
}

fn check_cursor<L: Log>(bounds: LogBounds, after: i64) -> Result<(), Error> {
    const FIELD: &str = "after_position";
    if after < 0 {
        return Err(Error::invalid(
            FIELD,
            "OUT_OF_RANGE",
            "must not be negative",
        ));
    }
    let checked = bounds.check_cursor(after);
    checked.map_err(|error| cursor_error::<L>(error, FIELD))
}

/// The error for a cursor that was given in `field`.
pub(super) fn cursor_error<L: Log>(error: CursorError, field: &str) -> Error {
    let message = error.of(L::ENTRY);
    match error {
        CursorError::Expired { .. } => Error::Expired(L::EXPIRED, message),
        CursorError::Beyond { .. } => Error::invalid(field, "OUT_OF_RANGE", message),
    }
}

/// The entries of a batch after a position. `None` if others may come before: positions have no gaps.
fn entries_after<L: Log>(position: i64, batch: &[L::Entry]) -> Option<&[L::Entry]> {
    let first = L::position(batch.first()?);
    let is_next = first <= position.saturating_add(1);
    let new = batch.partition_point(|entry| L::position(entry) <= position);
    is_next.then(|| &batch[new..])
}

#[cfg(test)]
mod tests;
