//! Events: lists and watches the event log.

mod watch;

use std::{pin::Pin, sync::Arc};

use domain::{
    api_client::Scope,
    event::{CursorError, Event, Object},
    id::EventId,
    store::Store,
};
use futures_util::Stream;
use proto::iri::Collection;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

pub(crate) use self::watch::EventLog;
use super::{Reply, Services, feed::cursor_error, stream_until_end};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, pages},
};

/// The reason of the error for a cursor after which events were removed.
const EXPIRED: &str = "EVENTS_EXPIRED";

type ResponseStream =
    Pin<Box<dyn Stream<Item = Result<proto::WatchEventsResponse, Status>> + Send + 'static>>;

#[tonic::async_trait]
impl proto::events_server::Events for Services {
    type WatchEventsStream = ResponseStream;

    async fn list_events(
        &self,
        request: Request<proto::ListEventsRequest>,
    ) -> Reply<proto::ListEventsResponse> {
        let (caller, request) = Caller::of(request)?;
        Ok(Response::new(self.event_page(&caller, request).await?))
    }

    async fn get_event(&self, request: Request<proto::GetEventRequest>) -> Reply<proto::Event> {
        let (caller, request) = Caller::of(request)?;
        let store = caller.store()?;
        let find = |id| storage::events::find(self.storage.reader(), store.id, EventId(id));
        let event = messages::find_resource(Collection::Events, &request.name, find).await?;
        Ok(Response::new(message_for_store(&event, store)))
    }

    async fn watch_events(
        &self,
        request: Request<proto::WatchEventsRequest>,
    ) -> Reply<Self::WatchEventsStream> {
        let (caller, claims) = self
            .authenticator
            .authenticate_stream(request.metadata())
            .await?;
        watch::authorize(&caller)?;
        let open_stream = self.open_watch(&caller)?;
        let after = request.into_inner().after_position;
        let subscription = self.event_feed.subscribe(after).await?;

        let (responses, stream) = mpsc::channel(4);
        let (authenticator, feed) = (
            Arc::clone(&self.authenticator),
            Arc::clone(&self.event_feed),
        );
        let serving = self.task_tracker.spawn(async move {
            let _open_stream = open_stream;
            let revoked = std::pin::pin!(authenticator.revoked(&claims, watch::authorize));
            let respond = |events: &[_], position| Some(watch::respond(events, position));
            feed.serve(revoked, subscription, &responses, respond).await
        });
        Ok(Response::new(Box::pin(stream_until_end(stream, serving))))
    }
}

impl Services {
    async fn event_page(
        &self,
        caller: &Caller,
        request: proto::ListEventsRequest,
    ) -> Result<proto::ListEventsResponse, Error> {
        let store = if request.store.is_empty() {
            caller.store()?.clone()
        } else {
            caller.require(Scope::Admin)?;
            messages::find_store(&self.storage, &request.store).await?
        };

        let mut violations = messages::read_violations(request.violations);
        let size = pages::read_size(request.page_size, &mut violations);
        if request.after.is_some_and(|after| after < 0) {
            violations.add(
                "after",
                "OUT_OF_RANGE",
                "must be 0 or the number of an event",
            );
        }
        Error::check(violations)?;

        let reader = self.storage.reader();
        let mut bounds = storage::events::bounds(reader, store.id).await?;
        let (after, page) = loop {
            let after = request.after.unwrap_or(bounds.retained_after);
            let page = storage::events::list(reader, store.id, after, size.into()).await?;
            // Read after the page, so that removals before it was read are known.
            bounds = storage::events::bounds(reader, store.id).await?;
            match (bounds.check_cursor(after), request.after) {
                (Ok(()), _) => break (after, page),
                // The oldest event was removed: start from the oldest that is left.
                (Err(CursorError::Expired { .. }), None) => {}
                (Err(error), _) => return Err(cursor_error::<EventLog>(error, "after")),
            }
        };

        let is_full = page.len() >= usize::try_from(size).unwrap_or(usize::MAX);
        let last_of_page = page.last().map(|event| event.number);
        Ok(proto::ListEventsResponse {
            events: page
                .iter()
                .map(|event| message_for_store(event, &store))
                .collect(),
            first_number: bounds.first(),
            last_number: last_number(is_full, last_of_page, after, bounds.last),
            after,
        })
    }
}

/// The number of the newest event. A page that is not full reached the end of the log when it was
/// read. Events numbered since then do not count as the newest: the next call returns them.
fn last_number(is_full: bool, last_of_page: Option<i64>, after: i64, newest: i64) -> i64 {
    if is_full {
        newest
    } else {
        last_of_page.unwrap_or(after)
    }
}

/// The message of an event, with its position among the events of all stores.
fn message(event: &Event) -> proto::Event {
    proto::Event {
        name: Collection::Events.name(event.id.0),
        store: Collection::Stores.name(event.store_id.0),
        number: event.number,
        position: event.position,
        event: event.name.clone(),
        object: match event.object {
            Object::Delivery(id) => Collection::Deliveries.name(id),
            Object::Webhook(id) => Collection::Webhooks.name(id),
        },
        create_time: Some(messages::timestamp(event.created_at)),
        time_zone: String::new(),
    }
}

/// The message of an event as its store sees it: without its position, which would reveal how many
/// events other stores have.
fn message_for_store(event: &Event, store: &Store) -> proto::Event {
    proto::Event {
        position: 0,
        time_zone: store.time_zone_name().to_owned(),
        ..message(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_numbered_after_the_page_was_read_is_not_the_last() {
        assert_eq!(last_number(false, Some(7), 5, 8), 7);
        assert_eq!(last_number(false, None, 7, 8), 7);
        assert_eq!(last_number(true, Some(7), 5, 8), 8);
    }
}
