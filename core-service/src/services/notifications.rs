//! The dispatchers' streams of notifications, and their reports of outcomes.

use std::{pin::Pin, sync::Arc};

use domain::api_client::Scope;
use futures_util::Stream;
use process::traces::Origin;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response as Reply, Status, Streaming};

use crate::{
    auth::{authenticator::Authenticator, caller::Caller},
    notifications::{Response as StreamResponse, StreamServer},
};

type ResponseStream = Pin<Box<dyn Stream<Item = StreamResponse> + Send + 'static>>;

pub(crate) struct Notifications {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) stream_server: Arc<StreamServer>,
    /// Tracks the streams and reports, so that shutdown waits for them.
    pub(crate) task_tracker: TaskTracker,
}

#[tonic::async_trait]
impl proto::notifications_server::Notifications for Notifications {
    type ReceiveStream = ResponseStream;

    async fn receive(
        &self,
        request: Request<Streaming<proto::ReceiveRequest>>,
    ) -> Result<Reply<Self::ReceiveStream>, Status> {
        let (authenticator, stream_server) = (
            Arc::clone(&self.authenticator),
            Arc::clone(&self.stream_server),
        );
        let (caller, claims) = self
            .authenticator
            .authenticate_stream(request.metadata())
            .await?;
        caller.require(Scope::Notifications)?;

        let (responses, stream) = mpsc::channel(4);
        let requests = request.into_inner();
        self.task_tracker.spawn(async move {
            let authorize = |caller: &Caller| caller.require(Scope::Notifications);
            let mut revoked = std::pin::pin!(authenticator.revoked(&claims, authorize));
            let served = stream_server
                .serve(requests, &responses, revoked.as_mut())
                .await;
            if let Err(error) = served {
                // Fails if the dispatcher has disconnected; its leases expire.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Reply::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn report_outcomes(
        &self,
        request: Request<proto::ReportOutcomesRequest>,
    ) -> Result<Reply<proto::ReportOutcomesResponse>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::Notifications)?;
        let stream_server = Arc::clone(&self.stream_server);
        // Runs to its end even if the call is cancelled: what is committed is also counted, and frees
        // capacity and hosts.
        let recording = Origin::current().run(async move { stream_server.report(request).await });
        let recording = self.task_tracker.spawn(recording);
        let recorded = recording
            .await
            .map_err(|_| Status::internal("the outcomes could not be recorded"))?;
        recorded?;
        Ok(Reply::new(proto::ReportOutcomesResponse::default()))
    }
}
