//! Streams the events of all stores as they are numbered.

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::{api_client::Scope, event_log::LogBounds};
use storage::Storage;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::messages::{cursor_error, message};

use crate::{error::Error, grpc::caller::Caller};

/// The most events in one message.
const BATCH: u64 = 100;

/// How often the log is polled for events that other cores have numbered: they send no signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

type Responses = mpsc::Sender<Result<proto::WatchEventsResponse, Status>>;

/// Fails unless the caller may see the events of all stores.
pub(super) fn authorize(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

/// Streams events. One poller tells all streams when there are new ones.
pub(in crate::grpc) struct EventFeed {
    storage: Arc<Storage>,
    /// The newest position that is known.
    newest: watch::Sender<i64>,
    /// Signalled when a stream opens.
    opened: Notify,
    /// Ends the streams.
    shutdown: CancellationToken,
}

impl EventFeed {
    pub(in crate::grpc) fn new(storage: Arc<Storage>, shutdown: CancellationToken) -> Self {
        Self {
            storage,
            newest: watch::Sender::new(0),
            opened: Notify::new(),
            shutdown,
        }
    }

    /// Looks for new events while there are streams, until shutdown. `events_sequenced` is signalled
    /// when this core has numbered events.
    pub(in crate::grpc) async fn poll(self: Arc<Self>, mut events_sequenced: watch::Receiver<()>) {
        loop {
            let has_streams = self.newest.receiver_count() > 0;
            if has_streams && let Err(error) = self.read_bounds().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot look for new events for the streams"
                );
            }
            tokio::select! {
                _ = events_sequenced.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if has_streams => {}
                () = self.opened.notified() => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Reads the bounds of the log and tells the streams about new events.
    async fn read_bounds(&self) -> Result<LogBounds, Error> {
        let bounds = storage::events::bounds_of_all_stores(self.storage.reader()).await?;
        self.newest.send_if_modified(|newest| {
            let is_any_new = bounds.last > *newest;
            *newest = bounds.last.max(*newest);
            is_any_new
        });
        Ok(bounds)
    }

    /// Checks the position to start after; the newest by default.
    pub(super) async fn start(&self, after: Option<i64>) -> Result<i64, Error> {
        let bounds = self.read_bounds().await?;
        let after = after.unwrap_or(bounds.last);
        bounds
            .check_cursor(after)
            .map_err(|error| cursor_error(error, "after_position"))?;
        Ok(after)
    }

    /// Sends the events after a position until the caller disconnects, its token expires, it is no
    /// longer permitted, or core shuts down.
    pub(super) async fn serve(
        &self,
        mut revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
        mut after: i64,
        responses: &Responses,
    ) -> Result<(), Error> {
        let mut newest = self.newest.subscribe();
        self.opened.notify_one();
        loop {
            let next = async {
                // Before the query: a caller that does not read causes no queries.
                let permit = responses.reserve().await.ok()?;
                newest.wait_for(|newest| *newest > after).await.ok()?;
                Some(permit)
            };
            let permit = tokio::select! {
                permit = next => permit,
                () = responses.closed() => None,
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => None,
            };
            let Some(permit) = permit else {
                return Ok(());
            };
            let events = self.read_log(after).await?;
            if let Some(last) = events.last() {
                after = last.position;
                permit.send(Ok(proto::WatchEventsResponse { events }));
            }
        }
    }

    async fn read_log(&self, after: i64) -> Result<Vec<proto::Event>, Error> {
        let events =
            storage::events::list_of_all_stores(self.storage.reader(), after, BATCH).await?;
        // Read after the events, so that a slow reader notices when some were removed before it
        // read them.
        self.read_bounds()
            .await?
            .check_cursor(after)
            .map_err(|error| cursor_error(error, "after_position"))?;
        Ok(events.iter().map(message).collect())
    }
}
