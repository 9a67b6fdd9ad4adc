//! Events: the log as shops read it and the platform's own programs follow it, and the loops that
//! number and trim it.

mod listing;
mod retention;
mod sequencer;
mod watching;

use std::{pin::Pin, sync::Arc};

use domain::{
    event::{Event, Object},
    event_log::CursorError,
    violation::Violations,
};
use futures_util::Stream;
use proto::iri::Collection;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Core, messages};

use crate::error::Error;

/// So that the stream type can be named without its generics.
type ResponseStream =
    Pin<Box<dyn Stream<Item = Result<proto::WatchEventsResponse, Status>> + Send + 'static>>;

/// [`Core`] behind the `Arc` that its streams' loops share.
pub(crate) struct Events(pub(crate) Arc<Core>);

#[tonic::async_trait]
impl proto::events_server::Events for Events {
    type WatchEventsStream = ResponseStream;

    async fn list_events(
        &self,
        request: Request<proto::ListEventsRequest>,
    ) -> Result<Response<proto::ListEventsResponse>, Status> {
        let caller = self.0.authenticate(request.metadata()).await?;
        let page = self.0.list_events(&caller, request.into_inner()).await?;
        Ok(Response::new(page))
    }

    async fn get_event(
        &self,
        request: Request<proto::GetEventRequest>,
    ) -> Result<Response<proto::Event>, Status> {
        let caller = self.0.authenticate(request.metadata()).await?;
        let event = self.0.get_event(&caller, request.into_inner().name).await?;
        Ok(Response::new(event))
    }

    async fn watch_events(
        &self,
        request: Request<proto::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let core = Arc::clone(&self.0);
        let token = request.metadata().clone();
        let caller = core.authenticate(&token).await?;
        watching::permit(&caller)?;

        let after = core.watch_from(request.into_inner().after_position).await?;

        let (responses, stream) = mpsc::channel(4);
        self.0.loops.spawn(async move {
            if let Err(error) = watching::serve(&core, &token, after, &responses).await {
                // Who has gone away hears nothing.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// An event as a message, its position only to those who may see other stores'.
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

/// Why a log can't be read from a place, which was given in a field.
fn refused(error: CursorError, field: &str) -> Error {
    match error {
        CursorError::Expired { .. } => Error::Expired {
            reason: "EVENTS_EXPIRED",
            message: error.to_string(),
        },
        CursorError::Beyond { .. } => {
            let mut violations = Violations::new();
            violations.add(field, "OUT_OF_RANGE", error.to_string());
            Error::Invalid(violations)
        }
    }
}
