//! What happens in all stores, as it is numbered.

use std::time::Duration;

use domain::api_client::Scope;
use tokio::sync::mpsc;
use tonic::{Status, metadata::MetadataMap};

use super::{message, refused};

use crate::{
    error::Error,
    grpc::{Core, caller::Caller},
};

/// How many events go in one message.
const BATCH: u64 = 100;

/// How often the log is looked at without being told of anything, as when another core numbers.
const POLL: Duration = Duration::from_millis(250);

type Responses = mpsc::Sender<Result<proto::WatchEventsResponse, Status>>;

/// Fails unless the caller may see the events of all stores.
pub(super) fn permit(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

impl Core {
    /// The position after which to begin.
    pub(super) async fn watch_from(&self, after: Option<i64>) -> Result<i64, Error> {
        let extent = storage::events::extent_of_all_stores(self.storage.reader()).await?;
        let after = after.unwrap_or(extent.last);
        extent
            .check(after)
            .map_err(|error| refused(error, "after_position"))?;
        Ok(after)
    }
}

/// Sends what follows a position until the caller goes away or may see it no more, or core shuts
/// down.
pub(super) async fn serve(
    core: &Core,
    token: &MetadataMap,
    mut after: i64,
    responses: &Responses,
) -> Result<(), Error> {
    let mut numbered = core.numbered.subscribe();
    let mut revoked = std::pin::pin!(core.revoked(token, permit));
    loop {
        // Room first: who reads nothing makes nobody read for them.
        let room = tokio::select! {
            room = responses.reserve() => room,
            error = &mut revoked => return Err(error),
            () = core.shutdown.cancelled() => return Ok(()),
        };
        let Ok(room) = room else {
            return Ok(());
        };
        let reader = core.storage.reader();
        let events = storage::events::list_of_all_stores(reader, after, BATCH).await?;
        // After the events, as in a page: a reader that is slower than they are removed must not
        // take what is left for all there was.
        let extent = storage::events::extent_of_all_stores(reader).await?;
        extent
            .check(after)
            .map_err(|error| refused(error, "after_position"))?;

        if let Some(last) = events.last() {
            after = last.position;
            room.send(Ok(proto::WatchEventsResponse {
                events: events.iter().map(message).collect(),
            }));
            continue;
        }
        drop(room);
        tokio::select! {
            _ = numbered.changed() => {}
            () = tokio::time::sleep(POLL) => {}
            () = responses.closed() => return Ok(()),
            error = &mut revoked => return Err(error),
            () = core.shutdown.cancelled() => return Ok(()),
        }
    }
}
