//! Streams the events of all stores as they are numbered.

use std::{pin::Pin, sync::Arc};

use domain::api_client::Scope;
use storage::Storage;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{
    messages::{cursor_error, message},
    tail::{Tail, TailPoller},
};

use crate::{error::Error, grpc::caller::Caller};

/// The most events in one message.
const BATCH: usize = 100;

type Responses = mpsc::Sender<Result<proto::WatchEventsResponse, Status>>;

/// Fails unless the caller may see the events of all stores.
pub(super) fn authorize(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

/// Streams events. All streams read new events from one tail.
pub(in crate::grpc) struct EventFeed {
    storage: Arc<Storage>,
    tail: watch::Sender<Tail>,
    /// Signalled when a stream opens.
    opened: watch::Sender<()>,
    /// Ends the streams.
    shutdown: CancellationToken,
}

impl EventFeed {
    pub(in crate::grpc) fn new(storage: Arc<Storage>, shutdown: CancellationToken) -> Self {
        Self {
            storage,
            tail: watch::Sender::new(Tail::unread()),
            opened: watch::Sender::new(()),
            shutdown,
        }
    }

    /// Reads new events for all streams until shutdown. `events_sequenced` is signalled when this
    /// core has numbered events.
    pub(in crate::grpc) async fn poll(self: Arc<Self>, events_sequenced: watch::Receiver<()>) {
        let poller = TailPoller {
            storage: &self.storage,
            tail: &self.tail,
            events_sequenced,
            opened: self.opened.subscribe(),
        };
        poller.run(&self.shutdown).await;
    }

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
        let mut tail = self.tail.subscribe();
        self.opened.send_replace(());
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
            let recent: Option<Vec<_>> = tail
                .borrow_and_update()
                .events_after(after)
                .map(|events| events.take(BATCH).map(message).collect());
            let events = match recent {
                Some(events) => events,
                None => self.read_log(after).await?,
            };
            if let Some(last) = events.last() {
                after = last.position;
                permit.send(Ok(proto::WatchEventsResponse { events }));
                continue;
            }
            drop(permit);
            tokio::select! {
                _ = tail.changed() => {}
                () = responses.closed() => return Ok(()),
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Reads events that are no longer in the tail.
    async fn read_log(&self, after: i64) -> Result<Vec<proto::Event>, Error> {
        let (reader, limit) = (self.storage.reader(), BATCH.try_into().unwrap_or(u64::MAX));
        let events = storage::events::list_of_all_stores(reader, after, limit).await?;
        // Read after the events, so that a slow reader notices when some were removed before it
        // read them.
        let bounds = storage::events::bounds_of_all_stores(reader).await?;
        bounds
            .check_cursor(after)
            .map_err(|error| cursor_error(error, "after_position"))?;
        Ok(events.iter().map(message).collect())
    }
}
