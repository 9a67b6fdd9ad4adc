//! Events: lists and watches the event log.

mod list;
mod messages;
mod watch;

use std::{pin::Pin, sync::Arc};

use admission::Concurrency;
use domain::id::ApiClientId;
use futures_util::Stream;
use storage::Storage;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};

pub(crate) use self::watch::EventFeed;
use crate::{
    auth::{authenticator::Authenticator, caller::Caller},
    error::Error,
};

/// Limit of the event streams of a client at one core.
const MAX_STREAMS: usize = 32;

type ResponseStream =
    Pin<Box<dyn Stream<Item = Result<proto::WatchEventsResponse, Status>> + Send + 'static>>;

pub(crate) struct Events {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) feed: Arc<EventFeed>,
    /// Up to [`MAX_STREAMS`] of each client.
    pub(crate) streams: Arc<Concurrency<ApiClientId>>,
    /// Tracks the streams, so that shutdown waits for them.
    pub(crate) task_tracker: TaskTracker,
}

#[tonic::async_trait]
impl proto::events_server::Events for Events {
    type WatchEventsStream = ResponseStream;

    async fn list_events(
        &self,
        request: Request<proto::ListEventsRequest>,
    ) -> Result<Response<proto::ListEventsResponse>, Status> {
        let (caller, request) = Caller::of(request)?;
        let page = list::list(&self.storage, &caller, request).await?;
        Ok(Response::new(page))
    }

    async fn get_event(
        &self,
        request: Request<proto::GetEventRequest>,
    ) -> Result<Response<proto::Event>, Status> {
        let (caller, request) = Caller::of(request)?;
        let event = list::get(&self.storage, &caller, request.name).await?;
        Ok(Response::new(event))
    }

    async fn watch_events(
        &self,
        request: Request<proto::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let (caller, claims) = self
            .authenticator
            .authenticate_stream(request.metadata())
            .await?;
        watch::authorize(&caller)?;
        let open_stream = self.streams.enter(caller.id, MAX_STREAMS);
        let open_stream = open_stream.ok_or_else(too_many_streams)?;

        let after = request.into_inner().after_position;
        let subscription = self.feed.subscribe(after).await?;

        let (responses, stream) = mpsc::channel(4);
        let (authenticator, feed) = (Arc::clone(&self.authenticator), Arc::clone(&self.feed));
        self.task_tracker.spawn(async move {
            let _open_stream = open_stream;
            let revoked = std::pin::pin!(authenticator.revoked(&claims, watch::authorize));
            if let Err(error) = feed.serve(revoked, subscription, &responses).await {
                // Fails if the caller has disconnected.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

fn too_many_streams() -> Error {
    Error::Quota(
        "TOO_MANY_STREAMS",
        format!("this client has {MAX_STREAMS} event streams open at this core: close one first"),
    )
}
