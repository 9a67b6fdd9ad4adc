//! Streams the events of all stores as they are numbered.

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::api_client::Scope;
use storage::Storage;
use tokio::sync::{mpsc, watch};
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

/// Streams events.
pub(in crate::grpc) struct EventFeed {
    pub(in crate::grpc) storage: Arc<Storage>,
    /// Signalled when this core has numbered events.
    pub(in crate::grpc) events_sequenced: watch::Sender<()>,
    /// Ends the streams.
    pub(in crate::grpc) shutdown: CancellationToken,
}

impl EventFeed {
    /// Checks the position to start after; the newest by default.
    pub(super) async fn start(&self, after: Option<i64>) -> Result<i64, Error> {
        let bounds = storage::events::bounds_of_all_stores(self.storage.reader()).await?;
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
        let mut events_sequenced = self.events_sequenced.subscribe();
        loop {
            // Before the query: a caller that does not read causes no queries.
            let permit = tokio::select! {
                permit = responses.reserve() => permit,
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => return Ok(()),
            };
            let Ok(permit) = permit else {
                return Ok(());
            };
            let reader = self.storage.reader();
            let events = storage::events::list_of_all_stores(reader, after, BATCH).await?;
            // Read after the events, so that a slow reader notices when some were removed before it
            // read them.
            let bounds = storage::events::bounds_of_all_stores(reader).await?;
            bounds
                .check_cursor(after)
                .map_err(|error| cursor_error(error, "after_position"))?;

            if let Some(last) = events.last() {
                after = last.position;
                permit.send(Ok(proto::WatchEventsResponse {
                    events: events.iter().map(message).collect(),
                }));
                continue;
            }
            drop(permit);
            tokio::select! {
                _ = events_sequenced.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = responses.closed() => return Ok(()),
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => return Ok(()),
            }
        }
    }
}
