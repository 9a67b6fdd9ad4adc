//! Streams the events of all stores as they are numbered.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    event::{Event, LogBounds},
};
use storage::{Storage, events};

use super::message;
use crate::{auth::caller::Caller, error::Error, services::feed::Log};

/// Fails unless the caller may see the events of all stores.
pub(super) fn authorize(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

pub(crate) struct EventLog(pub(crate) Arc<Storage>);

impl Log for EventLog {
    type Entry = Event;

    const BATCH: usize = 100;
    const CAPACITY: usize = 64;
    const ENTRY: &'static str = "event";
    const EXPIRED: &'static str = super::EXPIRED;

    fn position(event: &Event) -> i64 {
        event.position
    }

    async fn bounds(&self) -> Result<LogBounds, Error> {
        Ok(events::bounds_of_all_stores(self.0.reader()).await?)
    }

    async fn read(&self, after: i64) -> Result<Vec<Event>, Error> {
        let limit = Self::BATCH as u64;
        Ok(events::list_of_all_stores(self.0.reader(), after, limit).await?)
    }
}

pub(super) fn respond(events: &[Event], position: i64) -> proto::WatchEventsResponse {
    let events = events.iter().map(message).collect();
    proto::WatchEventsResponse { events, position }
}
